//! One way to fail, with its parameters. The families are in [`crate::faults`]; here is what they
//! have in common, and the words they hand to plans.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::dice::Dice;
use crate::faults::llm::LlmFault;
use crate::faults::network::NetworkFault;
use crate::faults::tool::ToolFault;
use crate::plan::{Plan, VerdictIndex};

/// One way to fail.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Of the transport.
    Network(NetworkFault),
    /// Of a tool.
    Tool(ToolFault),
    /// Of a model call.
    Llm(LlmFault),
}

impl Fault {
    /// Writes this fault into `plan` on behalf of `verdict`; an error says why it cannot have its
    /// way. Pure: no clock, no socket, no dice but these.
    pub fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        dice: &mut Dice,
    ) -> Result<(), String> {
        match self {
            Self::Network(fault) => fault.apply(plan, verdict, dice),
            Self::Tool(fault) => fault.apply(plan, verdict, dice),
            Self::Llm(fault) => fault.apply(plan, verdict, dice),
        }
    }

    /// The parameters as they are used, in the words of files.
    pub fn parameters(&self) -> Map<String, Value> {
        match self {
            Self::Network(fault) => fault.parameters(),
            Self::Tool(fault) => fault.parameters(),
            Self::Llm(fault) => fault.parameters(),
        }
    }

    /// Whether what it does hangs on a draw of its own, beside the trigger's.
    pub(crate) fn is_random(&self) -> bool {
        match self {
            Self::Network(fault) => fault.is_random(),
            Self::Tool(fault) => fault.is_random(),
            Self::Llm(fault) => fault.is_random(),
        }
    }

    /// Whether it ends a connection before there is an exchange: decided at a CONNECT.
    pub(crate) fn is_of_the_connection(&self) -> bool {
        match self {
            Self::Network(fault) => fault.is_of_the_connection(),
            Self::Tool(_) | Self::Llm(_) => false,
        }
    }

    /// What it would do to an exchange that nothing else touches: how the rest of the crate learns
    /// on which side of the upstream it acts.
    pub(crate) fn alone(&self) -> Plan {
        let mut plan = Plan::default();
        // No other rule is there to be in the way.
        let _ = self.apply(&mut plan, 0, &mut Dice::unrolled());
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

/// A change to a model's answer as it streams.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamFault {
    /// The answer ends after that many tokens, with the provider's length reason.
    Truncate {
        /// Tokens kept, at least 0.
        max_tokens: u64,
    },
    /// The connection breaks after that many tokens.
    Cut {
        /// Tokens that still arrive.
        after_tokens: u64,
    },
    /// Tokens come slowly.
    Slow {
        /// Wait before the first token.
        time_to_first_token: Duration,
        /// Pace after it; `None`: as the upstream sends.
        tokens_per_second: Option<f64>,
    },
}
