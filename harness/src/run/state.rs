//! The kinds and states of runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use squall_documents::named;

named! {
    /// What a run executes.
    #[derive(
        Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum RunKind {
        /// Golden prompts under chaos.
        #[default]
        Chaos = "chaos",
        /// Invariants × scenarios.
        Contract = "contract",
        /// Mutations of golden prompts.
        Mutation = "mutation",
        /// Recorded sessions.
        Replay = "replay",
        /// Faults on each call of the golden prompts.
        Explore = "explore",
        /// Golden prompts under rising concurrency.
        Load = "load",
        /// Everything that a suite configures.
        Ci = "ci",
        /// Checks whether a run is possible.
        Verify = "verify",
    }
}

named! {
    /// The state of a run, in the order in which a run can reach them.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum RunState {
        /// The run waits in the queue.
        #[default]
        Queued = "queued",
        /// The run awaits approval.
        AwaitingApproval = "awaiting_approval",
        /// The run is in progress.
        Running = "running",
        /// The run ended, and the agent met the pass criteria.
        Passed = "passed",
        /// The run ended, and the agent did not meet the pass criteria.
        Failed = "failed",
        /// The run ended, but it proves nothing.
        Inconclusive = "inconclusive",
        /// The run could not finish.
        Errored = "errored",
        /// A user cancelled the run, or a `safety` limit stopped it.
        Cancelled = "cancelled",
    }
}

impl RunState {
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
        !matches!(self, Self::Queued | Self::AwaitingApproval | Self::Running)
    }
}
