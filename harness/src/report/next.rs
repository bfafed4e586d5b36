//! The next step after an inconclusive run.

use crate::run::{CellRecord, CellState, RunKind, RunRecord, RunState};
use crate::scores::NO_FAULT;

/// What to do about a run that is inconclusive, in a sentence or two; `None` for any other, and where only
/// its reason can say. Code stands between backticks.
pub fn next_step(run: &RunRecord) -> Option<String> {
    let of_chaos = matches!(run.kind, RunKind::Chaos | RunKind::Contract | RunKind::Ci);
    if run.state != RunState::Inconclusive || !of_chaos {
        return None;
    }
    let evidence = || run.cells.iter().flat_map(|cell| &cell.evidence);
    if evidence().all(|invocation| invocation.exchanges.is_empty()) {
        return Some(
            "Next: send the agent's calls through the proxy. Start the agent with the variables that `squall env` prints, or \
             with `agent.start`; if its client ignores proxy variables, use the proxy as its base URL. \
             `squall verify -c SUITE` checks that calls arrive."
                .to_owned(),
        );
    }
    let idle = || {
        run.cells
            .iter()
            .filter(|cell| cell.state == CellState::NotExercised)
    };
    let did_not_fire = |cell: &CellRecord| {
        let reason = cell.reason.as_deref().unwrap_or_default();
        reason.starts_with(NO_FAULT) && reason.contains(" matched, and did not fire")
    };
    if run.coverage.exercised == 0 && !idle().any(did_not_fire) {
        return Some(
            "Next: make a rule match the agent's calls. The reason of each cell names the nearest rule and the condition that \
             failed; a wider `match_url` or more prompts help."
                .to_owned(),
        );
    }
    (idle().count() > 0).then(|| {
        "Next: check why the rules of some scenarios did not fire. The report in JSON has the reason of each cell: \
         often a rule's condition, a low `probability`, or too few prompts."
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::run;

    #[test]
    fn what_to_do_next_hangs_on_what_was_seen() {
        let mut run = run();
        assert_eq!(next_step(&run), None, "it is {:?}", run.state);
        run.state = RunState::Inconclusive;
        let begin = |run: &RunRecord| next_step(run).map(|step| step[..24].to_owned());
        assert_eq!(begin(&run).as_deref(), Some("Next: check why the rule"));
        run.coverage.exercised = 0;
        assert_eq!(begin(&run).as_deref(), Some("Next: make a rule match "));
        let matched = "no planned fault was applied: rule `r` matched, and did not fire: its `limit` was used up";
        let idle = CellRecord {
            state: CellState::NotExercised,
            reason: Some(matched.to_owned()),
            ..run.cells[0].clone()
        };
        run.cells.push(idle);
        assert_eq!(begin(&run).as_deref(), Some("Next: check why the rule"));
        for cell in &mut run.cells {
            for invocation in &mut cell.evidence {
                invocation.exchanges.clear();
            }
        }
        assert_eq!(begin(&run).as_deref(), Some("Next: send the agent's c"));
        run.kind = RunKind::Replay;
        assert_eq!(next_step(&run), None);
    }
}
