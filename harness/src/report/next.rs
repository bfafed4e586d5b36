//! The next step after an inconclusive run.

use super::{Report, failed_invocations};
use crate::run::{CellRecord, CellState, RunKind, RunRecord, RunState, ScenarioRecord};

/// Advice on an inconclusive run, in one or two sentences. `None` for other runs, and if only the reason helps.
/// Code is in backticks.
pub fn next_step(run: &RunRecord) -> Option<&'static str> {
    let of_chaos = matches!(run.kind, RunKind::Chaos | RunKind::Contract | RunKind::Ci);
    if run.state != RunState::Inconclusive || !of_chaos {
        return None;
    }
    let mut evidence = run.cells.iter().flat_map(|cell| &cell.evidence);
    if evidence.all(|invocation| invocation.exchanges.is_empty()) {
        return Some(
            "Next: send the agent's calls through the proxy. Start the agent with the variables that `squall env` prints, or \
             with `agent.start`; if its client ignores proxy variables, use the proxy as its base URL. \
             `squall verify -c SUITE` checks that calls arrive.",
        );
    }
    let mut cells = run.cells.iter();
    let is_idle =
        cells.any(|cell| cell.state == CellState::NotExercised && cell.faults_applied == 0);
    is_idle.then_some(
        "Next: check why the rules of some scenarios did not fire. The reason of each cell names the nearest rule and what \
         failed: often a condition, a low `probability`, or too few prompts.",
    )
}

/// The commands that repeat the first failed invocation of a cell. `None`: none failed, or the run is not stored. A
/// session has no changed request, but the same seed gives the same mutants.
pub(super) fn replay_command(report: &Report, cell: &CellRecord) -> Option<String> {
    let run = &report.run;
    let invocations = failed_invocations(run);
    let number = invocations.iter().position(|invocation| {
        let mut failed = invocation.failed.iter();
        failed.any(|(of, _)| std::ptr::eq(*of, cell))
    })?;
    let suite = (run.suite_file.as_deref())
        .map_or_else(String::new, |file| format!(" -c {}", shell_word(file)));
    if invocations[number].has_changed_request() {
        let mut scenarios = run.scenarios.iter();
        let is_it = |one: &ScenarioRecord| one.name == cell.scenario && one.under_chaos;
        let chaos = if scenarios.any(is_it) { " --chaos" } else { "" };
        let seed = run.seed;
        return Some(format!("squall mutate{suite} --seed {seed}{chaos}"));
    }
    let (id, number) = (&run.id, number + 1);
    (!report.stands_alone).then(|| {
        format!(
            "squall replay export --run {id} --output incidents && squall replay run \
             incidents/{id}-{number:03}.yaml{suite}"
        )
    })
}

/// A text as one word of a POSIX shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportFormat;
    use crate::report::testing::{fixture, run};
    use crate::run::MutantRecord;

    #[test]
    fn a_changed_request_is_repeated_with_its_seed() {
        let mut report = fixture();
        report.run.suite_file = Some("the suite.yaml".to_owned());
        let cells = &mut report.run.cells;
        let cell = cells
            .iter_mut()
            .find(|cell| cell.state == CellState::Failed);
        let cell = cell.expect("a failed cell");
        cell.evidence[0].mutant = Some(MutantRecord {
            kind: "request_method_attack".to_owned(),
            original: vec!["Weather?".to_owned()],
            turns: Vec::new(),
            lineage: vec!["template put".to_owned()],
            request: Some(r#"{"method":"PUT"}"#.to_owned()),
        });
        let cell = cell.clone();
        let place = report.run.cells.iter().position(|one| *one == cell);
        let command =
            |report: &Report| replay_command(report, &report.run.cells[place.expect("it")]);
        let expected = format!(
            "squall mutate -c 'the suite.yaml' --seed {}",
            report.run.seed
        );
        assert_eq!(command(&report), Some(expected.clone()));
        for scenario in &mut report.run.scenarios {
            scenario.under_chaos = scenario.name == cell.scenario;
        }
        assert_eq!(command(&report), Some(format!("{expected} --chaos")));
        let line = report.render(ReportFormat::Jsonl);
        assert!(
            line.contains("template put") && line.contains("PUT"),
            "{line}"
        );
    }

    #[test]
    fn what_to_do_next_depends_on_what_was_seen() {
        let mut run = run();
        assert_eq!(next_step(&run), None, "it is {:?}", run.state);
        run.state = RunState::Inconclusive;
        let begin = |run: &RunRecord| next_step(run).map(|step| &step[..24]);
        run.cells[0].state = CellState::NotExercised;
        assert_eq!(begin(&run), Some("Next: check why the rule"));
        for cell in &mut run.cells {
            for invocation in &mut cell.evidence {
                invocation.exchanges.clear();
            }
        }
        assert_eq!(begin(&run), Some("Next: send the agent's c"));
        run.kind = RunKind::Replay;
        assert_eq!(next_step(&run), None);
    }
}
