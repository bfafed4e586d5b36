//! Changes to requests, responses and connections that a plan can contain.

mod answer;

use std::time::Duration;

pub use self::answer::{
    CallError, Instead, ResponseDrift, Rewrite, Severity, StreamFault, TextDrift, WrongCall,
};
use crate::dice::MILLION;
use crate::glob::Glob;

squall_documents::named! {
    /// When a delay applies.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum WaitPoint {
        /// Before the request is forwarded or the synthetic response is sent. The default.
        #[default]
        Request = "request",
        /// After the upstream's response head has arrived, before it is passed on.
        Response = "response",
    }
}

/// A bandwidth limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes per second, at least 1 (`rate_kbps` × 125 in files).
    pub bytes_per_second: u64,
}

/// Bodies delivered in small pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Mean size of a piece in bytes, at least 1.
    pub average_size: u64,
    /// Each piece differs from the mean by at most this many bytes; below `average_size`.
    pub size_variation: u64,
    /// Pause between pieces.
    pub delay: Duration,
}

squall_documents::named! {
    /// How an intercepted handshake fails.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TlsFailure {
        /// The leaf's validity ended yesterday.
        Expired = "expired",
        /// The leaf is for another host.
        WrongHost = "wrong_host",
        /// The leaf is signed by an unknown CA.
        Untrusted = "untrusted",
        /// The handshake fails with a fatal alert.
        Handshake = "handshake",
    }
}

/// Tools by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools(pub(crate) Option<Glob>);

impl Tools {
    /// Whether a tool with this name is one of them; `None` is a tool without a name.
    pub fn has(&self, name: Option<&str>) -> bool {
        let tools = self.0.as_ref();
        tools.is_none_or(|tools| tools.matches(name.unwrap_or_default()))
    }

    /// The name or glob as written; `None` for all tools.
    pub(crate) fn named(&self) -> Option<&str> {
        self.0.as_ref().map(Glob::as_str)
    }
}

/// A change to a tool result in the model's input.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultChange {
    /// Replaces the result by this output.
    Output(String),
    /// Replaces the result by a failure with this message.
    Failure(String),
    /// Replaces the result by this instruction, unless it already contains one from a rule on the
    /// wire.
    Instruction(String),
    /// Keeps the beginning of the result.
    Truncate(Amount),
    /// Changes one field of the result's JSON.
    Drift(SchemaDrift),
    /// Replaces the result by the tool's previous one.
    Stale,
    /// Replaces the result by that of another call.
    Swapped,
}

/// An instruction to inject into a tool response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// The instruction, with its canary.
    pub text: String,
    /// Where it is injected.
    pub placement: Placement,
    /// Selects one of several results; from this exchange's draw.
    pub choice: u64,
}

squall_documents::named! {
    /// The place of an injected instruction in a tool response.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Placement {
        /// After the text that looks most like prose.
        #[default]
        Field = "field",
        /// After that text, in an HTML comment.
        Comment = "comment",
        /// After that text, with zero-width spaces between its letters except in the canary.
        ZeroWidth = "zero_width",
        /// After that text, as the alternative text of a Markdown image.
        Markdown = "markdown",
        /// As the message of an error.
        ErrorMessage = "error_message",
    }
}

/// A change to a user message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poisoning {
    /// The false memory, with its canary.
    pub text: String,
    /// How it is combined with the message.
    pub strategy: Strategy,
    /// The user message to change.
    pub at: Turn,
}

squall_documents::named! {
    /// How a text is combined with an existing one.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Strategy {
        /// Before it.
        Prepend = "prepend",
        /// After it.
        #[default]
        Append = "append",
        /// Instead of it.
        Replace = "replace",
    }
}

/// The position of a user message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Turn {
    /// The oldest.
    #[default]
    First,
    /// The newest.
    Last,
    /// The message with this number, from 1.
    Number(u64),
}

/// Filler text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// Its length in tokens.
    pub tokens: u64,
    /// Its place.
    pub position: PaddingPlace,
}

squall_documents::named! {
    /// A place among the user messages.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum PaddingPlace {
        /// Before the oldest message.
        Start = "start",
        /// Inside the middle message.
        Middle = "middle",
        /// After the newest message.
        #[default]
        End = "end",
    }
}

/// A change to one field of a JSON response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaDrift {
    /// The kind of change.
    pub kind: DriftKind,
    /// The field's name; `None`: drawn among all fields.
    pub field: Option<String>,
    /// Selects a field if none is named; from this exchange's draw.
    pub choice: u64,
}

squall_documents::named! {
    /// A change to a field.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DriftKind {
        /// Its key changes.
        Rename = "rename",
        /// The field is removed.
        Drop = "drop",
        /// Its value becomes null.
        Null = "null",
        /// Its value changes type: a string becomes a list with it, other values become strings.
        Retype = "retype",
    }
}

/// A change to MCP responses that has no equivalent outside of MCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEdit {
    /// The response has another id than the call.
    WrongId,
    /// The tool list changes.
    List {
        /// The change.
        drift: ListDrift,
        /// Text with a canary to add to descriptions, for [`ListDriftKind::Description`].
        instruction: String,
    },
}

/// A change of a tool list between two requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListDrift {
    /// The kind of change.
    pub kind: ListDriftKind,
    /// The affected tools; `None`: all.
    pub(crate) tools: Option<Glob>,
}

squall_documents::named! {
    /// A change to a tool list.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ListDriftKind {
        /// Descriptions differ from before: a rug pull.
        Description = "description",
        /// Each tool's first argument is renamed.
        Schema = "schema",
        /// Each tool is listed twice.
        Duplicates = "duplicates",
        /// The tools are removed.
        Empty = "empty",
    }
}

/// How much of a body is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// This many bytes.
    Bytes(u64),
    /// This share, in parts per million.
    Share(u32),
}

impl Amount {
    /// How many of `length` bytes are kept.
    pub fn of(self, length: usize) -> usize {
        let kept = match self {
            Self::Bytes(bytes) => u128::from(bytes),
            Self::Share(share) => length as u128 * u128::from(share) / u128::from(MILLION),
        };
        usize::try_from(kept).unwrap_or(usize::MAX)
    }
}
