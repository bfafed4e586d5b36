//! The metrics of runs.

use prometheus::{GaugeVec, IntCounterVec, Opts};

use super::Families;

/// The metrics of runs.
#[derive(Debug)]
pub struct RunMetrics {
    ended: IntCounterVec,
    scores: GaugeVec,
    cut_short: IntCounterVec,
}

impl RunMetrics {
    pub(super) fn new(families: &Families<'_>) -> Self {
        let scores = Opts::new(
            "squall_run_score",
            "Score of the latest run that has one, 0 to 100",
        );
        Self {
            ended: families.counters(
                "squall_runs_total",
                "Runs that are over",
                &["kind", "state"],
            ),
            scores: families.register(GaugeVec::new(scores, &["kind"])),
            cut_short: families.counters(
                "squall_runs_cut_short_total",
                "Runs that were ended early, by a request or a limit",
                &["kind", "reason"],
            ),
        }
    }

    /// Counts zero finished runs of a kind and state.
    pub fn none_ended(&self, kind: &str, state: &str) {
        self.ended.with_label_values(&[kind, state]);
    }

    /// Counts a run that is over, with its score if it was judged.
    pub fn ended(&self, kind: &str, state: &str, score: Option<f64>) {
        self.ended.with_label_values(&[kind, state]).inc();
        if let Some(score) = score {
            self.scores.with_label_values(&[kind]).set(score);
        }
    }

    /// Counts a run that was cut short; `reason` is one of a fixed set (`cancel`, `halt`, …).
    pub fn cut_short(&self, kind: &str, reason: &str) {
        self.cut_short.with_label_values(&[kind, reason]).inc();
    }
}
