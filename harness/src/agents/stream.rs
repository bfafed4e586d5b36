//! Reads streamed answers: server-sent events or JSON lines.
//!
//! Each event contributes its piece of the answer, from `response_path` or from a common place of providers and
//! frameworks. Events for tools and reasoning contribute nothing.

use serde_json::Value;

use super::{AskError, extract};
use crate::answer::AgentAnswer;

/// Common places of answer pieces in events.
const PLACES: [&str; 18] = [
    "/choices/0/delta/content",
    "/choices/0/message/content",
    "/choices/0/text",
    "/candidates/0/content/parts/0/text",
    "/contentBlockDelta/delta/text",
    "/delta/message/content/text",
    "/delta/text",
    "/delta",
    "/message/content",
    "/output",
    "/response",
    "/result",
    "/data",
    "/content",
    "/text",
    "/token",
    "/answer",
    "/reply",
];

/// Members of events that may have no piece, such as start, end, counts and tool calls.
const WITHOUT_TEXT: [&str; 5] = ["choices", "candidates", "type", "event", "done"];

/// Parts of event names that are not part of the answer.
const ASIDE: [&str; 5] = ["reasoning", "thinking", "thought", "tool", "function_call"];

/// Parts of names whose failure does not end the answer.
const PARTS: [&str; 4] = ["tool", "function", "step", "node"];

/// Places of error messages.
const REASONS: [&str; 7] = [
    "/error/message",
    "/error/type",
    "/error",
    "/errorText",
    "/response/error/message",
    "/message",
    "/detail",
];

/// The mark at the end of a stream.
const END: &str = "[DONE]";

/// The answer of a stream; `None` for another media type. It is an error if no event has an answer at a known
/// place.
pub(super) fn answer(
    media_type: &str,
    body: &str,
    path: Option<&str>,
) -> Option<Result<AgentAnswer, AskError>> {
    let mut events = events(media_type, body)?;
    let cut = events.pop_if(|last| last.is_cut());
    let cut = cut.map(|_| "the agent's stream ends inside its last event".to_owned());
    let failure = events.iter().find_map(AnswerEvent::failure).or(cut);
    let text = text(&events, path);
    Some(match failure {
        Some(why) => Ok(AgentAnswer::failed(text.unwrap_or_default(), why)),
        None => text.map(AgentAnswer::of),
    })
}

/// The text of a stream that was aborted after `body`; empty for another media type.
pub(super) fn so_far(media_type: &str, body: &str, path: Option<&str>) -> String {
    let mut events = events(media_type, body).unwrap_or_default();
    events.pop_if(|last| last.is_cut());
    text(&events, path).unwrap_or_default()
}

fn text(events: &[AnswerEvent], path: Option<&str>) -> Result<String, AskError> {
    let events = events.iter().filter(|event| !event.data.trim().is_empty());
    let events = || events.clone().filter(|event| event.failure().is_none());
    let documents = || events().filter_map(|event| event.document.as_ref());
    if let Some(path) = path {
        let at_path = documents().map(|document| extract::answer(document, Some(path)));
        let found: Vec<_> = at_path.filter_map(Result::ok).collect();
        if !found.is_empty() {
            return Ok(found.concat());
        }
    }
    let pieces: Vec<_> = events().filter_map(AnswerEvent::piece).collect();
    match documents().next() {
        Some(first) if pieces.is_empty() => Err(AskError::SaysNothing {
            shape: extract::shape(first, 3),
        }),
        Some(_) | None => Ok(pieces.concat()),
    }
}

fn events(media_type: &str, body: &str) -> Option<Vec<AnswerEvent>> {
    match media_type {
        "text/event-stream" => Some(server_sent(body)),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
            let lines = body.lines();
            Some(
                lines
                    .map(|line| AnswerEvent::new("", line.to_owned()))
                    .collect(),
            )
        }
        _ => None,
    }
}

fn server_sent(body: &str) -> Vec<AnswerEvent> {
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let event = |event: &str| {
        let values = |field: &str| -> Vec<_> {
            let values = event.lines().filter_map(|line| line.strip_prefix(field));
            values
                .map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
                .collect()
        };
        let name = values("event:").pop().unwrap_or_default();
        AnswerEvent::new(&name, values("data:").join("\n"))
    };
    body.split("\n\n").map(event).collect()
}

/// An event or a line.
#[derive(Debug)]
struct AnswerEvent {
    /// The names of the event in the stream and in its data, in lower case.
    names: Vec<String>,
    data: String,
    /// The data, if it is an object or a list of objects.
    document: Option<Value>,
}

impl AnswerEvent {
    fn new(name: &str, data: String) -> Self {
        let document = serde_json::from_str(&data).ok().filter(|data| match data {
            Value::Array(items) => items.first().is_some_and(Value::is_object),
            data => data.is_object(),
        });
        let own = |field| document.as_ref()?.get(field)?.as_str();
        let names = [Some(name), own("type"), own("event")]
            .into_iter()
            .flatten();
        Self {
            names: names.map(str::to_lowercase).collect(),
            data,
            document,
        }
    }

    /// Whether it starts as JSON but is invalid: the last event of a truncated stream.
    fn is_cut(&self) -> bool {
        self.data.trim_start().starts_with("{\"") && self.document.is_none()
    }

    /// Its piece of the answer; `None`: the place of the piece is unknown.
    fn piece(&self) -> Option<String> {
        let Some(document) = &self.document else {
            return Some(match serde_json::from_str(&self.data) {
                Ok(Value::String(text)) => text,
                _ if self.data == END => String::new(),
                _ => self.data.clone(),
            });
        };
        // The complete text repeats the pieces before it.
        let is_again = |name: &String| {
            let last = name.rsplit_once('.').map(|(_, last)| last);
            matches!(last, Some("done" | "completed"))
        };
        let is_aside = |name: &String| ASIDE.iter().any(|aside| name.contains(aside));
        if self
            .names
            .iter()
            .any(|name| is_again(name) || is_aside(name))
        {
            return Some(String::new());
        }
        let mut texts = PLACES
            .iter()
            .filter_map(|place| document.pointer(place)?.as_str());
        match texts.next() {
            Some(END) => Some(String::new()),
            Some(text) => Some(text.to_owned()),
            None => WITHOUT_TEXT
                .iter()
                .any(|name| document.get(name).is_some())
                .then(String::new),
        }
    }

    /// Why the whole answer failed, if the event reports it: an event `error` or `abort`, `….failed`, an `error` of
    /// anything but a tool, or `finish_reason: error`.
    fn failure(&self) -> Option<String> {
        let is_named = |name: &String| {
            let ends = [".failed", ".expired", "run_error"];
            matches!(&**name, "error" | "abort") || ends.iter().any(|end| name.ends_with(end))
        };
        let document = self.document.as_ref();
        let is_reported = || {
            let members = document.and_then(Value::as_object).into_iter().flatten();
            let mut names = self.names.iter().chain(members.map(|(name, _)| name));
            let is_of_a_part = names.any(|name| PARTS.iter().any(|part| name.contains(part)));
            !is_of_a_part && document.and_then(extract::reported_failure).is_some()
        };
        let finish = || {
            let places = ["/choices/0/finish_reason", "/finishReason"];
            let mut reasons = places.iter().filter_map(|place| document?.pointer(place));
            reasons.any(|reason| reason == "error")
        };
        if !self.names.iter().any(is_named) && !is_reported() && !finish() {
            return None;
        }
        let mut reasons = REASONS.iter().filter_map(|place| document?.pointer(place));
        let reason = reasons.find(|reason| !reason.is_null() && *reason != "");
        let reason = reason.map_or_else(|| self.data.trim().to_owned(), extract::text_of);
        let why = "the agent's stream ended in an error";
        Some(match &*reason {
            "" => why.to_owned(),
            reason => format!("{why}: {}", extract::shown(reason)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSE: &str = "text/event-stream";
    const LINES: &str = "application/x-ndjson";

    #[test]
    #[rustfmt::skip]
    fn pieces_are_put_together() {
        for (media_type, body, expected) in [
            (
                "text/event-stream",
                "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\ndata: {\"choices\":[{\"delta\":{}}]}\n\ndata: [DONE]\n\n",
                Some("Hello"),
            ),
            (
                "text/event-stream",
                ": hi\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\ndata:c\r\n\r\n",
                Some("a\nbc"),
            ),
            (
                "text/event-stream",
                "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"x\"}}\n\n",
                Some("x"),
            ),
            (
                "application/x-ndjson",
                "{\"message\":{\"content\":\"a\"}}\n{\"message\":{\"content\":\"b\"}}\n",
                Some("ab"),
            ),
            (
                "application/x-ndjson",
                "{\"response\":\"It \",\"done\":false}\n{\"response\":\"rains\",\"done\":true}\n",
                Some("It rains"),
            ),
            (
                "text/event-stream",
                "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"}]}}]}\n\n",
                Some("x"),
            ),
            (
                "text/event-stream",
                "data: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\ndata: {\"type\":\"response.output_text.done\",\"text\":\"x\"}\n\n",
                Some("x"),
            ),
            // Vercel's AI SDK 5: reasoning and tools are not part of the answer.
            (
                "text/event-stream",
                "data: {\"type\":\"reasoning-delta\",\"delta\":\"Hm\"}\n\ndata: {\"type\":\"tool_result\",\"content\":\"9\"}\n\ndata: {\"type\":\"text-delta\",\"delta\":\"It rains\"}\n\n",
                Some("It rains"),
            ),
            // AG-UI
            (
                "text/event-stream",
                "data: {\"type\":\"THINKING_TEXT_MESSAGE_CONTENT\",\"delta\":\"Hm\"}\n\ndata: {\"type\":\"TOOL_CALL_ARGS\",\"delta\":\"{}\"}\n\ndata: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"delta\":\"It rains\"}\n\n",
                Some("It rains"),
            ),
            // Flowise
            (
                "text/event-stream",
                "data: {\"event\":\"token\",\"data\":\"It rains\"}\n\ndata: {\"event\":\"end\",\"data\":\"[DONE]\"}\n\n",
                Some("It rains"),
            ),
            ("text/event-stream", "data: see \n\ndata: [1]\n\n", Some("see [1]")),
            ("text/event-stream", "data: {see\n\n", Some("{see")),
            // An explicitly empty answer is an answer.
            ("text/event-stream", "data: {\"choices\":[{\"delta\":{}}]}\n\n", Some("")),
            ("text/event-stream", "", Some("")),
            ("application/json", "{}", None),
        ] {
            let found = answer(media_type, body, None).map(|read| read.expect("an answer"));
            assert_eq!(found, expected.map(AgentAnswer::of), "{body}");
        }
    }

    #[test]
    fn a_stream_that_ends_amid_an_event_has_failed() {
        for (media_type, body) in [
            ("application/x-ndjson", "{\"response\":\"It \"}\n{\"resp"),
            (
                "text/event-stream",
                "data: {\"text\":\"It \"}\n\ndata: {\"te",
            ),
        ] {
            let read = answer(media_type, body, None).expect("a stream");
            let why = "the agent's stream ends inside its last event";
            assert_eq!(
                read,
                Ok(AgentAnswer::failed("It ".to_owned(), why.to_owned()))
            );
            assert_eq!(so_far(media_type, body, None), "It ");
        }
    }

    #[test]
    fn a_list_in_an_event_is_no_answer() {
        let body = "event: metadata\ndata: {\"run_id\":\"x\"}\n\nevent: messages/partial\ndata: [{\"content\":\"It\"}]\n\n";
        let read = answer("text/event-stream", body, None).expect("a stream");
        read.expect_err("unknown");
        let read = answer("text/event-stream", body, Some("0.content")).expect("a stream");
        assert_eq!(read, Ok(AgentAnswer::of("It")));
    }

    #[test]
    fn a_stream_that_nobody_can_read_is_no_empty_answer() {
        let body = "{\"chunk\": {\"words\": \"It \"}}\n{\"chunk\": {\"words\": \"rains\"}}\n";
        let read = |path| answer("application/x-ndjson", body, path).expect("a stream");
        let rains = || Ok(AgentAnswer::of("It rains"));
        let told = read(None).expect_err("unknown").to_string();
        assert!(
            told.contains("one is {chunk: {words: a text}}; say where with `response_path`"),
            "{told}"
        );
        assert_eq!(read(Some("chunk.words")), rains());
        assert_eq!(read(Some("$.chunk.words")), rains());
        read(Some("nowhere")).expect_err("unknown");
    }

    #[test]
    #[rustfmt::skip]
    fn a_stream_that_tells_of_its_failure_is_no_answer() {
        for (media_type, body, text, why) in [
            // OpenAI
            (
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"It is \"}}]}\n\ndata: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n",
                "It is ",
                ": overloaded",
            ),
            (
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"It is \"}}]}\n\nevent: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n",
                "It is ",
                ": boom",
            ),
            (
                SSE,
                "data: {\"type\":\"response.output_text.delta\",\"delta\":\"It\"}\n\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"gone\"}}}\n\n",
                "It",
                ": gone",
            ),
            (
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"It\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n",
                "It",
                "",
            ),
            // Anthropic
            (
                SSE,
                "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"It\"}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
                "It",
                ": Overloaded",
            ),
            // Vercel's AI SDK
            (
                SSE,
                "data: {\"type\":\"text-delta\",\"id\":\"1\",\"delta\":\"It is \"}\n\ndata: {\"type\":\"error\",\"errorText\":\"the model is down\"}\n\ndata: [DONE]\n\n",
                "It is ",
                ": the model is down",
            ),
            (
                SSE,
                "data: {\"type\":\"text-delta\",\"id\":\"1\",\"delta\":\"It\"}\n\ndata: {\"type\":\"finish\",\"finishReason\":\"error\"}\n\n",
                "It",
                "",
            ),
            // Invalid JSON, and an empty stream.
            (SSE, "data: It is \n\nevent: error\ndata: boom\n\n", "It is ", ": boom"),
            (SSE, "data: It is \r\n\r\nevent:error\r\n\r\n", "It is ", ""),
            (SSE, "event: error\ndata: boom\n\n", "", ": boom"),
            (
                LINES,
                "{\"response\":\"It \",\"done\":false}\n{\"error\":\"an error was encountered\"}\n",
                "It ",
                ": an error was encountered",
            ),
            (LINES, "{\"chunk\":{\"words\":\"It\"}}\n{\"error\":\"x\"}\n", "", ": x"),
        ] {
            let why = format!("the agent's stream ended in an error{why}");
            let found = answer(media_type, body, None).expect("a stream");
            let found = found.expect("an answer");
            let error = found.error.unwrap_or_default();
            assert_eq!(found.text, text, "{body}");
            assert!(error.starts_with(&why), "{error}: {body}");
        }
    }

    #[test]
    fn what_fails_on_the_way_to_an_answer_is_no_failure_of_it() {
        for (media_type, body) in [
            (
                SSE,
                "data: {\"type\":\"tool_result\",\"error\":\"timeout\"}\n\ndata: {\"type\":\"text-delta\",\"delta\":\"Sunny\"}\n\n",
            ),
            (
                SSE,
                "data: {\"type\":\"tool-output-error\",\"errorText\":\"timeout\"}\n\ndata: {\"type\":\"text-delta\",\"delta\":\"Sunny\"}\n\n",
            ),
            (
                SSE,
                "data: {\"event\":\"on_tool_error\",\"error\":\"timeout\"}\n\ndata: {\"text\":\"Sunny\"}\n\n",
            ),
            (
                LINES,
                "{\"tool\":\"weather\",\"error\":\"timeout\",\"done\":false}\n{\"response\":\"Sunny\",\"error\":null}\n",
            ),
            (SSE, "event: message\ndata: Sunny\n\n"),
            (
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"Sunny\"},\"finish_reason\":\"stop\"}],\"error\":\"\"}\n\n",
            ),
        ] {
            let found = answer(media_type, body, None).expect("a stream");
            assert_eq!(found, Ok(AgentAnswer::of("Sunny")), "{body}");
        }
    }
}
