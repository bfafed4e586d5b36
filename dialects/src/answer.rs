//! A model's answer: how it is laid out, its events, and what a stream said once it is complete.

use std::collections::BTreeSet;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::{Value as Json, json};

use crate::json::{Document, Value};
use crate::model::{DeltaKind, Finish};
use crate::stream::{Frame, Framing};

/// How an answer's body is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerForm {
    /// One JSON document.
    Json,
    /// Events.
    Stream(Framing),
}

impl AnswerForm {
    /// The form that a response's `content-type` announces. `None`: no form that can be read.
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
    /// The event's name; `None` when it has none, or the framing has no names.
    pub name: Option<&'d str>,
    /// Its data.
    pub document: &'d Document<'d>,
}

impl<'d> Event<'d> {
    /// The event in `frame`, whose data `document` is.
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

/// The end of a choice that ends before its time.
#[derive(Debug, Clone, Copy)]
pub struct EndOfChoice<'a> {
    /// Which alternative answer it is.
    pub choice: u64,
    /// Why it ends.
    pub finish: &'a Finish,
    /// Tokens that the agent got of it, as Squall counts.
    pub tokens: u64,
    /// Where it was made to say other words than the model's: the tokens of those, thinking apart. What
    /// the provider has counted is of the model's.
    pub instead: Option<u64>,
    /// Whether the agent got anything of the part that the event belongs to: the event itself, an
    /// earlier one, or what [`Dialect::say_events`] made of it. If not, there is nothing to close.
    pub kept: bool,
}

/// What a stream said, put together.
#[derive(Debug, Clone)]
pub struct Transcript<'a> {
    /// The first event that was read.
    pub first: Event<'a>,
    /// The last event that was read and held an answer or its counts.
    pub last: Event<'a>,
    /// What was said, ascending by choice and in the order in which it was begun.
    pub parts: Vec<Part>,
    /// Why each choice ended.
    pub finishes: Vec<(u64, Finish)>,
    /// Tokens in and out, as far as they were counted.
    pub tokens: (Option<u64>, Option<u64>),
}

/// A part of a choice, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which alternative answer it belongs to.
    pub choice: u64,
    /// Which part of it, as of [`crate::model::Delta::part`].
    pub part: u64,
    /// Text, reasoning or refusal; [`DeltaKind::ToolArguments`] for a tool call.
    pub kind: DeltaKind,
    /// The text, or the arguments as JSON.
    pub text: String,
    /// Of a tool call: its id and the tool's name.
    pub call: Option<(String, String)>,
    /// What it was signed with.
    pub signature: Option<String>,
}

impl Transcript<'_> {
    /// The choices of which something was said or that ended, ascending.
    pub(crate) fn choices(&self) -> BTreeSet<u64> {
        let said = self.parts.iter().map(|part| part.choice);
        let ended = self.finishes.iter().map(|(choice, _)| *choice);
        said.chain(ended).collect()
    }

    /// The parts of a choice.
    pub(crate) fn parts_of(&self, choice: u64) -> impl Iterator<Item = &Part> + Clone {
        self.parts.iter().filter(move |part| part.choice == choice)
    }

    /// What a choice said in parts of a kind, unless it is nothing.
    pub(crate) fn text_of(&self, choice: u64, kind: DeltaKind) -> Option<String> {
        let parts = self.parts_of(choice).filter(|part| part.kind == kind);
        let text: String = parts.map(|part| part.text.as_str()).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Why a choice ended, if it did.
    pub(crate) fn finish_of(&self, choice: u64) -> Option<&Finish> {
        let mut finishes = self.finishes.iter();
        let found = finishes.find(|(ended, _)| *ended == choice);
        found.map(|(_, finish)| finish)
    }
}

impl Part {
    /// The arguments of a tool call as JSON; without any they are an empty object.
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
