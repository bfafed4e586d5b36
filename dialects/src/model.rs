//! The neutral view of a model call that faults are written against.
//!
//! A [`ModelRequest`] holds the content of a request. A [`Reading`] holds the content of one JSON document of an
//! answer: the whole answer, or one event of a stream. A reading contains the *places* of its parts, so that the
//! provider's original bytes can be edited.

mod error;
mod request;

use std::borrow::Cow;

pub use self::error::{LimitFigures, LimitScope, ModelError};
pub use self::request::{
    Conversation, Message, ModelRequest, PlacedText, ResultSaying, Role, ToolResult,
};
pub(crate) use self::request::{ToolsByCall, note_tool};
use crate::json::{Edits, JsonKind, NodeId, Value};
use crate::tokens::{self, Counting};

/// Replacement for the text of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saying<'a> {
    /// This text; it may be empty.
    Text(&'a str),
    /// A refusal, in the provider's field for refusals if there is one.
    Refusal(&'a str),
}

impl<'a> Saying<'a> {
    /// The text.
    pub fn text(self) -> &'a str {
        match self {
            Self::Text(text) | Self::Refusal(text) => text,
        }
    }
}

/// Why a choice ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The answer is complete.
    Done,
    /// The maximum number of tokens was reached.
    Length,
    /// The model requests tool calls.
    Tool,
    /// A content filter stopped the answer.
    Filtered,
    /// The model refused.
    Refused,
    /// The context window is full.
    Context,
    /// The model generated an invalid tool call.
    BadTool,
    /// A provider's reason without a neutral equivalent, unchanged.
    Foreign(String),
}

impl Finish {
    /// The neutral name, as in the journal.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Done => "done",
            Self::Length => "length",
            Self::Tool => "tool",
            Self::Filtered => "filtered",
            Self::Refused => "refused",
            Self::Context => "context",
            Self::BadTool => "bad_tool",
            Self::Foreign(word) => word,
        }
    }
}

/// A provider's finish reasons with their neutral equivalents.
///
/// A provider's reason is read as its first neutral one. A neutral one is written as the first provider's reason
/// that has it.
#[derive(Debug)]
pub(crate) struct FinishWords(pub(crate) &'static [(&'static str, &'static [Finish])]);

impl FinishWords {
    pub(crate) fn read(&self, word: &str) -> Finish {
        let mut words = self.0.iter();
        let known = words.find(|(known, _)| *known == word);
        let neutral = known.and_then(|(_, neutral)| neutral.first());
        neutral
            .cloned()
            .unwrap_or_else(|| Finish::Foreign(word.to_owned()))
    }

    pub(crate) fn write<'a>(&self, finish: &'a Finish) -> &'a str {
        if let Finish::Foreign(word) = finish {
            return word;
        }
        let mut words = self.0.iter();
        let found = words.find(|(_, neutral)| neutral.contains(finish));
        found.map_or("", |(word, _)| word)
    }
}

/// The content of one JSON document of an answer: the whole answer, or one event of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading<'d> {
    /// Id of the response, if a later request can continue it.
    pub id: Option<Cow<'d, str>>,
    /// The model that answered.
    pub model: Option<Cow<'d, str>>,
    /// What the model generated, in order.
    pub deltas: Vec<Delta<'d>>,
    /// Starts and ends of parts, if the provider has events for them.
    pub edges: Vec<Edge>,
    /// Ends of choices.
    pub finishes: Vec<Finished>,
    /// Values that repeat a choice's text by token, such as log probabilities. They are set to null where text is
    /// cut.
    pub mirrors: Vec<(u64, NodeId)>,
    /// Sources of a text, such as citations. They are removed together with the text.
    pub sources: Vec<Source>,
    /// Results of tools that the provider runs, by part. They are removed together with the text before them.
    pub results: Vec<(u64, NodeId)>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// The error that the provider reports instead of an answer or in the middle of it.
    pub error: Option<Cow<'d, str>>,
    /// Whether this event announces the author. Such an event is kept, emptied, even if all its text is removed.
    pub introduces: bool,
    /// Whether this event ends the stream.
    pub ends: bool,
    /// How the provider handles a call whose arguments are not JSON.
    pub bad_calls: BadCalls,
}

impl<'d> Reading<'d> {
    /// Adds the end of a choice, with the reason at `place`.
    pub(crate) fn finish(&mut self, choice: u64, finish: Finish, place: Value<'_>) {
        self.finishes.push(Finished {
            choice,
            finish,
            place: place.id(),
        });
    }

    /// Adds the start or end of a part of the only choice.
    pub(crate) fn edge(&mut self, part: u64, closes: bool, thinks: bool) {
        self.edges.push(Edge {
            choice: 0,
            part,
            closes,
            thinks,
        });
    }

    /// Adds the sources of a part, unless they are absent or empty.
    pub(crate) fn rests_on(
        &mut self,
        choice: u64,
        part: u64,
        value: Option<Value<'_>>,
        may_be_empty: bool,
    ) {
        let filled = |value: &Value<'_>| match value.kind() {
            JsonKind::Array => value.items().next().is_some(),
            _ => !value.is_null(),
        };
        self.sources
            .extend(value.filter(filled).map(|value| Source {
                choice,
                part,
                place: value.id(),
                may_be_empty,
            }));
    }

    /// Whether a choice contains text in the field for refusals.
    pub(crate) fn has_refusal(&self, choice: u64) -> bool {
        let refuses = |delta: &Delta<'d>| {
            delta.choice == choice && delta.kind == DeltaKind::Refusal && !delta.text.is_empty()
        };
        self.deltas.iter().any(refuses)
    }

    /// Counts the tokens of its deltas.
    pub fn count_by(&mut self, counting: Counting) {
        for delta in &mut self.deltas {
            delta.counting = counting;
            if delta.counts() {
                delta.tokens = tokens::count_piece(counting, &delta.text);
            }
        }
    }
}

/// How a provider handles a call whose arguments are not JSON, if it validates them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BadCalls {
    /// The call is sent unchanged.
    #[default]
    Kept,
    /// The answer ends with [`Finish::BadTool`] and no call.
    Dropped,
}

/// The sources of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Index of the alternative answer, from 0.
    pub choice: u64,
    /// The part that the text is, as in [`Delta::part`].
    pub part: u64,
    /// Its place.
    pub place: NodeId,
    /// Whether it is a list that may be empty; other providers omit it.
    pub may_be_empty: bool,
}

/// A piece of what the model generated.
///
/// Pieces belong together if they have the same choice and part and the same kind of content: a text, or a tool
/// call with its name, id and arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta<'d> {
    /// Index of the alternative answer, from 0.
    pub choice: u64,
    /// The part of the choice: the number of its content block, output item or tool call. It is 0 if a provider
    /// does not number texts, and [`number_of_whole_call`] if it does not number calls.
    pub part: u64,
    /// The kind of the piece.
    pub kind: DeltaKind,
    /// The piece, decoded; for a value that is not a string, its JSON.
    pub text: Cow<'d, str>,
    /// Its place. A JSON string can be shortened; other values are kept or removed as a whole.
    pub place: NodeId,
    /// The tool call or block to remove if nothing of the piece is kept. `None`: the piece is emptied in place.
    /// String arguments are always emptied in place, and their call is removed with its name.
    pub removed_with: Option<NodeId>,
    /// What to remove with the last item of the list that contains `removed_with`: the list, or the output item
    /// around it.
    pub goes_with_list: Option<NodeId>,
    /// Whether it repeats all earlier pieces of its part instead of adding one. It must then equal what the agent
    /// received of those.
    pub repeats: bool,
    /// Place of its item's completion status, if there is one.
    pub status: Option<NodeId>,
    /// Its tokens, counted separately by [`Reading::count_by`]; 0 for ids, signatures and repetitions.
    pub tokens: u64,
    counting: Counting,
}

impl<'d> Delta<'d> {
    /// A new piece that is emptied in place and repeats nothing.
    pub fn new(choice: u64, part: u64, kind: DeltaKind, value: Value<'d>) -> Self {
        Self {
            choice,
            part,
            kind,
            text: value.as_str().unwrap_or(Cow::Borrowed(value.raw())),
            place: value.id(),
            removed_with: None,
            goes_with_list: None,
            repeats: false,
            status: None,
            tokens: 0,
            counting: Counting::Estimate,
        }
    }

    /// Sets `container` to be removed with the piece.
    #[must_use]
    pub fn inside(mut self, container: Value<'_>) -> Self {
        self.removed_with = Some(container.id());
        self
    }

    /// Sets `item` to be removed with the piece, and `outer` with the last item of the list.
    #[must_use]
    pub fn inside_list(mut self, item: Value<'_>, outer: Value<'_>) -> Self {
        self.removed_with = Some(item.id());
        self.goes_with_list = Some(outer.id());
        self
    }

    /// Sets its item's status to incomplete, if it has one.
    pub fn mark_cut(&self, edits: &mut Edits<'_>) {
        if let Some(status) = self.status {
            edits.replace(status, "\"incomplete\"");
        }
    }

    /// Whether it contains text.
    pub fn speaks(&self) -> bool {
        self.counts() && !self.text.is_empty()
    }

    /// Its first `tokens` tokens.
    pub fn take(&self, tokens: u64) -> &str {
        tokens::take(self.counting, &self.text, tokens)
    }

    /// Whether it is reasoning or its signature. These reach the agent unchanged, or not at all.
    pub fn is_thinking(&self) -> bool {
        matches!(self.kind, DeltaKind::Reasoning | DeltaKind::Signature)
    }

    /// Whether its text counts as tokens.
    pub fn counts(&self) -> bool {
        let opaque = matches!(self.kind, DeltaKind::ToolId | DeltaKind::Signature);
        !self.repeats && !opaque
    }
}

/// The kind of a [`Delta`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeltaKind {
    /// The answer's text.
    Text,
    /// Visible reasoning.
    Reasoning,
    /// The signature of reasoning: opaque, kept or removed as a whole.
    Signature,
    /// A refusal in its own field.
    Refusal,
    /// The id of a tool call, never split.
    ToolId,
    /// The name of the called tool, never split.
    ToolName,
    /// Arguments of a tool call: a string with JSON or a piece of it, or the JSON value itself.
    ToolArguments,
}

impl DeltaKind {
    /// Whether it is a piece of a tool call.
    pub fn is_of_a_call(self) -> bool {
        matches!(self, Self::ToolId | Self::ToolName | Self::ToolArguments)
    }
}

/// The [`Delta::part`] of a complete tool call without a number. It is a hash of the call, so that calls in
/// different events are distinguished.
pub fn number_of_whole_call(call: Value<'_>) -> u64 {
    // FNV-1a.
    let bytes = call.raw().bytes();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The start or end of a part of a choice, in its own event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Index of the alternative answer.
    pub choice: u64,
    /// The part, as in [`Delta::part`].
    pub part: u64,
    /// Whether the part ends; otherwise it starts.
    pub closes: bool,
    /// Whether it is known to be reasoning. Most events that end a part do not show this.
    pub thinks: bool,
}

/// The end of a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Index of the alternative answer.
    pub choice: u64,
    /// Why it ended.
    pub finish: Finish,
    /// Place of the provider's finish reason.
    pub place: NodeId,
}

/// The provider's token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input: Option<u64>,
    /// Output tokens, including hidden ones.
    pub output: Option<u64>,
    /// Output tokens that the agent does not receive (hidden reasoning); 0 if none are reported.
    pub hidden: u64,
    /// Place of the output token count.
    pub output_place: Option<NodeId>,
    /// The part of `output` that is counted in another field than `output_place`.
    pub apart: u64,
    /// Place of the total.
    pub total_place: Option<NodeId>,
}

/// The fields of a provider's token counts.
#[derive(Debug)]
pub(crate) struct UsageKeys {
    /// Input tokens: the first field, and fields that are counted separately.
    pub(crate) input: &'static [&'static str],
    pub(crate) output: &'static str,
    /// The path of output tokens that the agent does not receive.
    pub(crate) hidden: &'static [&'static str],
    pub(crate) total: &'static str,
}

impl Usage {
    /// Reads token counts; `None` if there are none.
    pub(crate) fn read(counts: Value<'_>, keys: &UsageKeys) -> Option<Self> {
        if counts.kind() != JsonKind::Object {
            return None;
        }
        let place = |key| {
            let count = counts.get(key)?;
            (count.kind() == JsonKind::Number).then(|| count.id())
        };
        let (first, more) = keys.input.split_first()?;
        let more = more.iter().filter_map(|key| counts.number(key));
        let first = counts.number(first);
        Some(Self {
            input: first.map(|first| more.fold(first, u64::saturating_add)),
            output: counts.number(keys.output),
            hidden: counts
                .path(keys.hidden)
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            output_place: place(keys.output),
            apart: 0,
            total_place: place(keys.total),
        })
    }
}

/// The message of an error object; for other values the error itself.
pub(crate) fn error_message(error: Value<'_>) -> Cow<'_, str> {
    let message = error.text("message").or_else(|| error.as_str());
    message.unwrap_or(Cow::Borrowed(error.raw()))
}

/// The pieces of a tool call that are present: id, name and arguments.
pub(crate) fn call_pieces(
    choice: u64,
    part: u64,
    [id, name, arguments]: [Option<Value<'_>>; 3],
) -> impl Iterator<Item = Delta<'_>> {
    let pieces = [
        (DeltaKind::ToolId, id),
        (DeltaKind::ToolName, name),
        (DeltaKind::ToolArguments, arguments),
    ];
    let piece = move |(kind, value): (_, Option<_>)| Some(Delta::new(choice, part, kind, value?));
    pieces.into_iter().filter_map(piece)
}
