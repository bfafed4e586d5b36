//! Samples with the verdicts in their names.

use super::{PromptSample, Sample};
use crate::run::{CellState, EvidenceRecord};

pub(super) fn sample(verdict: &str, faults_applied: u64) -> Sample {
    let state = match verdict {
        "holds" => CellState::Passed,
        "fails" | "fails always" => CellState::Failed,
        "unproven" => CellState::NotExercised,
        "error" => CellState::Error,
        _ => CellState::NotApplicable,
    };
    Sample {
        fails_without_chaos: verdict == "fails always",
        margin: None,
        evidence: EvidenceRecord {
            prompt: verdict.to_owned(),
            state: Some(state),
            reason: Some(verdict.to_owned()),
            faults_applied,
            ..EvidenceRecord::default()
        },
    }
}

pub(super) fn prompt(verdicts: &[&str]) -> PromptSample {
    let samples = verdicts.iter().map(|verdict| sample(verdict, 1));
    PromptSample {
        states: samples
            .map(|sample| (sample.state(), sample.fails_without_chaos))
            .collect(),
        ..PromptSample::default()
    }
}
