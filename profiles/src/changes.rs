//! What plans say about an exchange: the changes to requests, answers and connections that faults can ask for.

mod answer;

use std::time::Duration;

pub use self::answer::{
    CallError, Instead, ResponseDrift, Rewrite, Severity, StreamFault, TextDrift, WrongCall,
};
use crate::glob::Glob;

/// Where a delay waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WaitPoint {
    /// Before the request is forwarded or the synthetic response is sent. The default.
    #[default]
    Request,
    /// After the upstream's head has come, before it is passed on.
    Response,
}

/// How fast bytes may pass.
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

/// How an intercepted handshake fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFailure {
    /// The leaf's validity ended yesterday.
    Expired,
    /// The leaf is for another host.
    WrongHost,
    /// The leaf is signed by a CA nobody knows.
    Untrusted,
    /// The handshake is answered with a fatal alert.
    Handshake,
}

/// Tools by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools(pub(crate) Option<Glob>);

impl Tools {
    /// Whether a tool of this name is one of them; `None` stands for one that goes without.
    pub fn has(&self, name: Option<&str>) -> bool {
        let tools = self.0.as_ref();
        tools.is_none_or(|tools| tools.matches(name.unwrap_or_default()))
    }

    /// The name or glob that was written; `None` for all tools.
    pub(crate) fn named(&self) -> Option<&str> {
        self.0.as_ref().map(Glob::as_str)
    }
}

/// What becomes of a tool's result, as the model is to read it.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultChange {
    /// The tool said this.
    Output(String),
    /// The tool failed and said this.
    Failure(String),
    /// The tool said this, an instruction, unless it has said one already: the wire's rules come
    /// first.
    Instruction(String),
    /// The beginning of what it said.
    Truncate(Amount),
    /// One field of the JSON it said changes.
    Drift(SchemaDrift),
    /// What the tool said the last time.
    Stale,
    /// What another call was told.
    Swapped,
}

/// An instruction that is put into a tool's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// The instruction, with its canary.
    pub text: String,
    /// Where it is put.
    pub placement: Placement,
    /// What the choice among several results hangs on: this exchange's draw.
    pub choice: u64,
}

/// Where in a tool's answer an instruction is put.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Placement {
    /// Behind the text that looks most like prose.
    #[default]
    Field,
    /// There, in an HTML comment.
    Comment,
    /// There, with zero-width spaces between its letters, but for the canary's.
    ZeroWidth,
    /// There, as the text of an image in Markdown.
    Markdown,
    /// As the message of an error.
    ErrorMessage,
}

/// What is made of a message of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poisoning {
    /// The false memory, with its canary.
    pub text: String,
    /// How it meets what is there.
    pub strategy: Strategy,
    /// Which of the user's messages.
    pub at: Turn,
}

/// How a text meets one that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Before it.
    Prepend,
    /// Behind it.
    #[default]
    Append,
    /// In its place.
    Replace,
}

/// One of the user's messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Turn {
    /// The oldest.
    #[default]
    First,
    /// The newest.
    Last,
    /// The so-many-th, from 1.
    Number(u64),
}

/// Filler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// How many tokens it is worth.
    pub tokens: u64,
    /// Where it stands.
    pub position: PaddingPlace,
}

/// A place among the user's messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PaddingPlace {
    /// Before the oldest.
    Start,
    /// Inside the one in the middle.
    Middle,
    /// Behind the newest.
    #[default]
    End,
}

/// One field of a JSON answer changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaDrift {
    /// What happens to the field.
    pub kind: DriftKind,
    /// The field's name; absent: chosen by the draw among all fields.
    pub field: Option<String>,
    /// What the choice of a field hangs on when none is named: this exchange's draw.
    pub choice: u64,
}

/// What happens to a drifting field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftKind {
    /// Its key changes.
    Rename,
    /// It is gone.
    Drop,
    /// Its value becomes null.
    Null,
    /// Its value changes type: numbers become strings, everything else likewise.
    Retype,
}

/// A change to the answers of an MCP server that only MCP has a place for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEdit {
    /// They come under another id than the call's.
    WrongId,
    /// The list of tools is another.
    List {
        /// How.
        drift: ListDrift,
        /// What descriptions say further, of [`ListDriftKind::Description`]: it carries a canary.
        instruction: String,
    },
}

/// A list of tools that changes under the agent's feet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListDrift {
    /// What happens to it.
    pub kind: ListDriftKind,
    /// Which tools; `None`: all.
    pub(crate) tools: Option<Glob>,
}

/// What happens to a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListDriftKind {
    /// Descriptions say something else than before: a rug pull.
    Description,
    /// Each tool's first argument has another name.
    Schema,
    /// Each tool is there twice.
    Duplicates,
    /// The tools are gone.
    Empty,
}

/// How much of a body is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// That many bytes.
    Bytes(u64),
    /// That share, in parts per million.
    Share(u32),
}
