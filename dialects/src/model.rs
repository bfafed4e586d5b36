//! The neutral view of a model call that faults are written against.
//!
//! A [`ModelRequest`] is what a request says; a [`Reading`] is what one JSON document of an answer
//! says: the whole answer, or one event of a stream. A reading carries the *places* of what it
//! found, so a change can be made in the provider's own bytes.

use std::borrow::Cow;
use std::time::Duration;

use crate::json::NodeId;

/// An error as a provider's model endpoint reports it, before it is put into a dialect's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelError {
    /// Too many requests or tokens (429); the wait to announce.
    RateLimit {
        /// What `Retry-After` says; `None` leaves the header out.
        retry_after: Option<Duration>,
    },
    /// The provider failed (500 unless another 5xx is named).
    ServerError {
        /// Status, 500 to 599.
        status: u16,
    },
    /// The provider has no capacity (503, 529 …).
    Overloaded,
}

/// What a request asks of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRequest {
    /// The model asked for.
    pub model: Option<String>,
    /// Whether the answer is to come as a stream.
    pub stream: bool,
    /// Whether a stream is to end with token counts; without meaning when `stream` is false.
    pub usage_in_stream: bool,
    /// How many alternative answers are asked for, at least 1.
    pub choices: u64,
    /// How many messages the conversation holds.
    pub messages: usize,
    /// Names of the tools the model may call.
    pub tools: Vec<String>,
    /// Results of tool calls that the conversation holds.
    pub tool_results: Vec<ToolResult>,
}

/// The result of one tool call, as the agent reports it to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Id of the call it answers; a change must keep it.
    pub call: String,
    /// Where its content stands in the request's body: a JSON string or a list of parts.
    pub content: std::ops::Range<usize>,
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

/// What one JSON document of an answer says: the whole answer, or one event of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading<'d> {
    /// The model that answered.
    pub model: Option<Cow<'d, str>>,
    /// What the model wrote, in the order of the document.
    pub deltas: Vec<Delta<'d>>,
    /// Where choices end.
    pub finishes: Vec<Finished>,
    /// Values that repeat a choice's words token by token, such as log probabilities: they are
    /// set to null where words are cut.
    pub mirrors: Vec<(u64, NodeId)>,
    /// Token counts.
    pub usage: Option<Usage>,
    /// True when the provider announces by this event that token counts will follow.
    pub usage_follows: bool,
    /// The error the provider reports instead of, or in the middle of, an answer.
    pub error: Option<Cow<'d, str>>,
}

/// A piece of what the model wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta<'d> {
    /// Which alternative answer it belongs to, from 0.
    pub choice: u64,
    /// What it is a piece of.
    pub kind: DeltaKind,
    /// The piece itself, decoded; the tool's name for the head of a call.
    pub text: Cow<'d, str>,
    /// Where it stands. A JSON string can be cut short; anything else is kept or removed whole.
    pub place: NodeId,
    /// What is to be removed with it when nothing of it may stay: the tool call it belongs to.
    /// `None`: it is emptied in place.
    pub removed_with: Option<NodeId>,
}

/// What a [`Delta`] is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaKind {
    /// The answer's text.
    Text,
    /// Thinking that the provider shows.
    Reasoning,
    /// A refusal given in a field of its own.
    Refusal,
    /// The head of a tool call: the tool's name.
    ToolName {
        /// Which call of the choice, from 0.
        call: u64,
    },
    /// Arguments of a tool call.
    ToolArguments {
        /// Which call of the choice, from 0.
        call: u64,
    },
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
    /// Tokens in.
    pub input: Option<u64>,
    /// Tokens out, hidden ones included.
    pub output: Option<u64>,
    /// Tokens out that the agent does not see (hidden reasoning); 0 when none are reported.
    pub hidden: u64,
    /// Where `output` stands.
    pub output_place: Option<NodeId>,
    /// Where the sum of both stands.
    pub total_place: Option<NodeId>,
}
