//! An answer on a tape, and the calls that it was the answer to.

use squall_dialects::json::Document;
use squall_dialects::mcp::{self, Asked, Call, Id};
use squall_dialects::stream::{Frame, Framing, Splitter};

use super::content::Content;
use super::redact;
use super::session::{Answer, Exchange};

/// An answer that can be given again.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The answer as it was recorded.
    pub answer: Answer,
    /// Ids of the JSON-RPC calls that it was the answer to, in the order of the request; where that was
    /// not kept, in the order of the answers. Empty for anything else.
    pub calls: Vec<Id>,
}

impl Given {
    /// What answers a request like this one.
    pub fn of(exchange: &Exchange) -> Self {
        let body = exchange.matching.body.as_ref();
        let calls = match body.map(|body| Asked::read(&body.0)) {
            Some(Some(asked)) => ids(asked.calls),
            Some(None) => Vec::new(),
            None => answered(&exchange.answer),
        };
        Self {
            answer: exchange.answer.clone(),
            calls,
        }
    }

    /// Whether the answer is a stream of events, also where it was written in one piece.
    pub fn is_of_events(&self) -> bool {
        is_of_events(&self.answer)
    }
}

fn ids(calls: Vec<Call>) -> Vec<Id> {
    calls.into_iter().filter_map(|call| call.id).collect()
}

/// Ids of the calls that an answer answers.
fn answered(answer: &Answer) -> Vec<Id> {
    if !is_of_events(answer) {
        return answered_in(&answer.content.whole());
    }
    let events = answer.content.whole();
    let mut splitter = Splitter::new(Framing::Sse, events.len());
    let mut frames = splitter.push(&events);
    frames.extend(splitter.finish());
    let data = |frame: Frame| frame.data().map(|data| answered_in(&data));
    frames.into_iter().filter_map(data).flatten().collect()
}

fn is_of_events(answer: &Answer) -> bool {
    let said = redact::media_type(&answer.headers);
    matches!(answer.content, Content::Stream(_))
        || said.is_some_and(|said| said.trim_start().starts_with("text/event-stream"))
}

fn answered_in(json: &[u8]) -> Vec<Id> {
    // Most answers are none of JSON-RPC: they are not parsed.
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
        let mut exchange = Exchange::default();
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
