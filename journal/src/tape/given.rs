//! A recorded response, and the JSON-RPC calls that it replies to.

use squall_dialects::json::Document;
use squall_dialects::mcp::{self, Id, RpcRequest};
use squall_dialects::stream::{Frame, Framing, Splitter};

use super::content::Content;
use super::session::{Answer, RecordedExchange, header};

/// A response that can be played back.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The response as it was recorded.
    pub answer: Answer,
    /// Ids of the JSON-RPC calls that it replies to, in the order of the request; without a stored request, in
    /// the order of the replies. Empty for other responses.
    pub calls: Vec<Id>,
}

impl Given {
    /// The response of an exchange.
    pub fn of(exchange: &RecordedExchange) -> Self {
        let body = exchange.matching.body.as_ref();
        let calls = match body.map(|body| RpcRequest::read(&body.0)) {
            Some(asked) => {
                let calls = asked.map(|asked| asked.calls).unwrap_or_default();
                calls.into_iter().filter_map(|call| call.id).collect()
            }
            None => replies(&exchange.answer),
        };
        Self {
            answer: exchange.answer.clone(),
            calls,
        }
    }

    /// Whether the response is an event stream, even if it was stored in one piece.
    pub fn is_of_events(&self) -> bool {
        is_of_events(&self.answer)
    }
}

fn is_of_events(answer: &Answer) -> bool {
    let media_type = header(&answer.headers, "content-type").unwrap_or_default();
    matches!(answer.content, Content::Stream(_))
        || media_type.trim_start().starts_with("text/event-stream")
}

/// Ids of the calls that a response replies to.
fn replies(answer: &Answer) -> Vec<Id> {
    let whole = answer.content.whole();
    if !is_of_events(answer) {
        return replies_in(&whole);
    }
    let mut splitter = Splitter::new(Framing::Sse, whole.len());
    let mut frames = splitter.push(&whole);
    frames.extend(splitter.finish());
    let data = frames.iter().filter_map(Frame::data);
    data.flat_map(|data| replies_in(&data)).collect()
}

fn replies_in(json: &[u8]) -> Vec<Id> {
    // Most responses are not JSON-RPC, so they need not be parsed.
    if memchr::memmem::find(json, b"\"jsonrpc\"").is_none() {
        return Vec::new();
    }
    let Ok(document) = Document::parse(json) else {
        return Vec::new();
    };
    let messages = mcp::messages(&document).into_iter();
    messages.filter_map(mcp::Message::answers).collect()
}

#[cfg(test)]
mod tests {
    use super::super::content::{Data, Piece};
    use super::*;

    fn given(body: Option<&str>, content: Content) -> Vec<String> {
        let mut exchange = RecordedExchange::default();
        exchange.matching.body = body.map(Data::from);
        exchange.answer.content = content;
        let calls = Given::of(&exchange).calls;
        calls.iter().map(|id| id.as_json().to_owned()).collect()
    }

    #[test]
    fn the_calls_are_those_of_the_request_or_else_of_the_answers() {
        let call = |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let told = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
        let list = format!("[{},{told},{}]", call(1), call(2));
        let answer = |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        let answers = format!("[{},{}]", answer(2), answer(1));
        let events = [answer(2), told.to_owned(), answer(1)].map(|data| Piece {
            at_ms: 0,
            data: Data::from(format!("data: {data}\n\n")),
        });
        let body = || Content::Body(Data::from(answers.as_str()));
        for (asked, content, expected) in [
            (Some(list.as_str()), body(), &["1", "2"][..]),
            (Some("other"), body(), &[]),
            (Some(&call(3)), body(), &["3"]),
            (None, body(), &["2", "1"]),
            (None, Content::Stream(events.into()), &["2", "1"]),
            (None, Content::Body(Data::from("[1]")), &[]),
        ] {
            assert_eq!(given(asked, content), expected, "{asked:?}");
        }
    }
}
