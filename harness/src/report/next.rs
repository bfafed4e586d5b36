//! What to do next when a run proves nothing.

use squall_journal::run::{CellState, RunKind, RunRecord, RunState};

/// What to do about a run that is inconclusive, in a sentence or two; `None` for any other, and where only
/// its reason can say. Code stands between backticks.
pub fn next_step(run: &RunRecord) -> Option<String> {
    let of_chaos = matches!(run.kind, RunKind::Chaos | RunKind::Contract | RunKind::Ci);
    if run.state != RunState::Inconclusive || !of_chaos {
        return None;
    }
    let evidence = || run.cells.iter().flat_map(|cell| &cell.evidence);
    if evidence().all(|asking| asking.exchanges.is_empty()) {
        return Some(
            "Next: let the agent's calls pass the proxy. Start it with the variables that `squall env` prints, or \
             by `agent.start`; a client that heeds no proxy variable takes the proxy as its base URL. \
             `squall verify -c SUITE` shows whether they arrive."
                .to_owned(),
        );
    }
    if run.coverage.exercised == 0 {
        return Some(
            "Next: let a rule meet the calls. `squall tail` shows what the agent calls, `squall explain EXCHANGE` what \
             each rule missed it by; a wider `match_url`, a higher `probability` or more prompts help."
                .to_owned(),
        );
    }
    let idle = run.cells.iter();
    let idle = idle.filter(|cell| cell.state == CellState::NotExercised);
    (idle.count() > 0).then(|| {
        "Next: raise the `probability` of the rules, or ask more prompts, until every scenario is exercised; the \
         report says of each cell what it lacked."
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
        assert_eq!(begin(&run).as_deref(), Some("Next: raise the `probabi"));
        run.coverage.exercised = 0;
        assert_eq!(begin(&run).as_deref(), Some("Next: let a rule meet th"));
        for cell in &mut run.cells {
            for asking in &mut cell.evidence {
                asking.exchanges.clear();
            }
        }
        assert_eq!(begin(&run).as_deref(), Some("Next: let the agent's ca"));
        run.kind = RunKind::Replay;
        assert_eq!(next_step(&run), None);
    }
}
