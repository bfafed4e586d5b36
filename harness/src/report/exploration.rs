//! An exploration over calls: its figures, and the heat map of calls × faults.

use crate::count::count;
use crate::run::{ExplorationRecord, FaultSpace, PointState, RunRecord};

/// The heading of the failed points that have no cell in the map.
pub const FAILED_PAIRS: &str = "Failed under a pair of faults:";

/// The result of each fault on each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatMap {
    /// The calls, in the order in which they were seen.
    pub calls: Vec<String>,
    /// For each fault a cell for each call: `passed`, `failed`, `not reached`, `not judged` or `not run`; `None`: the
    /// call's kind does not have the fault.
    pub rows: Vec<(String, Vec<Option<&'static str>>)>,
    /// The failed points without a cell: pairs of faults on calls of the clean run.
    pub failed_pairs: Vec<String>,
}

/// The heat map of an exploration. Calls that occur only under other faults are tried under those.
pub fn heat_map(exploration: &ExplorationRecord) -> HeatMap {
    let numbers = 0..exploration.calls.len();
    let calls = numbers.clone().map(|number| {
        let call = &exploration.calls[number];
        let mut name = exploration.call_name(number);
        if exploration.calls.iter().any(|call| call.prompt != 1) {
            name = format!("prompt {}: {name}", call.prompt);
        }
        let under = call.under.iter();
        let under =
            under.map(|one| format!("{} on the {}", one.fault, exploration.call_name(one.call)));
        let under = under.collect::<Vec<_>>().join(" and ");
        if under.is_empty() {
            name
        } else {
            format!("{name}, under {under}")
        }
    });
    let mut faults: Vec<&String> = Vec::new();
    for fault in exploration.calls.iter().flat_map(|call| &call.faults) {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let rows = faults.into_iter().map(|fault| {
        let row = numbers.clone().map(|number| {
            let has_it = exploration.calls[number].faults.contains(fault);
            let point = exploration.single_on(number, fault);
            has_it.then(|| point.map_or("not run", |point| point.state.words()))
        });
        (fault.clone(), row.collect())
    });
    let failed = exploration.in_state(PointState::Failed);
    let pairs = failed.filter(|point| {
        let last = point.faults.last();
        let cell = last.and_then(|last| exploration.single_on(last.call, &last.fault));
        cell.is_none_or(|cell| cell.faults != point.faults)
    });
    HeatMap {
        calls: calls.collect(),
        rows: rows.collect(),
        failed_pairs: pairs.map(|point| point.name.clone()).collect(),
    }
}

/// The figures of an exploration, a line each.
pub fn exploration_lines(run: &RunRecord) -> Vec<String> {
    let Some(exploration) = &run.exploration else {
        return Vec::new();
    };
    let of = |what: &str, space: &FaultSpace| {
        format!(
            "{what}: {:.1} % of {} covered: {} executed, {} pruned, {} left",
            space.coverage(),
            count(space.points, "point"),
            space.executed,
            space.pruned,
            space.left(),
        )
    };
    let left = exploration.single.left() + exploration.pairs.left();
    let left = (left > 0).then(|| {
        format!(
            "{} left when the exploration ended: `squall explore --resume --budget N` continues it",
            count(left, "point")
        )
    });
    let lines = [
        exploration.summary(),
        of("single faults", &exploration.single),
        of("pairs of faults", &exploration.pairs),
    ];
    lines.into_iter().chain(left).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::{Report, ReportFormat, testing};

    /// A run that explored two calls of the clean run and a retry.
    fn explored() -> RunRecord {
        let call = |call: &str, number: u64, under: &[(usize, &str)], faults: &[&str]| {
            let under = under
                .iter()
                .map(|(call, fault)| json!({ "call": call, "fault": fault }));
            json!({
                "prompt": 1, "call": call, "number": number, "logical": 1, "faults": faults, "conditions": {},
                "ordinal": number, "under": under.collect::<Vec<_>>(),
            })
        };
        let point = |faults: &[(usize, &str)], state: &str| {
            let name: Vec<_> = faults.iter().map(|(_, fault)| *fault).collect();
            let faults = faults
                .iter()
                .map(|(call, fault)| json!({ "call": call, "fault": fault }));
            let name = name.join(" and ");
            json!({ "name": name, "faults": faults.collect::<Vec<_>>(), "state": state, "behaviour": "" })
        };
        let mut run = testing::run();
        let exploration = json!({
            "budget": 9, "invocations": 6, "resumed": null, "suite": {},
            "calls": [
                call("model m", 1, &[], &["reset_peer", "empty"]),
                call("s|earch", 1, &[], &["error", "reset_peer"]),
                call("s|earch", 2, &[(1, "error")], &["error"]),
            ],
            "points": [
                point(&[(1, "error")], "passed"),
                point(&[(0, "reset_peer")], "failed"),
                point(&[(1, "reset_peer")], "not_reached"),
                point(&[(1, "error"), (2, "error")], "not_judged"),
                point(&[(0, "empty"), (1, "error")], "failed"),
            ],
            "single": { "points": 5, "executed": 4, "pruned": 0 },
            "pairs": { "points": 4, "executed": 1, "pruned": 2 },
        });
        run.exploration = serde_json::from_value(exploration).expect("an exploration");
        run
    }

    #[test]
    #[rustfmt::skip]
    fn a_heat_map_has_the_result_of_each_fault_that_a_call_has() {
        let run = explored();
        let map = heat_map(run.exploration.as_ref().expect("explored"));
        assert_eq!(map.calls, [
            "1st call of model m",
            "1st call of s|earch",
            "2nd call of s|earch, under error on the 1st call of s|earch",
        ]);
        let rows: Vec<_> = map.rows.iter().map(|(fault, cells)| (&**fault, &cells[..])).collect();
        assert_eq!(rows, [
            ("reset_peer", &[Some("failed"), Some("not reached"), None][..]),
            ("empty", &[Some("not run"), None, None]),
            ("error", &[None, Some("passed"), Some("not judged")]),
        ]);
        assert_eq!(map.failed_pairs, ["empty and error"]);
        assert_eq!(exploration_lines(&run), [
            "5 points executed in 6 invocations of at most 9: 1 passed, 2 failed, 1 not reached, 1 not judged",
            "single faults: 80.0 % of 5 points covered: 4 executed, 0 pruned, 1 left",
            "pairs of faults: 50.0 % of 4 points covered: 1 executed, 2 pruned, 1 left",
            "2 points left when the exploration ended: `squall explore --resume --budget N` continues it",
        ]);
    }

    #[test]
    fn every_report_for_people_shows_the_map_with_failed_pairs_and_not_the_matrix() {
        let report = Report {
            run: explored(),
            ..testing::fixture()
        };
        for (format, map, matrix) in [
            (ReportFormat::Html, "not reached", "Invariants by scenario."),
            (
                ReportFormat::Markdown,
                "| reset_peer | failed | not reached |",
                "\n| invariant |",
            ),
        ] {
            let text = report.render(format);
            let pair = "Failed under a pair of faults:";
            let shown =
                text.contains(map) && text.contains(pair) && text.contains("empty and error");
            assert!(shown && !text.contains(matrix), "{text}");
        }
    }
}
