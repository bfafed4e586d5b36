//! A model's answer: its layout, its events, and the content of a complete stream.

use std::collections::BTreeSet;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::{Value as Json, json};

use crate::json::{Document, Value};
use crate::model::{DeltaKind, Finish};
use crate::stream::{Frame, Framing};

/// The layout of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerForm {
    /// One JSON document.
    Json,
    /// A stream of events.
    Stream(Framing),
}

impl AnswerForm {
    /// The form given by a response's `content-type`. `None`: it cannot be read.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let media_type = media_type(headers)?;
        let stream = |framing| Some(Self::Stream(framing));
        match &*media_type {
            "text/event-stream" => stream(Framing::Sse),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
                stream(Framing::Lines)
            }
            "application/vnd.amazon.eventstream" => stream(Framing::AwsEvents),
            "application/json" => Some(Self::Json),
            other => other.ends_with("+json").then_some(Self::Json),
        }
    }
}

/// The media type of a message's body, in lower case and without parameters.
pub fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = value.split(';').next().unwrap_or_default();
    Some(media_type.trim().to_ascii_lowercase())
}

/// A whole answer, or one event of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Event<'d> {
    /// The event's name; `None` if it has none, or the framing has no names.
    pub name: Option<&'d str>,
    /// Its data.
    pub document: &'d Document<'d>,
}

impl<'d> Event<'d> {
    /// The event in `frame`, with its parsed data.
    pub fn of(frame: &'d Frame, document: &'d Document<'d>) -> Self {
        Self {
            name: frame.name(),
            document,
        }
    }

    /// A whole answer, or an event without a name.
    pub fn unnamed(document: &'d Document<'d>) -> Self {
        Self {
            name: None,
            document,
        }
    }

    /// The outermost value of its data.
    pub fn root(self) -> Value<'d> {
        self.document.root()
    }
}

/// The combined content of a stream.
#[derive(Debug, Clone)]
pub struct Transcript<'a> {
    /// The first event that was read.
    pub first: Event<'a>,
    /// The last event that was read and contained a part of the answer, or its counts.
    pub last: Event<'a>,
    /// The parts, sorted by choice, then by their start.
    pub parts: Vec<Part>,
    /// The finish reason of each choice.
    pub finishes: Vec<(u64, Finish)>,
    /// Input and output tokens, if counted.
    pub tokens: (Option<u64>, Option<u64>),
}

/// A complete part of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Index of the alternative answer.
    pub choice: u64,
    /// The part of the choice, as in [`crate::model::Delta::part`].
    pub part: u64,
    /// Text, reasoning or refusal; [`DeltaKind::ToolArguments`] for a tool call.
    pub kind: DeltaKind,
    /// The text; for a tool call the arguments as JSON.
    pub text: String,
    /// For a tool call: its id and the tool's name.
    pub call: Option<(String, String)>,
    /// Its signature.
    pub signature: Option<String>,
}

impl Transcript<'_> {
    /// The choices with parts or a finish reason, ascending.
    pub(crate) fn choices(&self) -> BTreeSet<u64> {
        let said = self.parts.iter().map(|part| part.choice);
        let ended = self.finishes.iter().map(|(choice, _)| *choice);
        said.chain(ended).collect()
    }

    /// The parts of a choice.
    pub(crate) fn parts_of(&self, choice: u64) -> impl Iterator<Item = &Part> + Clone {
        self.parts.iter().filter(move |part| part.choice == choice)
    }

    /// The text of a choice in parts of this kind, unless it is empty.
    pub(crate) fn text_of(&self, choice: u64, kind: DeltaKind) -> Option<String> {
        let parts = self.parts_of(choice).filter(|part| part.kind == kind);
        let text: String = parts.map(|part| part.text.as_str()).collect();
        (!text.is_empty()).then_some(text)
    }

    /// The finish reason of a choice, if it ended.
    pub(crate) fn finish_of(&self, choice: u64) -> Option<&Finish> {
        let mut finishes = self.finishes.iter();
        let found = finishes.find(|(ended, _)| *ended == choice);
        found.map(|(_, finish)| finish)
    }
}

impl Part {
    /// The arguments of a tool call as JSON; empty arguments are an empty object.
    pub(crate) fn arguments(&self) -> Option<Json> {
        match self.text.trim() {
            "" => Some(json!({})),
            text => serde_json::from_str(text).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_content_type_tells_the_form() {
        let stream = |framing| Some(AnswerForm::Stream(framing));
        for (value, expected) in [
            ("application/json", Some(AnswerForm::Json)),
            ("application/json; charset=utf-8", Some(AnswerForm::Json)),
            ("application/problem+json", Some(AnswerForm::Json)),
            ("Text/Event-Stream;charset=utf-8", stream(Framing::Sse)),
            ("application/x-ndjson", stream(Framing::Lines)),
            (
                "application/vnd.amazon.eventstream",
                stream(Framing::AwsEvents),
            ),
            ("text/html", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(AnswerForm::of(&headers), expected, "{value}");
        }
        assert_eq!(AnswerForm::of(&HeaderMap::new()), None);
    }
}
