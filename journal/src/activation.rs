//! What is in force for a scope, and changes of it: the shapes of `GET /v1/chaos` and of `chaos` events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::SpentRecord;

/// What is in force for one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationRecord {
    /// The scope; `default` is the rest of the traffic.
    pub scope: String,
    /// Id of the activation; `null` if there was none yet.
    pub activation: Option<String>,
    /// Whether the scope has none of its own, and inherits the default scope's.
    pub inherited: bool,
    /// Name of the profile, `inline` for chaos given inline, `none` for no chaos.
    pub profile: String,
    /// Seed of every draw.
    pub seed: u64,
    /// Replaces the scope in draws.
    pub key: String,
    /// Capture level: `headers`, `model` or `bodies`.
    pub observe: String,
    /// Number of rules.
    pub rules: usize,
    /// Start, RFC 3339; `null` if there was none yet.
    pub started_at: Option<String>,
    /// When it expires, RFC 3339; `null` if it does not.
    pub expires_at: Option<String>,
    /// Time to live, such as `1h30m`; `null` without one.
    pub ttl: Option<String>,
    /// What set the time to live; `null` without one.
    pub ttl_from: Option<TtlFrom>,
    /// What takes effect here again after a run that suspended it; `null` outside of runs.
    #[serde(default)]
    pub suspended: Option<Suspended>,
    /// What the model calls of the scope have used since then.
    #[serde(default)]
    pub spent: SpentRecord,
}

/// An activation that a run suspends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suspended {
    /// Name of its profile.
    pub profile: String,
    /// Id of the run.
    pub run: String,
}

/// What set a time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TtlFrom {
    /// The request that activated it.
    #[serde(rename = "request")]
    Request,
    /// The configuration's `safety.ttl`: the request had none, or a longer one.
    #[serde(rename = "safety.ttl")]
    Config,
}

/// A change of what is in force for one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChaosEvent {
    /// Time, RFC 3339.
    pub at: String,
    /// What happened.
    pub change: Change,
    /// Why, if Squall ended it by itself.
    pub reason: Option<String>,
    /// What is in force for the scope from now on.
    pub now: ActivationRecord,
}

/// A change of an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It started.
    Started,
    /// Its profile was edited; its counters continue.
    Edited,
    /// It ended.
    Ended,
}
