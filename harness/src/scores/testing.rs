//! Samples with the verdicts that their names say.

use std::collections::BTreeSet;

use super::{PromptSample, Sample};
use crate::invariants::{Judgement, Verdict};
use crate::run::EvidenceRecord;

pub(super) fn sample(verdict: &str, faults_applied: u64) -> Sample {
    let reason = verdict.to_owned();
    let judgement = match verdict {
        "holds" => Judgement::Judged(Verdict::Holds(reason)),
        "fails" | "fails always" | "gives up" => Judgement::Judged(Verdict::Fails(reason)),
        "unproven" => Judgement::Judged(Verdict::Insufficient(reason)),
        "error" => Judgement::Judged(Verdict::Error(reason)),
        _ => Judgement::NotApplicable(reason),
    };
    Sample {
        judgement,
        faults_applied,
        exercised: faults_applied > 0 || verdict == "gives up",
        idle: None,
        fails_without_chaos: Some(verdict == "fails always"),
        evidence: EvidenceRecord {
            telling: None,
            repeat: None,
            prompt: verdict.to_owned(),
            answer: None,
            latency_ms: 0.0,
            exchanges: Vec::new(),
            state: None,
            reason: None,
            faults_applied,
        },
    }
}

pub(super) fn prompt(faults_applied: u64, verdicts: &[&str]) -> PromptSample {
    let judgements = verdicts.iter().map(|verdict| {
        let sample = sample(verdict, faults_applied);
        (sample.judgement, sample.fails_without_chaos)
    });
    PromptSample {
        exercised: faults_applied > 0 || verdicts.contains(&"gives up"),
        families: BTreeSet::new(),
        judgements: judgements.collect(),
    }
}
