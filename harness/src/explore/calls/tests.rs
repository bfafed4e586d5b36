use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;
use serde_json::{Map, json};
use squall_journal::record::Kind;

use super::*;
use crate::run::{ExplorationRecord, ExploredCall, PointFault, PointState};
use crate::trace::testing::{Sent, trace};

const MODES: [&str; 4] = ["error", "reset_peer", "empty", "malformed"];

/// An agent that reacts to faults as a hash of them says.
#[derive(Debug, Clone)]
struct Agent {
    seed: u64,
    /// For each call the number of its faults, and whether it belongs to the logical call before it.
    calls: Vec<(usize, bool)>,
}

impl Agent {
    fn clean(&self) -> Vec<ExploredCall> {
        let mut logical = 0;
        let calls = self.calls.iter().enumerate();
        let calls = calls.map(|(number, (faults, is_retry))| {
            logical += u64::from(number > 0 && !is_retry);
            call(&format!("c{number}"), logical, *faults)
        });
        calls.collect()
    }

    fn observe(&self, point: &Planned) -> PointResult {
        let drawn = |what: &str, of: u64| {
            let mut hasher = DefaultHasher::new();
            (self.seed, what, &point.faults).hash(&mut hasher);
            hasher.finish() % of
        };
        let states = [
            PointState::Passed,
            PointState::Passed,
            PointState::Failed,
            PointState::NotReached,
        ];
        let mut calls = self.clean();
        if point.faults.len() < 3 && drawn("new", 3) == 0 {
            calls.push(call(&format!("new{}", drawn("name", 3)), 9, 2));
        }
        PointResult {
            state: states[usize::try_from(drawn("state", 4)).expect("small")],
            behaviour: drawn("behaviour", 2).to_string(),
            calls,
        }
    }

    /// Executes at most so many rounds.
    fn explored(
        &self,
        budget: u64,
        rounds: usize,
        earlier: Option<&ExplorationRecord>,
    ) -> ExplorationRecord {
        let earlier = earlier.map(|record| ("r1", record));
        let mut search = CallSearch::new(budget, 1, self.clean(), earlier);
        for _ in 0..rounds {
            let points = search.next();
            if points.is_empty() {
                break;
            }
            for point in points {
                search.add(&point, self.observe(&point));
            }
        }
        search.record()
    }
}

fn call(name: &str, logical: u64, faults: usize) -> ExploredCall {
    ExploredCall {
        prompt: 1,
        call: name.to_owned(),
        number: 1,
        logical,
        under: Vec::new(),
        faults: MODES
            .iter()
            .take(faults)
            .map(|&mode| mode.to_owned())
            .collect(),
        conditions: Map::new(),
        ordinal: 1,
    }
}

fn agents() -> impl Strategy<Value = Agent> {
    let calls = proptest::collection::vec((0..=4_usize, any::<bool>()), 0..5);
    (any::<u64>(), calls).prop_map(|(seed, calls)| Agent { seed, calls })
}

const ALL: usize = usize::MAX;

proptest! {
    #[test]
    fn a_pruned_pair_has_an_executed_representative(agent in agents()) {
        let record = agent.explored(u64::MAX, ALL, None);
        let point = |call: usize, fault: &str| record.single_on(call, fault).expect("executed");
        let executed: BTreeSet<_> = record.points.iter().filter_map(|pair| match &pair.faults[..] {
            [one, other] if record.calls[other.call].under.is_empty() => Some((
                (one.call, point(one.call, &one.fault).behaviour.clone()),
                (other.call, point(other.call, &other.fault).behaviour.clone()),
            )),
            _ => None,
        }).collect();
        let clean = agent.clean();
        let passed = |number: usize| {
            let record = &record;
            let points = clean[number].faults.iter().map(move |fault| record.single_on(number, fault).expect("executed"));
            points.filter(|point| point.state == PointState::Passed)
        };
        for one in 0..clean.len() {
            for other in one + 1..clean.len() {
                if clean[one].logical == clean[other].logical {
                    continue;
                }
                for first in passed(one) {
                    for second in passed(other) {
                        let class = ((one, first.behaviour.clone()), (other, second.behaviour.clone()));
                        prop_assert!(executed.contains(&class), "{class:?}");
                    }
                }
            }
        }
        prop_assert_eq!((record.single.left(), record.pairs.left()), (0, 0));
    }

    #[test]
    fn no_point_is_executed_twice_or_beyond_the_budget(agent in agents(), budget in 0..60_u64) {
        let record = agent.explored(budget, ALL, None);
        prop_assert!(record.invocations <= budget.max(1));
        let names: BTreeSet<_> = record.points.iter().map(|point| &point.name).collect();
        prop_assert_eq!(names.len(), record.points.len());
        let space = record.single.executed + record.pairs.executed;
        prop_assert_eq!(space, record.points.len() as u64);
        let all = agent.explored(u64::MAX, ALL, None);
        prop_assert_eq!(&record.points[..], &all.points[..record.points.len()]);
    }

    #[test]
    fn an_interrupted_search_ends_like_one_that_was_not(agent in agents(), rounds in 0..6_usize, budget in 0..90_u64) {
        let whole = agent.explored(budget, ALL, None);
        let part = agent.explored(budget, rounds, None);
        let mut resumed = agent.explored(budget, ALL, Some(&part));
        prop_assert_eq!(resumed.resumed.take(), Some("r1".to_owned()));
        prop_assert_eq!(resumed, whole);
        // A smaller budget loses nothing.
        let less = agent.explored(1, ALL, Some(&part));
        prop_assert_eq!(less.points, part.points);
    }
}

#[test]
fn points_are_tried_on_all_calls_before_the_next_fault_and_pairs_come_last() {
    let agent = Agent {
        seed: 0,
        calls: vec![(2, false), (1, false)],
    };
    let mut search = CallSearch::new(100, 1, agent.clean(), None);
    let mut names = Vec::new();
    loop {
        let points = search.next();
        if points.is_empty() {
            break;
        }
        for point in points {
            let observed = PointResult {
                state: PointState::Passed,
                behaviour: "same".into(),
                calls: agent.clean(),
            };
            search.add(&point, observed);
            names.push(point.name);
        }
    }
    assert_eq!(
        names,
        [
            "error on the 1st call of c0",
            "error on the 1st call of c1",
            "reset_peer on the 1st call of c0",
            "error on the 1st call of c0 and error on the 1st call of c1",
        ]
    );
    let record = search.record();
    assert_eq!((record.pairs.points, record.pairs.pruned), (2, 1));
}

#[test]
fn a_failure_of_a_fallback_is_executed_once_and_not_under_more_faults() {
    let mut search = CallSearch::new(100, 1, vec![call("search", 1, 1)], None);
    let second = ExploredCall {
        number: 2,
        ..call("backup", 3, 2)
    };
    let fallbacks = [
        vec![call("backup", 2, 2)],
        vec![call("backup", 2, 2), second],
        vec![],
    ];
    let mut names = Vec::new();
    loop {
        let points = search.next();
        if points.is_empty() {
            break;
        }
        for point in points {
            let fails = point
                .faults
                .last()
                .is_some_and(|last| last.call == 1 && last.fault == "error");
            let observed = PointResult {
                state: if fails {
                    PointState::Failed
                } else {
                    PointState::Passed
                },
                behaviour: String::new(),
                calls: fallbacks[point.faults.len().min(3) - 1].clone(),
            };
            search.add(&point, observed);
            names.push(point.name);
        }
    }
    // Without `error` on the second call of `backup`, which would fail like that on the first one.
    assert_eq!(
        names,
        [
            "error on the 1st call of search",
            "error on the 1st call of search and error on the 1st call of backup",
            "error on the 1st call of search and reset_peer on the 1st call of backup",
            "error on the 1st call of search and reset_peer on the 1st call of backup and reset_peer on the 2nd call of backup",
        ]
    );
    assert_eq!(search.record().single.pruned, 1);
}

#[test]
#[rustfmt::skip]
fn a_call_has_the_conditions_that_match_it_and_its_number_among_them() {
    let mut batch = Sent::mcp("hotels", "{}", 4);
    batch.record.more_tools.push("flights".into());
    let list = Sent::post("https://mcp.test/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let noted = Sent::post("https://mcp.test/mcp", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let of_mcp = |mut sent: Sent| { sent.record.kind = Kind::Mcp; sent };
    let trace = trace(&[
        Sent::model("[]"),
        of_mcp(noted),
        of_mcp(list),
        Sent::mcp("flights", r#"{"to":"Rome"}"#, 2),
        batch,
        Sent::mcp("flights", r#"{"to":"Oslo"}"#, 5),
        Sent::get("https://shop.test/a?q=1"),
        Sent::get("https://shop.test/a?q=2"),
        Sent::model("[1]"),
    ]);
    let calls = calls(&trace, 1);
    let found: Vec<_> = calls.iter().map(|one| (&*one.call, one.number, one.ordinal, json!(one.conditions))).collect();
    let model = json!({ "dialect": "openai-chat", "model": "gpt-4o" });
    let list = json!({ "match_url": ["https://mcp.test/mcp", "https://mcp.test/mcp?*"], "json": { "$.method": "tools/list" } });
    let shop = json!({ "match_url": ["https://shop.test/a", "https://shop.test/a?*"], "methods": ["GET"] });
    assert_eq!(found, [
        ("model gpt-4o", 1, 1, model.clone()),
        ("tools/list of mcp.test/mcp", 1, 1, list),
        ("flights", 1, 1, json!({ "tool": "flights" })),
        ("hotels", 1, 1, json!({ "tool": "hotels" })),
        ("flights", 2, 3, json!({ "tool": "flights" })),
        ("GET shop.test/a", 1, 1, shop.clone()),
        ("GET shop.test/a", 2, 2, shop),
        ("model gpt-4o", 2, 2, model),
    ]);
    let has = |number: usize, mode: &str| calls[number].faults.iter().any(|fault| fault == mode);
    assert!(has(1, "list_drift") && !has(2, "list_drift"));
    assert!(has(2, "session_expired") && !has(5, "session_expired"));
    assert!(has(6, "stale") && !has(5, "stale"));
}

#[test]
fn a_rule_of_each_fault_fires_on_the_calls_number() {
    let mut second = call("search", 1, 2);
    second.conditions = json!({ "tool": "search" })
        .as_object()
        .cloned()
        .unwrap_or_default();
    second.ordinal = 2;
    let mut model = call("model m", 2, 0);
    model.conditions = json!({ "dialect": "openai-chat" })
        .as_object()
        .cloned()
        .unwrap_or_default();
    let faults = [("empty", 0), ("empty", 1)].map(|(fault, call)| PointFault {
        call,
        fault: fault.into(),
    });
    let (profile, firings) = profile(&[second, model], &faults).expect("valid");
    let families: Vec<_> = profile
        .rules
        .iter()
        .map(|rule| rule.family().as_str())
        .collect();
    assert_eq!(families, ["tool_faults", "llm_faults"]);
    assert_eq!(
        firings,
        [("fault-1".to_owned(), 2), ("fault-2".to_owned(), 1)]
    );
}
