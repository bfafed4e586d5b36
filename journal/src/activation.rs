//! What is in force for a scope, and what changed: the shapes of `GET /v1/chaos` and of `chaos`
//! events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::SpentRecord;

/// What is in force for one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationRecord {
    /// The scope; `default` is everything that no other scope takes.
    pub scope: String,
    /// Id of the activation; `null` when nothing was ever put in force.
    pub activation: Option<String>,
    /// The scope has no activation of its own and is under the default scope's.
    pub inherited: bool,
    /// Name of the profile, `inline` for chaos given inline, `none` for no chaos.
    pub profile: String,
    /// Seed of every draw.
    pub seed: u64,
    /// Stands for the scope in the draws.
    pub key: String,
    /// What the journal reads: `headers`, `model` or `bodies`.
    pub observe: String,
    /// How many rules there are.
    pub rules: usize,
    /// Since when, RFC 3339; `null` when nothing was ever put in force.
    pub started_at: Option<String>,
    /// When it ends by itself, RFC 3339; `null` when it does not.
    pub expires_at: Option<String>,
    /// The time to live that holds, such as `1h30m`; `null` when it ends only when it is told to.
    pub ttl: Option<String>,
    /// Who set that time; `null` without one.
    pub ttl_from: Option<TtlFrom>,
    /// What the model calls of the scope have used up since then.
    #[serde(default)]
    pub spent: SpentRecord,
}

/// Who set a time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TtlFrom {
    /// Whoever put the activation in force.
    #[serde(rename = "request")]
    Request,
    /// The config's `safety.ttl`: nothing was asked for, or more.
    #[serde(rename = "safety.ttl")]
    Config,
}

/// A change of what is in force for one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChaosEvent {
    /// When, RFC 3339.
    pub at: String,
    /// What happened.
    pub change: Change,
    /// Why, when Squall itself ended it.
    pub reason: Option<String>,
    /// What is in force for the scope from now on.
    pub now: ActivationRecord,
}

/// What happened to an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was put in force.
    Started,
    /// Its profile was edited; its counters go on.
    Edited,
    /// It was ended.
    Ended,
}
