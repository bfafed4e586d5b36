//! Records of `GET /v1/chaos` and of `chaos` events: the chaos in force for a scope, and its changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::SpentRecord;

/// The chaos in force for one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActivationRecord {
    /// The scope; `default` has the traffic that names no scope.
    pub scope: String,
    /// Id of the activation; `null` before the first one.
    pub activation: Option<String>,
    /// Whether the scope has no activation of its own and inherits the default scope's.
    pub inherited: bool,
    /// Name of the profile; `inline` for an inline profile, `none` for no chaos.
    pub profile: String,
    /// Random seed.
    pub seed: u64,
    /// The key of draws, instead of the scope's name.
    pub key: String,
    /// Capture level: `headers`, `model` or `bodies`.
    pub observe: String,
    /// Number of rules.
    pub rules: usize,
    /// Start, RFC 3339; `null` before the first activation.
    pub started_at: Option<String>,
    /// Expiry, RFC 3339; `null` without a time to live.
    pub expires_at: Option<String>,
    /// Time to live, such as `1h30m`; `null` without one.
    pub ttl: Option<String>,
    /// The source of the time to live; `null` without one.
    pub ttl_from: Option<TtlFrom>,
    /// The suspended activation, which takes effect again after the run; `null` without one.
    #[serde(default)]
    pub suspended: Option<Suspended>,
    /// Consumption of model calls in the scope since the start.
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

/// The source of a time to live.
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
    /// The kind of change.
    pub change: Change,
    /// The reason, if Squall ended it without a request.
    pub reason: Option<String>,
    /// The chaos in force for the scope after the change.
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
