//! The distribution of a number over the invocations of a scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The distribution of a number over the invocations of a scenario. Quantiles are median-unbiased estimates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Distribution")]
pub struct DistributionRecord {
    /// Name of the scenario.
    pub scenario: String,
    /// `latency` in milliseconds, `length` of the answer in characters, `cost` in US dollars, or `calls`.
    pub of: String,
    /// The value of each invocation for which it is known.
    pub values: Vec<f64>,
    /// The least value.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The greatest value.
    pub max: f64,
}
