//! What a run under rising concurrency measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The golden prompts under rising concurrency.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Load")]
pub struct LoadRecord {
    /// The success below which the agent breaks, 0 to 100: the minimum score, or else 90.
    pub limit: f64,
    /// Whether the agent's calls carry no scope, so that they are known for each level only, not for its invocations.
    pub calls_by_level: bool,
    /// The concurrency at which the agent breaks: of the first level with a success below the limit; `null`: of none.
    pub breaks_at: Option<u64>,
    /// The levels, in order.
    pub levels: Vec<LoadLevel>,
}

/// A level of concurrency.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadLevel {
    /// Concurrent invocations.
    pub concurrency: u64,
    /// Invocations of the agent.
    pub invocations: u64,
    /// Planned invocations that did not begin within the level's time.
    pub left_out: u64,
    /// Invocations that the agent answered and in which no invariant failed.
    pub succeeded: u64,
    /// The others, by their cause.
    pub failures: LoadFailures,
    /// `succeeded` divided by all invocations that were judged, 0 to 100; `null`: none was.
    pub success: Option<f64>,
    /// The time to the answer; `null`: there was none.
    pub latency_ms: Option<LatencyQuantiles>,
    /// Calls that the agent made.
    pub calls: u64,
    /// Calls that the same invocations make in the clean baseline.
    pub calls_needed: u64,
    /// `calls` divided by `calls_needed`; `null`: none are needed.
    pub amplification: Option<f64>,
    /// Calls to which Squall responded with 429.
    pub limited_by_squall: u64,
    /// Calls to which an upstream responded with 429.
    pub limited_by_upstream: u64,
    /// Input tokens of its model calls.
    pub input_tokens: u64,
    /// Output tokens of its model calls.
    pub output_tokens: u64,
    /// How the agent reacts to a rate limit; `null`: no call was limited.
    pub reaction: Option<LimitReaction>,
}

/// Failed invocations. Each counts for the first cause that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFailures {
    /// A call of the invocation got a 429.
    pub limited: u64,
    /// There was no answer in time.
    pub timed_out: u64,
    /// The agent responded with an error, or not at all.
    pub errors: u64,
    /// The agent answered, and an invariant failed.
    pub wrong_answers: u64,
}

/// Quantiles of the time to the answer, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyQuantiles {
    /// Median.
    pub p50: f64,
    /// 95 % are at most this.
    pub p95: f64,
    /// 99 % are at most this.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

/// How the agent reacts to a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitReaction {
    /// At most three calls made per call needed, and a success not below the limit.
    Converges,
    /// At most three calls made per call needed, and a success below the limit.
    GivesUp,
    /// More than three calls made per call needed.
    Thrashes,
}

impl LimitReaction {
    /// The reaction, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Converges => "converges",
            Self::GivesUp => "gives up",
            Self::Thrashes => "thrashes",
        }
    }
}

impl LoadFailures {
    /// All failed invocations.
    pub fn sum(self) -> u64 {
        self.limited + self.timed_out + self.errors + self.wrong_answers
    }
}

impl LoadLevel {
    /// Judged invocations.
    pub fn judged(&self) -> u64 {
        self.succeeded + self.failures.sum()
    }
}

impl LoadRecord {
    /// The lowest success of a level; `None`: nothing was judged.
    pub fn lowest(&self) -> Option<f64> {
        let shares = self.levels.iter().filter_map(|level| level.success);
        shares.min_by(f64::total_cmp)
    }
}
