//! What a run tries, and how far it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run tries.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// Golden prompts under chaos.
    Chaos,
    /// Invariants × scenarios.
    Contract,
    /// Mutations of golden prompts.
    Mutation,
    /// Recorded sessions.
    Replay,
    /// Everything a suite configures.
    Ci,
    /// Whether a run could be made at all.
    Verify,
}

impl RunKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Chaos,
        Self::Contract,
        Self::Mutation,
        Self::Replay,
        Self::Ci,
        Self::Verify,
    ];

    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chaos => "chaos",
            Self::Contract => "contract",
            Self::Mutation => "mutation",
            Self::Replay => "replay",
            Self::Ci => "ci",
            Self::Verify => "verify",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It waits for its turn.
    Queued,
    /// It waits for somebody to say yes.
    AwaitingApproval,
    /// It is under way.
    Running,
    /// It is over, and the agent did what is demanded.
    Passed,
    /// It is over, and the agent did not.
    Failed,
    /// It is over and proves nothing.
    Inconclusive,
    /// It could not be carried to its end.
    Errored,
    /// Somebody ended it, or a limit of `safety`.
    Cancelled,
}

impl RunState {
    /// Every state, in the order in which a run can come to them.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::AwaitingApproval,
        Self::Running,
        Self::Passed,
        Self::Failed,
        Self::Inconclusive,
        Self::Errored,
        Self::Cancelled,
    ];

    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Running => "running",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
            Self::Errored => "errored",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether a run may go from this state to that one.
    ///
    /// ```text
    /// queued ──▶ awaiting_approval ──▶ running ──▶ passed | failed | inconclusive
    ///    └────────────────┴───────────────┴──────▶ errored | cancelled
    /// ```
    ///
    /// A run that waits for nobody goes from `queued` to `running`.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Queued => matches!(
                next,
                Self::AwaitingApproval | Self::Running | Self::Errored | Self::Cancelled
            ),
            Self::AwaitingApproval => {
                matches!(next, Self::Running | Self::Errored | Self::Cancelled)
            }
            Self::Running => next.is_over(),
            Self::Passed | Self::Failed | Self::Inconclusive | Self::Errored | Self::Cancelled => {
                false
            }
        }
    }

    /// Whether nothing comes after it.
    pub fn is_over(self) -> bool {
        match self {
            Self::Queued | Self::AwaitingApproval | Self::Running => false,
            Self::Passed | Self::Failed | Self::Inconclusive | Self::Errored | Self::Cancelled => {
                true
            }
        }
    }
}
