//! Whether an earlier response of an MCP server can be replayed.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use squall_dialects::json::Document;
use squall_dialects::mcp;
use squall_dialects::stream::{self, Framing, Splitter};

use super::StoredAnswer;

impl StoredAnswer {
    /// Whether it contains the reply to a call; true if a content coding hides that. False if the
    /// reply arrived on another stream of the session.
    pub(crate) fn holds_reply(&self) -> bool {
        match events(&self.headers, self.body.len() as u64) {
            Some(mut events) => passed(&mut events, &self.body),
            None => {
                self.headers.contains_key(CONTENT_ENCODING) || self.status != StatusCode::ACCEPTED
            }
        }
    }
}

/// A reader for events of at most `limit` bytes in a response with these headers; `None` if it has
/// no readable events.
pub(super) fn events(headers: &HeaderMap, limit: u64) -> Option<Splitter> {
    let kind = headers.get(CONTENT_TYPE)?;
    let has_events = kind.as_bytes().starts_with(b"text/event-stream");
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    (has_events && !headers.contains_key(CONTENT_ENCODING))
        .then(|| Splitter::new(Framing::Sse, limit))
}

/// Whether the reply to a call ends in these bytes of an event stream.
pub(super) fn passed(events: &mut Splitter, bytes: &[u8]) -> bool {
    let frames = events.push(bytes);
    let mut data = frames.iter().filter_map(stream::Frame::data);
    data.any(|data| is_reply(&data))
}

/// Whether an event's data is the reply to a call.
fn is_reply(data: &[u8]) -> bool {
    Document::parse(data).is_ok_and(|document| {
        let messages = mcp::messages(&document);
        messages
            .iter()
            .any(|message| message.answers().is_some() && !message.is_update())
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_response_without_the_reply_is_no_earlier_answer() {
        let events = "text/event-stream; charset=utf-8";
        let begun = "id: 7\nretry: 1\ndata: \n\n";
        let reply = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n";
        for (status, kind, body, expected) in [
            (200, "application/json", "{}", true),
            (202, "text/plain", "Accepted", false),
            (200, events, reply, true),
            (200, events, begun, false),
            (
                200,
                events,
                "data: {\"method\":\"notifications/progress\"}\n\n",
                false,
            ),
        ] {
            let kept = StoredAnswer {
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]),
                body: body.into(),
                trailers: None,
            };
            assert_eq!(kept.holds_reply(), expected, "{status} {body}");
        }
    }
}
