//! A run compared with an earlier one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CellState;

/// A run compared with an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Comparison")]
pub struct ComparisonRecord {
    /// Id of the earlier run.
    pub baseline: String,
    /// Its score.
    pub score_before: Option<f64>,
    /// Cells that fail now, and either did not fail before or are new (`before` is `null`).
    pub newly_failing: Vec<CellChange>,
    /// Cells that failed before and pass now.
    pub fixed: Vec<CellChange>,
    /// Cells whose state changed in another way, including cells that no longer exist.
    pub changed: Vec<CellChange>,
    /// What differs beyond chance, most certain first.
    #[serde(default)]
    pub shifts: Vec<ShiftRecord>,
    /// The number of tests that were made.
    #[serde(default)]
    pub tests: u64,
    /// Cells with another share of passed invocations, in too few invocations to test.
    #[serde(default)]
    pub untested: u64,
}

impl ComparisonRecord {
    /// Cells that exist in both runs and fail only in the later one.
    pub fn broken(&self) -> usize {
        let was_there = self.newly_failing.iter().filter(|one| one.before.is_some());
        was_there.count()
    }

    /// Whether an existing cell fails now but not before, or the score is lower.
    pub fn is_regression(&self, score: Option<f64>) -> bool {
        let fallen = self
            .score_before
            .zip(score)
            .is_some_and(|(before, now)| now < before);
        fallen || self.broken() > 0
    }
}

/// A difference between two runs that is beyond chance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Shift")]
pub struct ShiftRecord {
    /// `passed`: the share of passed invocations, 0 to 100; or the median of `latency`, `length`, `cost` or `calls`.
    pub of: String,
    /// Name of the scenario; `null`: all that both runs have.
    pub scenario: Option<String>,
    /// Id or type of the invariant; `null`: all of them together, or a number.
    pub invariant: Option<String>,
    /// The type of mutation, if the prompt is mutated.
    pub mutation: Option<String>,
    /// The value in the earlier run.
    pub before: f64,
    /// The value in the later run.
    pub after: f64,
    /// Invocations of the earlier run with a value.
    pub values_before: u64,
    /// Invocations of the later run with a value.
    pub values_after: u64,
    /// The probability of such a difference between equal runs, corrected for the number of tests.
    pub p: f64,
}

/// The state of a cell in two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellChange {
    /// Id or type of the invariant.
    pub invariant: String,
    /// Name of the scenario.
    pub scenario: String,
    /// The earlier state; `null` if the cell is new.
    pub before: Option<CellState>,
    /// The later state; `null` if the cell no longer exists.
    pub after: Option<CellState>,
}
