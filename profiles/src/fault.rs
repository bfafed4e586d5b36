//! One way to fail, with its parameters. The families are in [`crate::faults`]; here is what they
//! have in common, and the words they hand to plans.

mod stream;

use std::time::Duration;

use serde_json::{Map, Value};
use squall_documents::Fields;

pub use self::stream::{
    CallError, Instead, ResponseDrift, Rewrite, Severity, StreamFault, TextDrift, WrongCall,
};
use crate::allowance::Allowance;
use crate::budget::Budget;
use crate::dice::Dice;
use crate::facts::Kind;
use crate::faults::context::ContextAttack;
use crate::faults::llm::LlmFault;
use crate::faults::network::NetworkFault;
use crate::faults::tool::ToolFault;
use crate::glob::Glob;
use crate::plan::{Amount, Plan, RequestEdit, VerdictIndex};
use crate::profile::modes::{MODEL_INPUT, Mode};

/// One way to fail.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Of the transport.
    Network(NetworkFault),
    /// Of a tool.
    Tool(ToolFault),
    /// Of a tool that runs inside the agent, in what the model is told of its results
    /// (`at: model_input`).
    Told(Tools, ToolFault),
    /// Of a model call.
    Llm(LlmFault),
    /// Of what the model reads.
    Context(ContextAttack),
}

/// Asks the fault that it is, of whichever family.
macro_rules! ask {
    ($fault:expr, $method:ident($($given:expr),*)) => {
        match $fault {
            Fault::Network(fault) => fault.$method($($given),*),
            Fault::Tool(fault) | Fault::Told(_, fault) => fault.$method($($given),*),
            Fault::Llm(fault) => fault.$method($($given),*),
            Fault::Context(attack) => attack.$method($($given),*),
        }
    };
}

impl Fault {
    /// Reads the parameters of a mode; what is wrong with them is noted.
    pub(crate) fn read(mode: &Mode, fields: &mut Fields<'_, '_>, tools: &Tools) -> Option<Self> {
        mode.wants(fields);
        let about = "`model_input` for tools that run inside the agent: what the model is told of their results \
                     changes.";
        let is_told = mode.can_be_told
            && fields
                .word("at", about, "place", &[(MODEL_INPUT, ())])
                .is_some();
        match (mode.read)(fields, tools)? {
            Self::Tool(fault) if is_told => Some(Self::Told(tools.clone(), fault)),
            fault => Some(fault),
        }
    }

    /// Writes this fault into `plan` on behalf of `verdict`; an error says why it cannot have its
    /// way. `kind` is the exchange's: what is carried by tools' answers is found in two places. Pure:
    /// no clock, no socket, no dice but these.
    pub fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        kind: Kind,
        dice: &mut Dice,
    ) -> Result<(), String> {
        match self {
            Self::Told(tools, _) => {
                let change = ask!(self, told(plan, verdict, dice))?;
                plan.edit_request(verdict, RequestEdit::Results(tools.clone(), change));
                Ok(())
            }
            fault if kind == Kind::Llm => ask!(fault, apply(plan, verdict, dice)),
            fault => ask!(fault, apply_to_tools(plan, verdict, dice)),
        }
    }

    /// The parameters as they are used, in the words of files.
    pub fn parameters(&self) -> Map<String, Value> {
        let mut map = Map::new();
        match self {
            Self::Told(_, fault) => fault.parameters_as_told(&mut map),
            fault => ask!(fault, parameters(&mut map)),
        }
        map
    }

    /// Whether when or how it fires hangs on how many tokens there are.
    pub(crate) fn hangs_on_tokens(&self) -> bool {
        ask!(self, hangs_on_tokens())
    }

    /// Whether what it does, or what it says of tokens, hangs on how many there are.
    pub(crate) fn counts_tokens(&self) -> bool {
        ask!(self, counts_tokens())
    }

    /// Whether what it does hangs on a draw of its own, beside the trigger's, or on the fingerprint
    /// that dice are made of.
    pub(crate) fn is_random(&self) -> bool {
        let on_the_wire = !matches!(self, Self::Told(..));
        ask!(self, is_random()) || on_the_wire && ask!(self, tells_calls_apart())
    }

    /// Whether it keeps a connection from being opened: decided at a CONNECT, where there is one.
    pub fn is_of_the_connection(&self) -> bool {
        ask!(self, is_of_the_connection())
    }

    /// Whether it is in the TLS handshake of a CONNECT, and nowhere else.
    pub fn is_of_the_handshake(&self) -> bool {
        matches!(self, Self::Network(NetworkFault::TlsFailure(_)))
    }

    /// Whether it decides what a model's answer says or how it ends, so that no other can.
    pub(crate) fn decides_the_answer(&self) -> bool {
        ask!(self, decides_the_answer())
    }

    /// What may be asked before it fires at all: it limits what goes beyond.
    pub(crate) fn allowance(&self) -> Option<Allowance> {
        ask!(self, allowance())
    }

    /// What may be used up before it fires at all.
    pub(crate) fn budget(&self) -> Option<Budget> {
        ask!(self, budget())
    }

    /// Whether it lets some calls pass before it fires at all.
    pub(crate) fn waits_for_use(&self) -> bool {
        self.allowance().is_some() || self.budget().is_some()
    }

    /// What it would do to an exchange that nothing else touches: how the rest of the crate learns
    /// on which side of the upstream it acts.
    pub(crate) fn alone(&self) -> Plan {
        let mut plan = Plan::default();
        // No other rule is there to be in the way.
        let kinds = match self {
            Self::Context(_) => &[Kind::Llm, Kind::Tool][..],
            Self::Network(_) | Self::Tool(_) | Self::Told(..) | Self::Llm(_) => &[Kind::Llm],
        };
        for kind in kinds {
            let _ = self.apply(&mut plan, 0, *kind, &mut Dice::unrolled());
        }
        plan
    }
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
    pub position: Position,
}

/// A place among the user's messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Position {
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
