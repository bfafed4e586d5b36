//! Replayed sessions in a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use squall_documents::named;

use super::CellState;

/// A replayed session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplayedSession")]
pub struct ReplayRecord {
    /// The session's id.
    pub session: String,
    /// Its title; `null` if it has none.
    pub name: Option<String>,
    /// `failed` if an invariant failed, else `passed` if one passed; otherwise it could not be judged.
    pub state: CellState,
    /// What went wrong when it was recorded, in words; `null` if the session does not tell.
    pub expected_failure: Option<String>,
    /// The contract that judged it; `null`: the suite's own invariants.
    pub contract: Option<String>,
    /// Requests that got a recorded response.
    pub served: u64,
    /// Requests without a recorded response that was left.
    pub missed: u64,
    /// Requests and tunnels that went upstream.
    pub dialled: u64,
    /// The recorded calls beside those that the agent made in the first repeat. Live calls of models are left out.
    pub calls: Vec<CallDivergence>,
}

/// A call of the agent in a recorded session, in its replay, or in both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallDivergence {
    /// Whether both have it.
    pub state: DivergenceState,
    /// The call: a tool, a model, or method and URL.
    pub call: String,
    /// Number of the recorded response in the session, from 1; `null`: it was not recorded.
    pub recorded: Option<u64>,
    /// Id of the exchange in the replay; `null`: the agent did not make the call.
    pub made: Option<String>,
    /// The changed arguments, at most 20.
    #[serde(default)]
    pub changes: Vec<ArgumentChange>,
}

named! {
    /// Whether a call is in the recording and in the replay.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum DivergenceState {
        /// In both, with the same arguments.
        Same = "same",
        /// In both, with other arguments.
        Changed = "changed",
        /// In the recording only.
        Missing = "missing",
        /// In the replay only.
        New = "new",
    }
}

/// A difference between the arguments of a recorded call and of its replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentChange {
    /// JSON pointer into the arguments: below `/query`, whose parameters are numbered, or `/body`.
    pub pointer: String,
    /// The recorded value as JSON, cut after 500 characters; `null`: there was none.
    pub recorded: Option<String>,
    /// The value in the replay; `null`: there is none.
    pub made: Option<String>,
}
