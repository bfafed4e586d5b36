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
    let events = events(media_type, body)?;
    let pieces = pieces(&events);
    Some(match events.iter().find_map(failure) {
        Some(why) => Ok(Turn::Failed {
            text: put_together(&pieces, path).unwrap_or_default(),
            why,
        }),
        None => put_together(&pieces, path).map(Turn::Answered),
    })
}

/// What a stream says that broke off behind `body`; nothing, for another media type.
pub(super) fn so_far(media_type: &str, body: &str, path: Option<&str>) -> String {
    let events = events(media_type, body).unwrap_or_default();
    put_together(&pieces(&events), path).unwrap_or_default()
}

fn pieces(events: &[Event]) -> Vec<Piece> {
    let said = events.iter().filter(|event| failure(event).is_none());
    said.filter(|event| !event.data.trim().is_empty() && event.data != "[DONE]")
        .map(|event| Piece::of(&event.data))
        .collect()
}

fn put_together(pieces: &[Piece], path: Option<&str>) -> Result<String, AskError> {
    let documents = || {
        pieces.iter().filter_map(|piece| match piece {
            Piece::Document(document) => Some(document),
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
    let said: Vec<_> = pieces.iter().map(Piece::said).collect();
    match documents().next() {
        Some(first) if said.iter().all(Option::is_none) => Err(AskError::SaysNothing {
            shape: extract::shape(first, 3),
        }),
        Some(_) | None => Ok(said.into_iter().flatten().collect()),
    }
}

/// An event, or a line.
#[derive(Debug, Default)]
struct Event {
    /// What the stream calls it; lines have no name.
    name: String,
    data: String,
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

/// What an event holds.
enum Piece {
    Document(Value),
    Text(String),
}

impl Piece {
    fn of(piece: &str) -> Self {
        match serde_json::from_str(piece) {
            Ok(document @ Value::Object(_)) => Self::Document(document),
            Ok(Value::String(text)) => Self::Text(text),
            Ok(_) | Err(_) => Self::Text(piece.to_owned()),
        }
    }

    /// What it says; `None`: nobody knows where that would stand.
    fn said(&self) -> Option<String> {
        let document = match self {
            Self::Text(text) => return Some(text.clone()),
            Self::Document(document) => document,
        };
        // What was said is said again once it is whole.
        let sort = document.get("type").and_then(Value::as_str);
        let ending = sort.and_then(|sort| sort.rsplit_once('.'));
        if matches!(ending, Some((_, "done" | "completed"))) {
            return Some(String::new());
        }
        let mut texts = PLACES
            .iter()
            .filter_map(|place| document.pointer(place)?.as_str());
        let is_silent = || SILENT.iter().any(|name| document.get(name).is_some());
        match texts.next() {
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
