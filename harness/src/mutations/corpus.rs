//! Mutants of a run as a corpus for later runs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::run::RunRecord;

/// The mutated prompts of a run as JSON Lines, each once, and the number of mutants that are left out: changed requests,
/// which need no corpus, and texts that evidence does not keep whole.
pub fn corpus(run: &RunRecord) -> (String, usize) {
    let mut left_out = BTreeSet::new();
    let evidence = run.cells.iter().flat_map(|cell| &cell.evidence);
    let lines = evidence.filter_map(|evidence| {
        let mutant = evidence.mutant.as_ref()?;
        let turns = evidence.turns();
        let mut texts = turns.iter().chain(&mutant.original);
        let is_whole = texts.all(|text| text.len() < super::LONGEST);
        let line = json!({
            "type": mutant.kind, "original": one_or_many(&mutant.original), "mutant": one_or_many(&turns),
        });
        if !is_whole || mutant.request.is_some() {
            left_out.insert((line.to_string(), &mutant.request));
            return None;
        }
        Some(line.to_string())
    });
    let mut seen = BTreeSet::new();
    let lines = lines
        .filter(|line| seen.insert(line.clone()))
        .map(|line| line + "\n");
    let text = lines.collect();
    (text, left_out.len())
}

fn one_or_many(turns: &[String]) -> Value {
    match turns {
        [text] => json!(text),
        turns => json!(turns),
    }
}
