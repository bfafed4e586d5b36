//! The neutral view of a model call that faults are written against.
//!
//! A [`ModelRequest`] is what a request says; a [`Reading`] is what one JSON document of an answer
//! says: the whole answer, or one event of a stream. A reading carries the *places* of what it
//! found, so a change can be made in the provider's own bytes.

mod error;

use std::borrow::Cow;
use std::collections::HashMap;

pub use self::error::{LimitFigures, LimitScope, ModelError};
use crate::json::{Edits, Kind, NodeId, Value};
use crate::tokens::{self, Counting};

/// What a request asks of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRequest {
    /// The model asked for.
    pub model: Option<String>,
    /// Whether the answer is to come as a stream.
    pub stream: bool,
    /// Whether a stream is to end with token counts that come in an event of their own; without
    /// meaning when `stream` is false.
    pub usage_in_stream: bool,
    /// How many alternative answers are asked for, at least 1.
    pub choices: u64,
    /// Names of the tools the model may call.
    pub tools: Vec<String>,
}

/// What a request's conversation says, and where.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation<'d> {
    /// System prompts that stand outside of the list of messages.
    pub system: Vec<Said<'d>>,
    /// The messages, oldest first.
    pub messages: Vec<Message<'d>>,
    /// Results of tool calls, in the order of the messages.
    pub tool_results: Vec<ToolResult<'d>>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'d> {
    /// Who speaks.
    pub role: Role,
    /// Where it stands: an item of the list of messages.
    pub place: NodeId,
    /// Its texts. Tool results are not among them, nor is thinking: that is signed.
    pub texts: Vec<Said<'d>>,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Whoever wrote the agent.
    System,
    /// Whoever uses it, or the agent in their name.
    User,
    /// The model.
    Assistant,
    /// A tool: the message is the result of a call.
    Tool,
}

/// The result of one tool call, as the agent reports it to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'d> {
    /// Id of the call it answers, where the provider has ids; a change must keep it.
    pub call: Option<Cow<'d, str>>,
    /// The tool that was called: from the result, or from the call with its id.
    pub tool: Option<Cow<'d, str>>,
    /// Which message it stands in.
    pub message: usize,
    /// Where it stands: the message, item, block or part that answers the call.
    pub place: NodeId,
    /// Where its content stands: a string, a list of parts or an object, whatever it is there; the same as
    /// `place` where it has none.
    pub content: NodeId,
    /// The texts in it.
    pub texts: Vec<Said<'d>>,
    /// What tools said as JSON, where it stands in a wrapping of the provider's.
    pub values: Vec<NodeId>,
}

impl<'d> ToolResult<'d> {
    /// The result at `place` of the call with this id, or of a call that has none; without `content`
    /// the tool said nothing.
    pub(crate) fn new(
        call: Option<Cow<'d, str>>,
        tools: &ToolNames<'d>,
        message: usize,
        place: Value<'d>,
        content: Option<Value<'d>>,
    ) -> Self {
        Self {
            tool: call.as_ref().and_then(|call| tools.get(call).cloned()),
            call,
            message,
            place: place.id(),
            content: content.unwrap_or(place).id(),
            texts: Said::all(content),
            values: Vec::new(),
        }
    }

    /// Whether it has no content: the tool said nothing.
    pub fn says_nothing(&self) -> bool {
        self.content == self.place
    }
}

/// Names of the tools that were called, by the calls' ids.
pub(crate) type ToolNames<'d> = HashMap<Cow<'d, str>, Cow<'d, str>>;

/// Notes which tool the call with an id is of, if both are known.
pub(crate) fn note_tool<'d>(
    tools: &mut ToolNames<'d>,
    id: Option<Cow<'d, str>>,
    tool: Option<Cow<'d, str>>,
) {
    tools.extend(id.zip(tool));
}

/// A text, and the JSON string it stands in.
#[derive(Debug, Clone, PartialEq)]
pub struct Said<'d> {
    /// The text, decoded.
    pub text: Cow<'d, str>,
    /// Where it stands.
    pub place: NodeId,
}

impl<'d> Said<'d> {
    /// The text of a JSON string; `None` for anything else.
    pub fn of(value: Value<'d>) -> Option<Self> {
        Some(Self {
            text: value.as_str()?,
            place: value.id(),
        })
    }

    /// The texts of a content: a string, or the `text` of the items of a list.
    pub(crate) fn all(content: Option<Value<'d>>) -> Vec<Self> {
        let strings = content.into_iter().chain(
            content
                .into_iter()
                .flat_map(Value::items)
                .filter_map(|part| part.get("text")),
        );
        strings.filter_map(Self::of).collect()
    }
}

/// What a tool's result is made to say instead of what the tool said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSaying<'a> {
    /// This; it may be empty.
    Output(&'a str),
    /// That the tool failed, in the field meant for it where the provider has one.
    Failure(&'a str),
}

impl<'a> ResultSaying<'a> {
    /// The words.
    pub fn text(self) -> &'a str {
        match self {
            Self::Output(text) | Self::Failure(text) => text,
        }
    }
}

/// What a choice is made to say instead of what the model said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saying<'a> {
    /// This text; it may be empty.
    Text(&'a str),
    /// A refusal, in the field meant for it where the provider has one.
    Refusal(&'a str),
}

impl<'a> Saying<'a> {
    /// The words.
    pub fn text(self) -> &'a str {
        match self {
            Self::Text(text) | Self::Refusal(text) => text,
        }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Finish {
    /// It had said everything.
    Done,
    /// It reached the greatest number of tokens.
    Length,
    /// It wants tools called.
    Tool,
    /// A content filter stopped it.
    Filtered,
    /// It refused.
    Refused,
    /// The context was full.
    Context,
    /// It wrote a tool call that is none.
    BadTool,
    /// A word of the provider's that has no neutral one, as the provider wrote it.
    Foreign(String),
}

impl Finish {
    /// The neutral word, as the journal keeps it.
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

/// A provider's words for why a model stopped, each with the neutral ones that it is written for.
///
/// A word is read as its first neutral one; a neutral one is written as the first word that has it.
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

/// What one JSON document of an answer says: the whole answer, or one event of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading<'d> {
    /// The model that answered.
    pub model: Option<Cow<'d, str>>,
    /// What the model wrote, in the order in which it wrote it.
    pub deltas: Vec<Delta<'d>>,
    /// Parts that open or close here, where a provider has events for that.
    pub edges: Vec<Edge>,
    /// Where choices end.
    pub finishes: Vec<Finished>,
    /// Values that repeat a choice's words token by token, such as log probabilities: they are
    /// set to null where words are cut.
    pub mirrors: Vec<(u64, NodeId)>,
    /// Where it says what the words of a text rest on, such as citations: it goes with them.
    pub sources: Vec<Source>,
    /// Results of tools that the provider runs itself, by the part that they are: they go with the
    /// words before them.
    pub results: Vec<(u64, NodeId)>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// True when the provider announces by this event that token counts will follow the end of
    /// the choices.
    pub usage_follows: bool,
    /// The error the provider reports instead of, or in the middle of, an answer.
    pub error: Option<Cow<'d, str>>,
    /// This event says who speaks, so it stays, emptied, even where nothing of what it says may.
    pub introduces: bool,
    /// This event ends the stream.
    pub ends: bool,
    /// What becomes of a call whose arguments are not JSON.
    pub bad_calls: BadCalls,
}

impl<'d> Reading<'d> {
    /// A choice ends, for the reason at `place`.
    pub(crate) fn finish(&mut self, choice: u64, finish: Finish, place: Value<'_>) {
        self.finishes.push(Finished {
            choice,
            finish,
            place: place.id(),
        });
    }

    /// A part of the only choice begins or ends.
    pub(crate) fn edge(&mut self, part: u64, closes: bool, thinks: bool) {
        self.edges.push(Edge {
            choice: 0,
            part,
            closes,
            thinks,
        });
    }

    /// The words of a part rest on this, unless it is absent or empty.
    pub(crate) fn rests_on(
        &mut self,
        choice: u64,
        part: u64,
        value: Option<Value<'_>>,
        may_be_empty: bool,
    ) {
        let filled = |value: &Value<'_>| match value.kind() {
            Kind::Array => value.items().next().is_some(),
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

    /// Whether a choice refused in the field meant for it.
    pub(crate) fn has_refusal(&self, choice: u64) -> bool {
        let refuses = |delta: &Delta<'d>| {
            delta.choice == choice && delta.kind == DeltaKind::Refusal && !delta.text.is_empty()
        };
        self.deltas.iter().any(refuses)
    }

    /// Sets how the tokens of its deltas are counted.
    pub fn count_by(&mut self, counting: Counting) {
        for delta in &mut self.deltas {
            delta.counting = counting;
        }
    }
}

/// What a provider does with a call whose arguments are not JSON, if it can tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BadCalls {
    /// It passes the call on as the model wrote it.
    #[default]
    Kept,
    /// The answer ends with [`Finish::BadTool`] and no call.
    Dropped,
}

/// What the words of a text rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Which alternative answer the text belongs to, from 0.
    pub choice: u64,
    /// Which part of it the text is, as of [`Delta::part`].
    pub part: u64,
    /// Where it stands.
    pub place: NodeId,
    /// It is a list that providers send empty, too; else they leave it out where there is nothing.
    pub may_be_empty: bool,
}

/// A piece of what the model wrote.
///
/// Pieces belong together that have choice, part and the same sort of kind: a text, or a tool call
/// with its name, id and arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta<'d> {
    /// Which alternative answer it belongs to, from 0.
    pub choice: u64,
    /// Which part of the choice: the number of its content block, output item or tool call. A
    /// provider that does not number texts gives 0, one that does not number calls
    /// [`number_of_whole_call`].
    pub part: u64,
    /// What it is a piece of.
    pub kind: DeltaKind,
    /// The piece itself, decoded; of a value that is no string, its JSON.
    pub text: Cow<'d, str>,
    /// Where it stands. A JSON string can be cut short; anything else is kept or removed whole.
    pub place: NodeId,
    /// What is removed with it when nothing of it may stay: the tool call or the block it belongs
    /// to. `None`: it is emptied in place. Arguments that are a string always are, their call goes
    /// with its name.
    pub removed_with: Option<NodeId>,
    /// What goes when the last item of the list goes that `removed_with` is in: that list, or the
    /// output item around it.
    pub goes_with_list: Option<NodeId>,
    /// It is no further piece: it repeats the whole of what earlier events said of its part, so it
    /// has to say what the agent got of those.
    pub repeats: bool,
    /// Where its item says that it is complete, if it does.
    pub status: Option<NodeId>,
    /// How its tokens are counted; an estimate unless [`Reading::count_by`] sets it.
    pub counting: Counting,
}

impl<'d> Delta<'d> {
    /// A piece that is emptied in place and repeats nothing.
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
            counting: Counting::Estimate,
        }
    }

    /// The same, removed together with `container`.
    #[must_use]
    pub fn inside(mut self, container: Value<'_>) -> Self {
        self.removed_with = Some(container.id());
        self
    }

    /// The same, removed together with `item`, and with the last item of its list `outer`.
    #[must_use]
    pub fn inside_list(mut self, item: Value<'_>, outer: Value<'_>) -> Self {
        self.removed_with = Some(item.id());
        self.goes_with_list = Some(outer.id());
        self
    }

    /// Makes its item say that it was cut short, where it says so at all.
    pub fn mark_cut(&self, edits: &mut Edits<'_>) {
        if let Some(status) = self.status {
            edits.replace(status, "\"incomplete\"");
        }
    }

    /// Whether it says something.
    pub fn speaks(&self) -> bool {
        self.counts() && !self.text.is_empty()
    }

    /// Its tokens, counted by itself; nothing for ids, signatures and what was counted before.
    pub fn tokens(&self) -> u64 {
        if self.counts() {
            tokens::count_piece(self.counting, &self.text)
        } else {
            0
        }
    }

    /// Its beginning of at most `tokens` tokens.
    pub fn take(&self, tokens: u64) -> &str {
        tokens::take(self.counting, &self.text, tokens)
    }

    /// Whether it is thinking or what signs it: it goes to the agent as it came, or not at all.
    pub fn is_thinking(&self) -> bool {
        matches!(self.kind, DeltaKind::Reasoning | DeltaKind::Signature)
    }

    /// Whether it is of a text that counts.
    pub fn counts(&self) -> bool {
        let opaque = matches!(self.kind, DeltaKind::ToolId | DeltaKind::Signature);
        !self.repeats && !opaque
    }
}

/// What a [`Delta`] is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeltaKind {
    /// The answer's text.
    Text,
    /// Thinking that the provider shows.
    Reasoning,
    /// What the provider signs its thinking with: opaque, kept or removed whole.
    Signature,
    /// A refusal given in a field of its own.
    Refusal,
    /// The id of a tool call, never in pieces.
    ToolId,
    /// The name of the tool that is called, never in pieces.
    ToolName,
    /// Arguments of a tool call: a string that holds JSON or a piece of it, or the JSON itself.
    ToolArguments,
}

impl DeltaKind {
    /// Whether it belongs to a tool call.
    pub fn is_of_a_call(self) -> bool {
        matches!(self, Self::ToolId | Self::ToolName | Self::ToolArguments)
    }
}

/// The [`Delta::part`] of a tool call that comes whole and bears no number: one that follows from
/// what the call says, so that calls of different events are told apart.
pub fn number_of_whole_call(call: Value<'_>) -> u64 {
    // FNV-1a.
    let bytes = call.raw().bytes();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The beginning or the end of a part of a choice, in an event of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Which alternative answer it belongs to.
    pub choice: u64,
    /// Which part, as of [`Delta::part`].
    pub part: u64,
    /// It ends; otherwise it begins.
    pub closes: bool,
    /// It is known to be thinking; of ends, most events do not tell.
    pub thinks: bool,
}

/// The end of a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Which alternative answer it is.
    pub choice: u64,
    /// Why it ended.
    pub finish: Finish,
    /// Where the provider's word stands.
    pub place: NodeId,
}

/// Token counts, as the provider counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens in, cached ones included.
    pub input: Option<u64>,
    /// Tokens out, hidden ones included.
    pub output: Option<u64>,
    /// Tokens out that the agent does not see (hidden reasoning); 0 when none are reported.
    pub hidden: u64,
    /// Where tokens out stand.
    pub output_place: Option<NodeId>,
    /// Of `output`, those that are not counted at `output_place` but beside it.
    pub apart: u64,
    /// Where the sum of both stands.
    pub total_place: Option<NodeId>,
}

/// Where a provider's token counts are.
#[derive(Debug)]
pub(crate) struct UsageKeys {
    /// Tokens in: the first, and what is counted apart from it.
    pub(crate) input: &'static [&'static str],
    pub(crate) output: &'static str,
    /// The path of tokens out that the agent does not see.
    pub(crate) hidden: &'static [&'static str],
    pub(crate) total: &'static str,
}

impl Usage {
    /// Reads token counts; `None` for what are none.
    pub(crate) fn read(counts: Value<'_>, keys: &UsageKeys) -> Option<Self> {
        if counts.kind() != Kind::Object {
            return None;
        }
        let place = |key| {
            let count = counts.get(key)?;
            (count.kind() == Kind::Number).then(|| count.id())
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

/// The message of an error object, or the error itself where it is something else.
pub(crate) fn error_message(error: Value<'_>) -> Cow<'_, str> {
    let message = error.text("message").or_else(|| error.as_str());
    message.unwrap_or(Cow::Borrowed(error.raw()))
}

/// The pieces of a tool call: its id, the tool's name and the arguments, as far as they are there.
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
