//! The kinds and states of runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run executes.
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
    /// Everything that a suite configures.
    Ci,
    /// Checks whether a run is possible.
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

    /// The name of the kind in the API.
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

    /// The kind with that name in the API.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// The run waits in the queue.
    Queued,
    /// The run awaits approval.
    AwaitingApproval,
    /// The run is in progress.
    Running,
    /// The run ended, and the agent met the pass criteria.
    Passed,
    /// The run ended, and the agent did not meet the pass criteria.
    Failed,
    /// The run ended, but it proves nothing.
    Inconclusive,
    /// The run could not finish.
    Errored,
    /// A user cancelled the run, or a `safety` limit stopped it.
    Cancelled,
}

impl RunState {
    /// Every state, in the order in which a run can reach them.
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

    /// The name of the state in the API.
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

    /// The state with that name in the API.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether a run may change from this state to `next`.
    ///
    /// ```text
    /// queued ──▶ awaiting_approval ──▶ running ──▶ passed | failed | inconclusive
    ///    └────────────────┴───────────────┴──────▶ errored | cancelled
    /// ```
    ///
    /// A run that needs no approval changes from `queued` to `running`.
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

    /// Whether the state is final.
    pub fn is_over(self) -> bool {
        match self {
            Self::Queued | Self::AwaitingApproval | Self::Running => false,
            Self::Passed | Self::Failed | Self::Inconclusive | Self::Errored | Self::Cancelled => {
                true
            }
        }
    }
}
