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
