//! Answers that come as events: what they say, put together, and the failure that they end in.

mod failure;

use serde_json::Value;

use self::failure::failure;
use super::turn::Turn;
use super::{AskError, extract};

/// What an event stream (`text/event-stream`) says, or JSON lines; `None` for another media type. Events that are
/// JSON give their piece of the answer, from where `path` leads, or from where pieces are known to stand; others
/// themselves; marks of the end give nothing. A stream that says nothing anywhere is an error: an empty answer is
/// one that was said. One that tells of its own failure has failed, with the text so far.
pub(super) fn turn(
    media_type: &str,
    body: &str,
    path: Option<&str>,
) -> Option<Result<Turn, AskError>> {
    let mut events = events(media_type, body)?;
    let cut = events.pop_if(|last| last.is_cut());
    let pieces = pieces(&events);
    let failed = events.iter().find_map(failure);
    let failed = failed.or_else(|| cut.map(|_| CUT.to_owned()));
    Some(match failed {
        Some(why) => Ok(Turn::Failed {
            text: put_together(&pieces, path).unwrap_or_default(),
            why,
        }),
        None => put_together(&pieces, path).map(Turn::Answered),
    })
}

/// Why a stream has failed that ends amid an event.
const CUT: &str = "the agent's stream ends amid its last event, which is no whole JSON";

/// Whether what comes by this media type is read event by event.
pub(super) fn is_stream(media_type: &str) -> bool {
    events(media_type, "").is_some()
}

/// What a stream says that broke off behind `body`; nothing, for another media type.
pub(super) fn so_far(media_type: &str, body: &str, path: Option<&str>) -> String {
    let mut events = events(media_type, body).unwrap_or_default();
    events.pop_if(|last| last.is_cut());
    put_together(&pieces(&events), path).unwrap_or_default()
}

fn pieces(events: &[Event]) -> Vec<Piece> {
    let said = events.iter().filter(|event| failure(event).is_none());
    let said = said.filter(|event| !event.data.trim().is_empty() && event.data != END);
    let mut pieces: Vec<_> = said.map(Piece::of).collect();
    if pieces.iter().any(|piece| matches!(piece, Piece::Text(_))) {
        // Among texts `[1]` is one, too: a mark in what is said.
        for piece in &mut pieces {
            piece.turn_into_text();
        }
    }
    pieces
}

/// What stands where a stream is over.
const END: &str = "[DONE]";

fn put_together(pieces: &[Piece], path: Option<&str>) -> Result<String, AskError> {
    let documents = || {
        pieces.iter().filter_map(|piece| match piece {
            Piece::Document(event) => Some(&event.document),
            Piece::List(_, list) => Some(list),
            Piece::Text(_) => None,
        })
    };
    if let Some(path) = path {
        let at_path = documents().map(|document| extract::answer(document, Some(path)));
        let found: Vec<_> = at_path.filter_map(Result::ok).collect();
        if !found.is_empty() {
            return Ok(found.concat());
        }
    }
    let (mut whole, mut is_known) = (String::new(), false);
    for piece in pieces {
        let Some(said) = piece.said() else { continue };
        is_known = true;
        // What was said is said again once it is whole.
        if !(piece.is_final() && said.trim() == whole.trim()) {
            whole.push_str(&said);
        }
    }
    match documents().next() {
        Some(first) if !is_known => Err(AskError::SaysNothing {
            shape: extract::shape(first, 3),
        }),
        Some(_) | None => Ok(whole),
    }
}

/// An event, or a line.
#[derive(Debug, Default)]
struct Event {
    /// What the stream calls it; lines have no name.
    name: String,
    data: String,
}

impl Event {
    /// Whether it begins as JSON and is none: of the last one, that the stream was cut.
    fn is_cut(&self) -> bool {
        let data = self.data.trim_start();
        data.starts_with("{\"") && serde_json::from_str::<Value>(data).is_err()
    }
}

/// The media type by which a data stream of Vercel's AI SDK 4 goes here; its own is `text/plain`.
pub(super) const DATA_STREAM: &str = "x-vercel-ai-data-stream";

fn events(media_type: &str, body: &str) -> Option<Vec<Event>> {
    match media_type {
        DATA_STREAM => Some(body.lines().filter_map(part).collect()),
        "text/event-stream" => Some(server_sent(body)),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
            let line = |line: &str| Event {
                data: line.to_owned(),
                ..Event::default()
            };
            Some(body.lines().map(line).collect())
        }
        _ => None,
    }
}

/// A line of a data stream, if it is text (`0:"…"`) or an error (`3:"…"`).
fn part(line: &str) -> Option<Event> {
    let name = match line.split_once(':')?.0 {
        "0" => "text",
        "3" => "error",
        _ => return None,
    };
    Some(Event {
        name: name.to_owned(),
        data: line[2..].to_owned(),
    })
}

fn server_sent(body: &str) -> Vec<Event> {
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let event = |event: &str| {
        let values = |field: &str| -> Vec<_> {
            let values = event.lines().filter_map(|line| line.strip_prefix(field));
            values
                .map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
                .collect()
        };
        Event {
            name: values("event:").pop().unwrap_or_default(),
            data: values("data:").join("\n"),
        }
    };
    body.split("\n\n").map(event).collect()
}

/// Where pieces of an answer stand in the events of providers and of frameworks.
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

/// What events have that say nothing by right: they begin, end, count and call tools.
const SILENT: [&str; 5] = ["choices", "candidates", "type", "event", "done"];

/// What events are about that is no part of the answer: what the model thinks, and what it calls.
const ASIDE: [&str; 5] = ["reasoning", "thinking", "thought", "tool", "function_call"];

/// What events are called that say all once more.
const FINAL: [&str; 9] = [
    "final",
    "final_answer",
    "complete",
    "completed",
    "done",
    "end",
    "finish",
    "finished",
    "result",
];

/// A JSON object, and what it and the stream call the event.
struct Named {
    names: Vec<String>,
    document: Value,
}

/// What an event holds.
enum Piece {
    Document(Named),
    /// A list, as it came and as JSON.
    List(String, Value),
    Text(String),
}

impl Piece {
    fn of(event: &Event) -> Self {
        match serde_json::from_str(&event.data) {
            Ok(document @ Value::Object(_)) => {
                let own = ["type", "event"].map(|name| document.get(name).and_then(Value::as_str));
                let own = own.into_iter().flatten();
                let names = own.chain([event.name.as_str()]);
                Self::Document(Named {
                    names: names.map(str::to_lowercase).collect(),
                    document,
                })
            }
            Ok(list @ Value::Array(_)) => Self::List(event.data.clone(), list),
            Ok(Value::String(text)) => Self::Text(text),
            Ok(_) | Err(_) => Self::Text(event.data.clone()),
        }
    }

    fn turn_into_text(&mut self) {
        if let Self::List(written, _) = self {
            *self = Self::Text(std::mem::take(written));
        }
    }

    fn is_final(&self) -> bool {
        match self {
            Self::Document(event) => event.is_one_of(&FINAL),
            Self::List(..) | Self::Text(_) => false,
        }
    }

    /// What it says; `None`: nobody knows where that would stand.
    fn said(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::List(..) => None,
            Self::Document(event) => event.said(),
        }
    }
}

impl Named {
    fn is_one_of(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }

    fn is_aside(&self) -> bool {
        let mut names = self.names.iter();
        names.any(|name| ASIDE.iter().any(|aside| name.contains(aside)))
    }

    fn said(&self) -> Option<String> {
        let document = &self.document;
        let sort = document.get("type").and_then(Value::as_str);
        let ending = sort.and_then(|sort| sort.rsplit_once('.'));
        // What was said is said again once it is whole.
        let is_again = matches!(ending, Some((_, "done" | "completed")));
        if is_again || self.is_aside() {
            return Some(String::new());
        }
        let mut texts = PLACES
            .iter()
            .filter_map(|place| document.pointer(place)?.as_str());
        let is_silent = || SILENT.iter().any(|name| document.get(name).is_some());
        match texts.next() {
            Some(END) => Some(String::new()),
            Some(text) => Some(text.to_owned()),
            None => is_silent().then(String::new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
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
            (
                DATA_STREAM,
                "f:{\"messageId\":\"m\"}\n0:\"It \"\n0:\"rains\"\nd:{\"finishReason\":\"stop\"}\n",
                Some("It rains"),
            ),
            // Vercel's AI SDK 5: what the model thinks, and tools, are no part of the answer.
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
            (
                "text/event-stream",
                "data: {\"delta\":\"It \"}\n\ndata: {\"delta\":\"rains\"}\n\ndata: {\"type\":\"final\",\"output\":\"It rains\"}\n\n",
                Some("It rains"),
            ),
            (
                "text/event-stream",
                "data: see \n\ndata: [1]\n\n",
                Some("see [1]"),
            ),
            ("text/event-stream", "data: {see\n\n", Some("{see")),
            // An agent that said nothing has said so.
            (
                "text/event-stream",
                "data: {\"choices\":[{\"delta\":{}}]}\n\n",
                Some(""),
            ),
            ("text/event-stream", "", Some("")),
            ("application/json", "{}", None),
        ] {
            let found = turn(media_type, body, None).map(|said| said.expect("an answer"));
            let expected = expected.map(|text| Turn::Answered(text.to_owned()));
            assert_eq!(found, expected, "{body}");
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
            let read = turn(media_type, body, None).expect("a stream");
            let Ok(Turn::Failed { text, why }) = read else {
                panic!("{read:?}")
            };
            assert_eq!((&*text, &*why), ("It ", CUT));
            assert_eq!(so_far(media_type, body, None), "It ");
        }
    }

    #[test]
    fn a_list_in_an_event_is_no_answer() {
        let body = "event: metadata\ndata: {\"run_id\":\"x\"}\n\nevent: messages/partial\ndata: [{\"content\":\"It\"}]\n\n";
        let read = turn("text/event-stream", body, None).expect("a stream");
        read.expect_err("unknown");
        let read = turn("text/event-stream", body, Some("0.content")).expect("a stream");
        assert_eq!(read, Ok(Turn::Answered("It".to_owned())));
    }

    #[test]
    fn a_stream_that_nobody_can_read_is_no_empty_answer() {
        let body = "{\"chunk\": {\"words\": \"It \"}}\n{\"chunk\": {\"words\": \"rains\"}}\n";
        let read = |path| turn("application/x-ndjson", body, path).expect("a stream");
        let rains = || Ok(Turn::Answered("It rains".to_owned()));
        let told = read(None).expect_err("unknown").to_string();
        assert!(
            told.contains("one is {chunk: {words: a text}}; say where with `response_path`"),
            "{told}"
        );
        assert_eq!(read(Some("chunk.words")), rains());
        assert_eq!(read(Some("$.chunk.words")), rains());
        read(Some("nowhere")).expect_err("unknown");
    }
}
