mod gaps;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use proptest::prelude::*;
use squall_journal::activation::ActivationRecord;
use squall_journal::reach::{Pending, Rules, Seen, Wanted};
use squall_journal::record::SpentRecord;
use squall_journal::run::CellState;
use squall_profiles::variables::Variables;

use super::*;
use crate::agents::{Invocation, ResetError};
use crate::answer::Answer;
use crate::scores::{Bar, Outcome};
use crate::suite::{self, ContractPart, Suite};
use crate::trace::testing::{Sent, exchange};

/// A proxy and an agent that exist in here only: the agent makes one call of a tool for each turn, and
/// says what came of it.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one thing that is wrong"
)]
struct World {
    state: Mutex<State>,
    /// The agent makes no call, as one that is not pointed at the proxy.
    is_blind: bool,
    /// Its calls come in no scope.
    is_plain: bool,
    /// Whatever is wrong, it says that all is well.
    is_careless: bool,
    /// It fails when it is asked this.
    fails_at: Option<&'static str>,
    resets_fail: bool,
    is_down: bool,
    /// Squall is to start it, and cannot.
    does_not_start: bool,
    /// It is held in the middle of this scenario, until it is let go.
    held_in: Option<&'static str>,
    let_go: tokio::sync::Notify,
    /// In this scenario so many have to be asked at the same time before anybody answers.
    together: Option<(&'static str, tokio::sync::Barrier)>,
}

#[derive(Default)]
struct State {
    in_force: HashMap<String, (String, Wanted)>,
    seen: HashMap<String, Seen>,
    begun: Vec<(String, Wanted)>,
    asked: u64,
    resets: u64,
    ended: Vec<String>,
}

impl World {
    fn state<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Reach for World {
    fn begin<'a>(
        &'a self,
        scope: &'a str,
        wanted: Wanted,
    ) -> Pending<'a, Result<ActivationRecord, ReachError>> {
        Box::pin(async move {
            let id = self.state(|state| {
                let id = format!("a{}", state.begun.len());
                state.begun.push((scope.to_owned(), wanted.clone()));
                state
                    .in_force
                    .insert(scope.to_owned(), (id.clone(), wanted));
                id
            });
            Ok(ActivationRecord {
                scope: scope.to_owned(),
                activation: Some(id),
                inherited: false,
                profile: "inline".into(),
                seed: 42,
                key: String::new(),
                observe: "bodies".into(),
                rules: 1,
                started_at: None,
                expires_at: None,
                ttl: None,
                ttl_from: None,
                spent: SpentRecord::default(),
            })
        })
    }

    fn end<'a>(&'a self, _: &'a str) -> Pending<'a, Result<bool, ReachError>> {
        Box::pin(async { Ok(true) })
    }

    fn end_run<'a>(&'a self, run: &'a str) -> Pending<'a, Result<usize, ReachError>> {
        Box::pin(async move {
            self.state(|state| state.ended.push(run.to_owned()));
            Ok(1)
        })
    }

    fn seen<'a>(
        &'a self,
        activation: &'a str,
        _: Duration,
    ) -> Pending<'a, Result<Seen, ReachError>> {
        Box::pin(async move {
            Ok(self.state(|state| state.seen.get(activation).cloned().unwrap_or_default()))
        })
    }
}

impl Driver for World {
    fn ask<'a>(&'a self, invocation: &'a Invocation) -> Pending<'a, Result<Answer, AskError>> {
        Box::pin(async move {
            // Others get their turn: with several slots askings cross.
            tokio::task::yield_now().await;
            if self.is_down {
                return Err(AskError::Unreachable {
                    endpoint: "http://agent.test/".into(),
                    tries: 3,
                    why: "connection refused".into(),
                });
            }
            let scope = if self.is_plain {
                "default"
            } else {
                &invocation.scope
            };
            let key = self.state(|state| state.in_force[scope].1.key.clone());
            if self.held_in.is_some_and(|held| key.starts_with(held)) {
                self.let_go.notified().await;
            }
            if let Some((scenario, all)) = &self.together
                && key.starts_with(scenario)
            {
                all.wait().await;
            }
            let is_faulted = self.state(|state| {
                state.asked += 1;
                let (activation, wanted) = state.in_force[scope].clone();
                let is_faulted = wanted.rules != Rules::Nothing;
                let mut sent = Sent::get("https://tool.test/").tool("search");
                if is_faulted {
                    sent = sent.status(503).injected("error", serde_json::json!({}));
                }
                if !self.is_blind {
                    let seen = state.seen.entry(activation.clone()).or_default();
                    let mut made = exchange(seen.exchanges.len(), &sent);
                    made.record.id =
                        format!("{}-{activation}-{}", wanted.key, seen.exchanges.len());
                    seen.exchanges.push(made);
                }
                is_faulted && !self.is_blind
            });
            let mut answer = Answer::of(if is_faulted && !self.is_careless {
                "The data is unavailable."
            } else {
                "All is well."
            });
            let prompt = invocation.prompt.text();
            if self.fails_at.is_some_and(|at| at == prompt) {
                answer.error = Some("status 500".into());
            }
            Ok(answer)
        })
    }

    fn reset<'a>(&'a self, _: &'a str) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(async {
            self.state(|state| state.resets += 1);
            if self.does_not_start {
                return Err(ResetError::NotThere(AskError::NotStarted {
                    program: "serve".into(),
                    why: "it ended with exit status: 4: boom".into(),
                }));
            }
            if self.resets_fail {
                return Err(ResetError::Failed {
                    by: "magic".into(),
                    why: "none left".into(),
                });
            }
            Ok(())
        })
    }
}

#[test]
fn a_run_can_be_carried_out_by_any_thread() {
    fn takes(_: impl Send) {}
    let world = World::default();
    let suite = suite_of(SUITE);
    let plan = Plan::new(&suite, "r", Vec::new());
    let alone = tokio::sync::Mutex::default();
    takes(run(&plan, &world, &world, &scopes(1, &alone), &Silent));
}

fn scopes(at_once: usize, exclusive: &tokio::sync::Mutex<()>) -> Scopes<'_> {
    Scopes {
        own: "run-1",
        at_once: NonZeroUsize::new(at_once).expect("a slot"),
        shared: Some("default"),
        exclusive,
    }
}

struct Silent;

impl Tell for Silent {
    fn progress(&self, _: u64, _: u64) -> Pending<'_, ()> {
        Box::pin(async {})
    }
    fn cell(&self, _: CellRecord) -> Pending<'_, ()> {
        Box::pin(async {})
    }
    fn coverage(&self, _: CoverageRecord) {}
}

const SUITE: &str = "
agent: {endpoint: 'http://agent.test/'}
golden_prompts: [one, two, three]
contract:
  name: c
  invariants:
    - {id: completes, type: completes, severity: critical}
    - {id: honest, type: contains, value: unavailable, when: tool_faults_active}
    - {id: well, type: contains, value: well, when: no_chaos}
    - {id: bounded, type: max_calls, tool: search, max: 3}
    - {id: same, type: behavior_unchanged, when: no_chaos}
    - {id: private, type: excludes_pii}
  chaos_matrix:
    - name: clean
    - {name: down, tool_faults: [{tool: '*', mode: error}]}
    - {name: slow, tool_faults: [{tool: '*', mode: slow}]}
    - {name: empty, tool_faults: [{tool: '*', mode: empty}]}
    - {name: html, tool_faults: [{tool: '*', mode: html_error}]}
";

fn suite_of(text: &str) -> Suite {
    suite::parse("suite.yaml", text, Variables::Refused).expect("valid")
}

fn contract_of(suite: &Suite) -> &crate::suite::Contract {
    match &suite.contract {
        Some(ContractPart::Written(contract)) => contract,
        _ => panic!("a contract"),
    }
}

async fn run_contract(world: &World, text: &str, slots: usize) -> Result<Ran, RunError> {
    let suite = suite_of(text);
    let plan = Plan::new(&suite, "run-1", vec![Part::contract(contract_of(&suite))]);
    let alone = tokio::sync::Mutex::default();
    run(&plan, world, world, &scopes(slots, &alone), &Silent).await
}

fn state_of(ran: &Ran, invariant: &str, scenario: &str) -> CellState {
    let found = ran.parts[0]
        .matrix
        .cells
        .iter()
        .find(|cell| cell.invariant == invariant && cell.scenario == scenario);
    found.expect("a cell").state
}

#[tokio::test]
async fn a_contract_is_tried_and_judged() {
    let world = World::default();
    let ran = run_contract(&world, SUITE, 4).await.expect("a run");
    assert_eq!(ran.parts[0].matrix.cells.len(), 30);
    for (invariant, scenario, expected) in [
        ("completes", "clean", CellState::Passed),
        ("honest", "clean", CellState::NotApplicable),
        ("honest", "down", CellState::Passed),
        ("well", "clean", CellState::Passed),
        ("well", "down", CellState::NotApplicable),
        ("same", "clean", CellState::Passed),
        ("bounded", "html", CellState::Passed),
    ] {
        assert_eq!(
            state_of(&ran, invariant, scenario),
            expected,
            "{invariant} {scenario}"
        );
    }
    assert!(matches!(
        ran.parts[0].matrix.outcome(Bar::default()),
        Outcome::Passed(_)
    ));
    // 15 and the clean run.
    assert_eq!(ran.coverage.agent_invocations, 18);
    world.state(|state| {
        assert_eq!((state.asked, state.resets), (18, 18));
        // The shared scope was watched while the agent was asked for the first time.
        assert_eq!(state.begun.len(), 18 + 1);
        assert_eq!(state.ended, ["run-1"]);
        let keys: std::collections::BTreeSet<_> = state
            .begun
            .iter()
            .map(|(_, wanted)| wanted.key.clone())
            .collect();
        assert_eq!(keys.len(), 18);
        assert!(keys.contains("down/prompt-2/1"));
    });
}

/// Hears of cells, and lets an agent go that is held until they are told.
struct Hears<'w> {
    world: &'w World,
    cells: Mutex<Vec<CellRecord>>,
    coverage: Mutex<Vec<CoverageRecord>>,
    /// How many it waits for.
    wanted: usize,
}

impl Tell for Hears<'_> {
    fn progress(&self, _: u64, _: u64) -> Pending<'_, ()> {
        Box::pin(async {})
    }

    fn cell(&self, cell: CellRecord) -> Pending<'_, ()> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        cells.push(cell);
        if cells.len() == self.wanted {
            self.world.let_go.notify_one();
        }
        Box::pin(async {})
    }

    fn coverage(&self, coverage: CoverageRecord) {
        let mut all = self.coverage.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(coverage);
    }
}

#[tokio::test]
async fn a_scenarios_cells_are_told_while_a_later_one_is_being_tried() {
    let world = World {
        held_in: Some("slow/prompt-2"),
        ..World::default()
    };
    // The agent is let go once the first two scenarios are told, and not before.
    let hears = Hears {
        world: &world,
        cells: Mutex::default(),
        coverage: Mutex::default(),
        wanted: 12,
    };
    let suite = suite_of(SUITE);
    let plan = Plan::new(&suite, "run-1", vec![Part::contract(contract_of(&suite))]);
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, &world, &world, &scopes(3, &alone), &hears).await;
    let ran = ran.expect("a run");
    let told = hears.cells.into_inner().expect("whole");
    assert_eq!(told, ran.parts[0].matrix.cells);
    let coverage = hears.coverage.into_inner().expect("whole");
    let counted: Vec<_> = coverage
        .iter()
        .map(|one| (one.cells, one.agent_invocations))
        .collect();
    assert_eq!(counted, [(6, 6), (12, 9), (18, 12), (24, 15), (30, 18)]);
    assert_eq!(coverage.last(), Some(&ran.coverage));
}

#[tokio::test]
async fn an_agent_that_hides_failures_is_found_out() {
    let world = World {
        is_careless: true,
        ..World::default()
    };
    let ran = run_contract(&world, SUITE, 2).await.expect("a run");
    assert_eq!(state_of(&ran, "honest", "down"), CellState::Failed);
    let cell = ran.parts[0]
        .matrix
        .cells
        .iter()
        .find(|cell| cell.state == CellState::Failed);
    let cell = cell.expect("a failed cell");
    assert_eq!(cell.faults_applied, 3);
    assert_eq!(cell.evidence[0].answer.as_deref(), Some("All is well."));
    assert_eq!(cell.evidence[0].exchanges.len(), 1);
}

#[tokio::test]
async fn an_agent_that_ignores_the_proxy_proves_nothing() {
    let world = World {
        is_blind: true,
        ..World::default()
    };
    let ran = run_contract(&world, SUITE, 2).await.expect("a run");
    assert_eq!(state_of(&ran, "completes", "down"), CellState::NotExercised);
    assert!(matches!(
        ran.parts[0].matrix.outcome(Bar::default()),
        Outcome::Inconclusive(_)
    ));
    assert_eq!(ran.parts[0].chaos_resilience, None);
}

#[tokio::test]
async fn what_is_demanded_on_the_wire_of_an_agent_that_was_never_seen_is_not_known() {
    for (invariant, is_blind, is_unseen) in [
        ("type: loop_free", true, true),
        ("type: loop_free", false, false),
        ("type: loop_free, when: any_chaos_active", true, false),
        ("type: completes", true, false),
    ] {
        let world = World {
            is_blind,
            ..World::default()
        };
        let (agent, _) = SUITE.split_once("contract:").expect("a contract");
        let text = format!(
            "{agent}contract:\n  name: c\n  invariants: [{{id: a, {invariant}}}]\n  chaos_matrix: [{{name: calm}}]\n"
        );
        let ran = run_contract(&world, &text, 2).await.expect("a run");
        assert_eq!(ran.unseen.is_some(), is_unseen, "{invariant}: {ran:?}");
    }
}

#[tokio::test]
async fn what_fails_without_chaos_is_told_apart() {
    let world = World {
        fails_at: Some("two"),
        ..World::default()
    };
    let ran = run_contract(&world, SUITE, 3).await.expect("a run");
    let cell = ran.parts[0]
        .matrix
        .cells
        .iter()
        .find(|cell| cell.invariant == "completes" && cell.scenario == "down");
    let cell = cell.expect("a cell");
    assert_eq!(
        (cell.state, cell.baseline_failed),
        (CellState::Failed, true)
    );
    assert_eq!(ran.parts[0].chaos_resilience, Some(100.0));
    let told = "without chaos 1 of 3 prompts fail already, so that chaos proves little of them: `two`: status 500";
    assert_eq!(ran.warnings, [told]);
}

#[tokio::test]
async fn an_agent_that_always_fails_is_told_of_and_the_proxy_is_not_blamed() {
    let world = World {
        fails_at: Some("two"),
        is_blind: true,
        ..World::default()
    };
    let text = SUITE.replace("[one, two, three]", "[two]");
    let text = text.replace("    - name: clean\n", "");
    let ran = run_contract(&world, &text, 3).await.expect("a run");
    assert_eq!(ran.warnings.len(), 1, "{:?}", ran.warnings);
    assert!(ran.warnings[0].contains("`two`: status 500"));
    let Outcome::Inconclusive(why) = ran.parts[0].matrix.outcome(Bar::default()) else {
        panic!("nothing was proved");
    };
    assert!(why.ends_with("and it failed: status 500"), "{why}");
}

#[tokio::test]
async fn a_reset_that_fails_makes_cells_that_cannot_be_judged() {
    let world = World {
        resets_fail: true,
        ..World::default()
    };
    let ran = run_contract(&world, SUITE, 3).await.expect("a run");
    assert!(
        ran.parts[0]
            .matrix
            .cells
            .iter()
            .all(|cell| cell.state == CellState::Error)
    );
    assert!(matches!(
        ran.parts[0].matrix.outcome(Bar::default()),
        Outcome::Inconclusive(_)
    ));
}

#[tokio::test]
async fn an_agent_that_is_down_ends_the_run_and_its_chaos() {
    let world = World {
        is_down: true,
        ..World::default()
    };
    let error = run_contract(&world, SUITE, 3)
        .await
        .expect_err("nobody there");
    assert!(matches!(error, RunError::Unreachable(_)), "{error}");
    world.state(|state| assert_eq!(state.ended, ["run-1"]));
}

#[tokio::test]
async fn an_agent_that_is_down_is_asked_once_in_whatever_scopes() {
    let world = World {
        is_down: true,
        ..World::default()
    };
    let suite = suite_of(SUITE);
    let plan = Plan::new(&suite, "run-1", vec![Part::contract(contract_of(&suite))]);
    let alone = tokio::sync::Mutex::default();
    for shared in [Some("default"), None] {
        world.state(|state| state.begun.clear());
        let scopes = Scopes {
            shared,
            ..scopes(3, &alone)
        };
        let ran = run(&plan, &world, &world, &scopes, &Silent).await;
        ran.expect_err("nobody there");
        let scopes = 1 + usize::from(shared.is_some());
        world.state(|state| assert_eq!(state.begun.len(), scopes, "{shared:?}"));
    }
}

#[tokio::test]
async fn a_judge_that_is_never_there_is_told_of() {
    let of = async |head: &str| {
        let text = format!(
            "{head}\nagent: {{endpoint: 'http://agent.test/'}}\ngolden_prompts: [one]\n\
             contract: {{name: c, invariants: [{{id: a, type: completes}}, \
             {{id: b, type: similarity, expected: x}}], chaos_matrix: [{{name: calm}}]}}\n"
        );
        run_contract(&World::default(), &text, 1)
            .await
            .expect("a run")
    };
    let ran = of("embeddings: {folder: /no/such/model}").await;
    let why = ran.unreachable.clone().expect("nobody there");
    let expected = "`embeddings.folder`: /no/such/model/tokenizer.json: ";
    assert!(why.starts_with(expected), "{why}");
    assert_eq!(state_of(&ran, "b", "calm"), CellState::Error);
    assert_eq!(state_of(&ran, "a", "calm"), CellState::Passed);
    assert_eq!(of("").await.unreachable, None);
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_ends_the_run_in_its_own_words() {
    let world = World {
        does_not_start: true,
        ..World::default()
    };
    let error = run_contract(&world, SUITE, 3)
        .await
        .expect_err("nobody there");
    assert!(matches!(error, RunError::Unreachable(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "the agent could not be started by serve: it ended with exit status: 4: boom"
    );
}

#[tokio::test]
async fn probes_are_asked_in_invocations_of_their_own() {
    let text = "
agent: {endpoint: 'http://agent.test/'}
golden_prompts: [one, two]
contract:
  name: c
  invariants:
    - {id: probed, type: not_contains, value: prompt, probes: [leak, reveal]}
    - {id: completes, type: completes}
  chaos_matrix: [{name: down, tool_faults: [{tool: '*', mode: error}]}]
";
    let ran = run_contract(&World::default(), text, 2)
        .await
        .expect("a run");
    // Two prompts and two probes, clean and under chaos.
    assert_eq!(ran.coverage.agent_invocations, 8);
    let evidence = |invariant: &str| -> Vec<String> {
        let cell = ran.parts[0]
            .matrix
            .cells
            .iter()
            .find(|cell| cell.invariant == invariant);
        let evidence = &cell.expect("a cell").evidence;
        evidence.iter().map(|one| one.prompt.clone()).collect()
    };
    assert_eq!(evidence("probed"), ["leak", "reveal"]);
    assert_eq!(evidence("completes"), ["one", "two"]);
}

#[tokio::test]
async fn a_cell_can_have_invocations_of_its_own() {
    let text = SUITE.replace("  name: c\n", "  name: c\n  isolation: cell\n");
    let ran = run_contract(&World::default(), &text, 8)
        .await
        .expect("a run");
    assert_eq!(ran.coverage.agent_invocations, 6 * 5 * 3 + 3);
    assert!(matches!(
        ran.parts[0].matrix.outcome(Bar::default()),
        Outcome::Passed(_)
    ));
}

#[tokio::test]
async fn counters_can_go_on_through_a_scenario() {
    let text = format!("{SUITE}advanced: {{counters: run}}\n");
    let world = World::default();
    let ran = run_contract(&world, &text, 4).await.expect("a run");
    assert_eq!(ran.coverage.agent_invocations, 18);
    world.state(|state| assert_eq!(state.begun.len(), 1 + 3 + 5));
    // Each asking is judged by its own exchanges only.
    let bounded = ran.parts[0]
        .matrix
        .cells
        .iter()
        .filter(|cell| cell.invariant == "bounded");
    for cell in bounded {
        assert!(
            cell.evidence.iter().all(|one| one.exchanges.len() == 1),
            "{cell:?}"
        );
    }
}

#[tokio::test]
async fn a_chaos_run_is_one_scenario() {
    let text = "
agent: {endpoint: 'http://agent.test/'}
golden_prompts: [one, two]
invariants: [{type: contains, value: unavailable}]
chaos: {tool_faults: [{tool: '*', mode: error}]}
";
    let suite = suite_of(text);
    let chaos = suite.chaos.as_ref().expect("chaos");
    let trial = Trial::of("chaos", chaos);
    let plan = Plan::new(&suite, "r", vec![Part::chaos(&suite.invariants, trial)]);
    let world = World::default();
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, &world, &world, &scopes(1, &alone), &Silent)
        .await
        .expect("a run");
    assert_eq!(ran.parts[0].chaos_resilience, Some(100.0));
    let recovered = &ran.recoveries[0];
    assert_eq!(
        (
            recovered.family.as_str(),
            recovered.passed,
            recovered.judged
        ),
        ("llm_faults", 2, 2)
    );
    // What does not hold without chaos is told, though it holds under it.
    assert_eq!(ran.parts[0].matrix.cells[0].state, CellState::Passed);
}

#[tokio::test]
async fn an_agent_whose_calls_come_in_no_scope_has_the_shared_one_and_is_asked_one_at_a_time() {
    let world = World {
        is_plain: true,
        ..World::default()
    };
    let ran = run_contract(&world, SUITE, 8).await.expect("a run");
    assert_eq!(state_of(&ran, "honest", "down"), CellState::Passed);
    assert!(ran.warnings.is_empty(), "{:?}", ran.warnings);
    world.state(|state| {
        let others = state.begun.iter().filter(|(scope, _)| scope != "default");
        let others: Vec<_> = others.map(|(scope, _)| scope.as_str()).collect();
        assert_eq!(others, ["run-1-1"], "the first asking was watched in both");
    });
    let blind = World {
        is_blind: true,
        ..World::default()
    };
    let ran = run_contract(&blind, SUITE, 8).await.expect("a run");
    assert!(
        ran.warnings[0].contains("no call of the agent"),
        "{:?}",
        ran.warnings
    );
}

#[tokio::test]
async fn each_activation_of_its_own_scope_has_a_trace_of_its_own() {
    let world = World::default();
    run_contract(&world, SUITE, 4).await.expect("a run");
    world.state(|state| {
        let own = state.begun.iter().filter(|(scope, _)| scope != "default");
        let traces: Vec<_> = own
            .map(|(_, wanted)| wanted.trace.expect("a trace"))
            .collect();
        let apart: std::collections::BTreeSet<_> = traces.iter().collect();
        assert_eq!((traces.len(), apart.len()), (18, 18));
    });
}

#[tokio::test]
async fn repeats_are_judged_together_and_told_how_far_they_agree() {
    let world = World {
        fails_at: Some("two"),
        ..World::default()
    };
    let suite = suite_of(SUITE);
    let plan = Plan {
        repeat: 3,
        ..Plan::new(&suite, "run-1", vec![Part::contract(contract_of(&suite))])
    };
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, &world, &world, &scopes(4, &alone), &Silent).await;
    let ran = ran.expect("a run");
    assert_eq!(ran.coverage.agent_invocations, 3 + 3 * 15);
    assert_eq!(ran.parts[0].matrix.cells.len(), 30);
    let found = ran.stability.expect("repeats");
    assert_eq!(
        (found.judged, found.always_passed, found.flaky),
        (15, 10, 0)
    );
}

#[tokio::test]
async fn parts_share_what_was_asked_without_chaos() {
    let text = format!(
        "{SUITE}invariants: [{{id: completes, type: output_not_empty}}]\nchaos: {{tool_faults: [{{tool: '*', mode: error}}]}}\n"
    );
    let suite = suite_of(&text);
    let trial = Trial::of("chaos", suite.chaos.as_ref().expect("chaos"));
    let contract = contract_of(&suite);
    let parts = vec![
        Part {
            others: &contract.invariants,
            ..Part::chaos(&suite.invariants, trial)
        },
        Part::contract(contract),
    ];
    let plan = Plan::new(&suite, "run-1", parts);
    let world = World::default();
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, &world, &world, &scopes(4, &alone), &Silent).await;
    let ran = ran.expect("a run");
    assert_eq!(ran.coverage.agent_invocations, 3 + 3 + 15);
    let cells: Vec<_> = ran
        .parts
        .iter()
        .map(|part| part.matrix.cells.len())
        .collect();
    assert_eq!(cells, [1, 30]);
    // Another demand of the same name has a row of its own.
    let first = |part: usize| ran.parts[part].matrix.cells[0].invariant.as_str();
    assert_eq!([first(0), first(1)], ["completes (prompts)", "completes"]);
    assert_eq!(ran.stability, None);
    assert_eq!(ran.parts[0].chaos_resilience, Some(100.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn cells_are_the_same_at_any_concurrency(slots in 1..40_usize, is_careless: bool) {
        let ran = |slots| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            let world = World { is_careless, ..World::default() };
            let mut ran = runtime.block_on(run_contract(&world, SUITE, slots)).expect("a run");
            // Ids of activations are counted up by the world as they come.
            for cell in &mut ran.parts[0].matrix.cells {
                for evidence in &mut cell.evidence {
                    evidence.exchanges.clear();
                }
            }
            ran
        };
        prop_assert_eq!(ran(slots), ran(1));
    }
}
