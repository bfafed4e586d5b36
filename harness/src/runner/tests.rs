mod connections;
mod gaps;
mod load;
mod merged;
mod world;

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;
use squall_documents::Variables;

use self::world::{Death, World};
use super::rounds::{OneRound, RanInvocation};
use super::*;
use crate::dial::Dialler;
use crate::reach::{Late, LateCall, Pending, RequestedChaos, Rules};
use crate::run::{CellState, ExplorationRecord};
use crate::scores::{PassCriteria, RunOutcome, outcome};
use crate::suite::{self, ContractPart, Suite};

fn scopes(at_once: usize, exclusive: &tokio::sync::Mutex<()>) -> RunScopes<'_> {
    RunScopes {
        own: "run-1",
        at_once: NonZeroUsize::new(at_once).expect("a slot"),
        shared: "default",
        exclusive,
    }
}

async fn run(
    plan: &RunPlan<'_>,
    driver: &dyn Driver,
    reach: &dyn Reach,
    scopes: &RunScopes<'_>,
    tell: &dyn Tell,
) -> Result<Ran, RunError> {
    super::run(plan, &mut OneRound, driver, reach, scopes, tell).await
}

/// The outcome of a contract without a minimum score.
fn outcome_of(ran: &Ran) -> RunOutcome {
    let matrix = &ran.parts[0].matrix;
    let score = matrix.score();
    outcome(
        [(matrix, score, true)],
        score,
        PassCriteria::default(),
        false,
    )
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
    fn explored(&self, _: ExplorationRecord) {}
    fn loaded(&self, _: LoadRecord) {}
    fn tried(&self, _: u64, _: u64) {}
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
    let plan = RunPlan::new(
        &suite,
        "run-1",
        vec![RunPart::contract(contract_of(&suite))],
        Dialler::default(),
    );
    let alone = tokio::sync::Mutex::default();
    run(&plan, world, world, &scopes(slots, &alone), &Silent).await
}

/// Runs the suite's own chaos as its only part.
async fn run_chaos(world: &World, text: &str) -> Ran {
    let suite = suite_of(text);
    let trial = Trial::of("chaos", suite.chaos.as_ref().expect("chaos"));
    let parts = vec![RunPart::new(
        Component::Chaos,
        &suite.invariants,
        vec![trial],
    )];
    let plan = RunPlan::new(&suite, "r", parts, Dialler::default());
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, world, world, &scopes(1, &alone), &Silent).await;
    ran.expect("a run")
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
    assert!(matches!(outcome_of(&ran), RunOutcome::Passed(_)));
    // The scenario without chaos is the clean baseline.
    assert_eq!(ran.coverage.agent_invocations, 15);
    world.state(|state| {
        assert_eq!((state.asked, state.resets), (15, 15));
        // The shared scope was observed during the first invocation.
        assert_eq!(state.begun.len(), 15 + 1);
        assert_eq!(state.ended, ["run-1"]);
        let keys: std::collections::BTreeSet<_> = state
            .begun
            .iter()
            .map(|(_, wanted)| wanted.key.clone())
            .collect();
        assert_eq!(keys.len(), 15);
        assert!(keys.contains("down/prompt-2/1"));
    });
}

/// Observes cells, and releases a held agent after they are reported.
struct Hears<'w> {
    world: &'w World,
    cells: Mutex<Vec<CellRecord>>,
    coverage: Mutex<Vec<CoverageRecord>>,
    /// Reported invocations and applied rules.
    tried: Mutex<Vec<(u64, u64)>>,
    /// Number of cells to wait for.
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

    fn explored(&self, _: ExplorationRecord) {}
    fn loaded(&self, _: LoadRecord) {}

    fn tried(&self, invocations: u64, rules_applied: u64) {
        let mut all = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((invocations, rules_applied));
    }
}

#[tokio::test]
async fn invocations_run_at_once_unless_a_reset_concerns_them_all() {
    let reset = "reset_endpoint: 'http://agent.test/reset'";
    for (fields, expected) in [
        (String::new(), 3),
        (format!(", {reset}"), 1),
        (format!(", {reset}, reset: {{isolated: true}}"), 3),
    ] {
        let text = SUITE.replace("agent.test/'", &format!("agent.test/'{fields}"));
        let spec = RunSpec {
            suite: Arc::new(suite_of(&text)),
            concurrency: ConcurrencyRange::one(3),
            ..super::spec::tests::spec("")
        };
        let world = World::default();
        let ran = run_contract(&world, &text, spec.at_once().get()).await;
        ran.expect("a run");
        let most = world.state(|state| state.most_in_flight);
        assert_eq!(most, expected, "{fields}");
    }
}

#[tokio::test]
async fn a_scenarios_cells_are_told_while_a_later_one_is_being_tried() {
    let world = World {
        held_in: Some("slow/prompt-2"),
        ..World::default()
    };
    // The agent is released only after the first two scenarios are reported.
    let hears = Hears {
        world: &world,
        cells: Mutex::default(),
        coverage: Mutex::default(),
        tried: Mutex::default(),
        wanted: 12,
    };
    let suite = suite_of(SUITE);
    let plan = RunPlan::new(
        &suite,
        "run-1",
        vec![RunPart::contract(contract_of(&suite))],
        Dialler::default(),
    );
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, &world, &world, &scopes(3, &alone), &hears).await;
    let ran = ran.expect("a run");
    let told = hears.cells.into_inner().expect("whole");
    assert_eq!(told, ran.parts[0].matrix.cells);
    let coverage = hears.coverage.into_inner().expect("whole");
    let counted: Vec<_> = coverage.iter().map(|one| one.cells).collect();
    assert_eq!(counted, [6, 12, 18, 24, 30]);
    assert_eq!(coverage.last(), Some(&ran.coverage));
    // Each invocation is reported when it starts, even if its scenario never ends.
    let tried = hears.tried.into_inner().expect("whole");
    assert_eq!(tried.first(), Some(&(1, 0)));
    assert_eq!(tried.iter().max(), Some(&(15, 12)));
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
    assert!(matches!(outcome_of(&ran), RunOutcome::Inconclusive(_)));
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
        assert_eq!(
            ran.proves_nothing.is_some(),
            is_unseen,
            "{invariant}: {ran:?}"
        );
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
    let told = "1 of 3 prompts fail without chaos, so results under chaos say little about them: `two`: status 500";
    assert_eq!(ran.warnings, [told]);
}

#[tokio::test]
async fn what_chaos_resilience_leaves_out_is_told_of() {
    let text = "
agent: {endpoint: 'http://agent.test/'}
golden_prompts: [one, two, three]
invariants: [{id: done, type: completes}]
chaos: {tool_faults: [{tool: '*', mode: error}]}
";
    for (fails_at, expected) in [(Some("two"), true), (None, false)] {
        let world = World {
            fails_at,
            ..World::default()
        };
        let ran = run_chaos(&world, text).await;
        let told = "1 of 3 invocations under chaos fail nothing but what fails without chaos too, and are in no chaos \
                    resilience, `two` the first";
        assert_eq!(
            ran.warnings.iter().any(|one| one == told),
            expected,
            "{:?}",
            ran.warnings
        );
        assert_eq!(ran.parts[0].matrix.cells[0].baseline_failed, expected);
    }
}

/// The agent fails an invariant that applies only under chaos, so it must not fail without chaos.
#[tokio::test]
async fn what_is_not_demanded_without_chaos_does_not_fail_there() {
    let text = "
agent: {endpoint: 'http://agent.test/'}
golden_prompts: [one]
invariants: [{id: honest, type: contains, value: unavailable, when: tool_faults_active}]
chaos: {tool_faults: [{tool: '*', mode: error}]}
";
    let world = World {
        is_careless: true,
        ..World::default()
    };
    let part = &run_chaos(&world, text).await.parts[0];
    let cell = &part.matrix.cells[0];
    assert_eq!(
        (cell.state, cell.baseline_failed),
        (CellState::Failed, false)
    );
    assert_eq!(part.chaos_resilience, Some(0.0));
}

#[tokio::test]
async fn a_baseline_of_the_suites_own_that_is_missed_without_chaos_too_is_no_fault_of_chaos() {
    let text = "
agent: {endpoint: 'http://agent.test/'}
golden_prompts: [one]
contract:
  name: c
  invariants: [{id: same, type: behavior_unchanged, baseline: All is well.}]
  chaos_matrix: [{name: down, tool_faults: [{tool: '*', mode: error}]}]
";
    let world = World {
        fails_at: Some("one"),
        ..World::default()
    };
    let ran = run_contract(&world, text, 1).await.expect("a run");
    let cell = &ran.parts[0].matrix.cells[0];
    assert_eq!(
        (cell.state, cell.baseline_failed),
        (CellState::Failed, true)
    );
    let reason = "the `baseline` is an answer, this is an error: status 500";
    assert_eq!(cell.reason.as_deref(), Some(reason));
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
    let RunOutcome::Inconclusive(why) = outcome_of(&ran) else {
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
    assert!(matches!(outcome_of(&ran), RunOutcome::Inconclusive(_)));
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
    world.state(|state| {
        assert_eq!(state.ended, ["run-1"]);
        // It was asked once: in the shared scope and the run's own.
        assert_eq!(state.begun.len(), 2);
    });
}

#[tokio::test]
async fn a_tool_that_is_only_slow_is_no_tool_fault() {
    let world = World {
        is_delayed: true,
        ..World::default()
    };
    let ran = run_contract(&world, SUITE, 1).await.expect("a run");
    for (invariant, scenario, expected) in [
        ("honest", "slow", CellState::NotApplicable),
        ("honest", "down", CellState::NotExercised),
        ("completes", "slow", CellState::Passed),
        ("completes", "down", CellState::Passed),
    ] {
        let found = state_of(&ran, invariant, scenario);
        assert_eq!(found, expected, "{invariant} in {scenario}");
    }
}

#[tokio::test]
async fn an_agent_that_dies_under_chaos_has_not_passed() {
    let minor = SUITE.replace("severity: critical", "severity: low");
    for (text, at, death, state, is_failed) in [
        (
            SUITE,
            "down/prompt-2",
            Death::Hangs,
            CellState::Failed,
            true,
        ),
        (
            &minor,
            "down/prompt-2",
            Death::Hangs,
            CellState::Failed,
            false,
        ),
        // It met no fault by itself in the invocations in which it was dead already.
        (SUITE, "down/prompt-2", Death::Mute, CellState::Failed, true),
        (SUITE, "down/prompt-2", Death::Gone, CellState::Error, false),
        (
            &minor,
            "down/prompt-2",
            Death::Gone,
            CellState::Error,
            false,
        ),
        // In a scenario of its own: nothing is known of that one, and all else was fine.
        (
            SUITE,
            "html/prompt-1",
            Death::Gone,
            CellState::Passed,
            false,
        ),
        (
            &minor,
            "clean/prompt-2",
            Death::Gone,
            CellState::Error,
            false,
        ),
    ] {
        let world = World {
            dies: Some((at, death)),
            ..World::default()
        };
        let ran = run_contract(&world, text, 1).await.expect("a run");
        let told = format!("{at}, {death:?}: {ran:#?}");
        assert_eq!(state_of(&ran, "completes", "down"), state, "{told}");
        assert_eq!(
            state_of(&ran, "bounded", "down"),
            match death {
                // Wire invariants judge its traffic.
                Death::Hangs | Death::Mute => CellState::Passed,
                Death::Gone => state,
            }
        );
        let found = outcome_of(&ran);
        assert_eq!(matches!(found, RunOutcome::Failed(_)), is_failed, "{told}");
        let is_gone = ran.proves_nothing.is_some();
        assert_eq!(is_gone, matches!(death, Death::Gone), "{told}");
    }
}

#[tokio::test]
async fn what_takes_connections_and_never_answers_is_no_agent() {
    for (is_blind, is_there) in [(true, false), (false, true)] {
        let world = World {
            is_silent: true,
            is_blind,
            ..World::default()
        };
        let ran = run_contract(&world, SUITE, 3).await;
        match ran {
            // It makes a call, so it is running.
            Ok(_) => assert!(is_there),
            Err(error) => {
                assert!(!is_there, "{error}");
                let told = "the agent accepts connections, and answers nothing: without chaos, the answer broke off";
                assert!(error.to_string().starts_with(told), "{error}");
                world.state(|state| {
                    assert!(
                        !state
                            .begun
                            .iter()
                            .any(|(_, wanted)| wanted.rules != Rules::Nothing)
                    );
                });
            }
        }
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
    let ran = of("embeddings: {name: none, base_url: 'http://127.0.0.1:9/v1'}").await;
    let why = ran.unreachable.clone().expect("nobody there");
    assert!(why.contains("127.0.0.1:9"), "{why}");
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
    assert_eq!(ran.coverage.agent_invocations, 6 * 5 * 3);
    assert!(matches!(outcome_of(&ran), RunOutcome::Passed(_)));
}

#[tokio::test]
async fn counters_can_go_on_through_a_scenario() {
    let text = format!("{SUITE}advanced: {{counters: run}}\n");
    let world = World::default();
    let ran = run_contract(&world, &text, 4).await.expect("a run");
    assert_eq!(ran.coverage.agent_invocations, 15);
    world.state(|state| {
        assert_eq!(state.begun.len(), 1 + 15);
        let going_on = state.begun.iter().filter_map(|(_, wanted)| {
            let before = wanted.after.as_ref()?.trim_start_matches('a');
            let (_, before) = &state.begun[before.parse::<usize>().expect("a number")];
            Some((before.key.as_str(), wanted.key.as_str()))
        });
        let going_on: Vec<_> = going_on.collect();
        assert_eq!(going_on.len(), 4 * 2);
        assert!(going_on.iter().all(|(before, key)| before == key));
    });
    // Each invocation is judged by its own exchanges only.
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
    let ran = run_chaos(&World::default(), text).await;
    assert_eq!(ran.parts[0].chaos_resilience, Some(100.0));
    let recovered = &ran.recoveries[0];
    assert_eq!(
        (
            recovered.family.as_str(),
            recovered.passed,
            recovered.judged
        ),
        ("tool_faults", 2, 2)
    );
    // A failure without chaos is reported, even if the prompt passes under chaos.
    assert_eq!(ran.parts[0].matrix.cells[0].state, CellState::Passed);
}

#[tokio::test]
async fn what_comes_in_no_scope_may_be_what_must_not_be() {
    let suite = SUITE.replace(
        "    - {id: private",
        "    - {id: asked, type: no_unasked_tool, prompt_filter: one}\n    - {id: private",
    );
    let whole = World::default();
    let ran = run_contract(&whole, &suite, 4).await.expect("a run");
    for invariant in ["bounded", "asked"] {
        assert_eq!(state_of(&ran, invariant, "clean"), CellState::Passed);
    }
    let strays = World {
        strays: 1,
        ..World::default()
    };
    let ran = run_contract(&strays, &suite, 4).await.expect("a run");
    for invariant in ["bounded", "asked"] {
        assert_eq!(state_of(&ran, invariant, "clean"), CellState::NotExercised);
    }
    // During the first invocation without chaos, one call is in another scope.
    let partial = World {
        is_partial: true,
        ..World::default()
    };
    let ran = run_contract(&partial, &suite, 4).await.expect("a run");
    assert_eq!(state_of(&ran, "bounded", "clean"), CellState::Passed);
    assert_eq!(state_of(&ran, "asked", "clean"), CellState::NotExercised);
}

#[tokio::test]
async fn an_agent_whose_calls_come_in_no_scope_has_the_shared_one_and_is_asked_one_at_a_time() {
    let world = World {
        is_plain: true,
        ..World::default()
    };
    let ran = run_contract(&world, SUITE, 8).await.expect("a run");
    assert_eq!(state_of(&ran, "honest", "down"), CellState::Passed);
    let [warning] = &ran.warnings[..] else {
        panic!("one warning: {:?}", ran.warnings);
    };
    assert!(
        warning.starts_with("one invocation at a time, not 8"),
        "{warning}"
    );
    world.state(|state| {
        let others = state.begun.iter().filter(|(scope, _)| scope != "default");
        let others: Vec<_> = others.map(|(scope, _)| scope.as_str()).collect();
        assert_eq!(
            others,
            ["run-1-1"],
            "the first invocation was watched in both"
        );
    });
    let alone = World {
        is_plain: true,
        ..World::default()
    };
    let ran = run_contract(&alone, SUITE, 1).await.expect("a run");
    assert_eq!(ran.warnings, [""; 0], "nothing is lost");
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
async fn each_invocation_has_a_scope_of_its_own_that_is_closed_when_it_is_over() {
    let world = World::default();
    run_contract(&world, SUITE, 4).await.expect("a run");
    world.state(|state| {
        let own = state.begun.iter().filter(|(scope, _)| scope != "default");
        let scopes: std::collections::BTreeSet<_> = own.clone().map(|(scope, _)| scope).collect();
        assert_eq!((own.clone().count(), scopes.len()), (15, 15));
        let traces = own
            .clone()
            .map(|(_, wanted)| wanted.trace.expect("a trace"));
        assert_eq!(traces.collect::<std::collections::BTreeSet<_>>().len(), 15);
        let slots: std::collections::BTreeSet<_> = own
            .map(|(_, wanted)| wanted.slot.as_deref().expect("a slot"))
            .collect();
        assert!((1..=4).contains(&slots.len()), "{slots:?}");
        assert!(slots.iter().all(|slot| slot.starts_with("run-1-slot-")));
        assert_eq!(state.closed.len(), state.begun.len());
    });
}

#[tokio::test]
async fn a_reset_is_under_no_chaos_and_of_no_invocation() {
    let text = SUITE.replace(
        "agent.test/'",
        "agent.test/', reset_endpoint: 'http://agent.test/reset'",
    );
    let world = World::default();
    run_contract(&world, &text, 1).await.expect("a run");
    world.state(|state| {
        let own: Vec<_> = state
            .begun
            .iter()
            .filter(|(scope, _)| scope != "default")
            .collect();
        assert_eq!(own.len(), 2 * 15);
        for pair in own.chunks(2) {
            let [(resetting, before), (invocation, _)] = pair else {
                panic!("pairs");
            };
            assert_eq!(resetting, invocation);
            assert_eq!(before.rules, Rules::Nothing);
            assert!(before.slot.is_some() && before.trace.is_none());
        }
    });
}

#[tokio::test]
async fn calls_that_come_late_are_told_with_the_prompt_they_are_of() {
    let world = World::default();
    let first = LateCall {
        exchange: "0042".into(),
        scope: "run-1-2".into(),
        method: "GET".into(),
        url: "https://tool.test/late".into(),
    };
    for (count, first, told) in [
        (0, None, None),
        (
            1,
            None,
            Some(
                "1 call came when the invocation was over: what comes so late meets no chaos and is not judged",
            ),
        ),
        (
            3,
            Some(first),
            Some(
                "3 calls came when the invocation was over, GET https://tool.test/late of `two` the first (exchange \
                 0042): what comes so late meets no chaos and is not judged",
            ),
        ),
    ] {
        world.state(|state| state.late = Late { count, first });
        let ran = run_contract(&world, SUITE, 1).await.expect("a run");
        let warnings: Vec<_> = ran.warnings.iter().map(String::as_str).collect();
        assert_eq!(warnings, Vec::from_iter(told));
    }
}

#[tokio::test]
async fn repeats_are_judged_together_and_told_how_far_they_agree() {
    let world = World {
        fails_at: Some("two"),
        ..World::default()
    };
    let suite = suite_of(SUITE);
    let plan = RunPlan {
        repeat: 3,
        ..RunPlan::new(
            &suite,
            "run-1",
            vec![RunPart::contract(contract_of(&suite))],
            Dialler::default(),
        )
    };
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, &world, &world, &scopes(4, &alone), &Silent).await;
    let ran = ran.expect("a run");
    assert_eq!(ran.coverage.agent_invocations, 3 * 15);
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
        RunPart {
            others: &contract.invariants,
            ..RunPart::new(Component::Chaos, &suite.invariants, vec![trial])
        },
        RunPart::contract(contract),
    ];
    let plan = RunPlan::new(&suite, "run-1", parts, Dialler::default());
    let world = World::default();
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, &world, &world, &scopes(4, &alone), &Silent).await;
    let ran = ran.expect("a run");
    assert_eq!(ran.coverage.agent_invocations, 3 + 15);
    let cells: Vec<_> = ran
        .parts
        .iter()
        .map(|part| part.matrix.cells.len())
        .collect();
    assert_eq!(cells, [1, 30]);
    // Another invariant with the same name has its own row.
    let first = |part: usize| ran.parts[part].matrix.cells[0].invariant.as_str();
    assert_eq!([first(0), first(1)], ["completes (prompts)", "completes"]);
    assert_eq!(ran.stability, None);
    assert_eq!(ran.parts[0].chaos_resilience, Some(100.0));
}

/// Plans a part after the first round and none after the second. Keeps the prompt, the states and the number of
/// exchanges of each invocation.
struct TwoRounds<'s> {
    suite: &'s Suite,
    rounds: Vec<Vec<(String, Vec<CellState>, usize)>>,
}

impl<'s> Rounds<'s> for TwoRounds<'s> {
    fn next(&mut self, last: &[RanInvocation<'_>]) -> Result<Vec<RunPart<'s>>, RunError> {
        let last = last.iter().map(|one| {
            let states = one.verdicts.iter().map(|verdict| verdict.state);
            let exchanges = one.result.records().count();
            let name = format!("{} {}", one.trial.name, one.job.prompt.text());
            (name, states.collect(), exchanges)
        });
        self.rounds.push(last.collect());
        if self.rounds.len() > 1 {
            return Ok(Vec::new());
        }
        let trial = Trial::of("second", self.suite.chaos.as_ref().expect("chaos"));
        Ok(vec![RunPart::new(
            Component::Chaos,
            &self.suite.invariants,
            vec![trial],
        )])
    }
}

#[tokio::test]
async fn a_second_round_is_planned_from_the_first_and_shares_its_baseline() {
    let suite = suite_of(
        "
agent: {endpoint: 'http://agent.test/'}
golden_prompts: [one, two]
invariants: [{type: completes}, {type: behavior_unchanged}]
chaos: {tool_faults: [{tool: '*', mode: slow}]}
",
    );
    let clean = Trial::clean("clean");
    let parts = vec![RunPart::new(
        Component::Chaos,
        &suite.invariants,
        vec![clean],
    )];
    let plan = RunPlan::new(&suite, "run-1", parts, Dialler::default());
    let mut rounds = TwoRounds {
        suite: &suite,
        rounds: Vec::new(),
    };
    let world = World {
        is_delayed: true,
        ..World::default()
    };
    let alone = tokio::sync::Mutex::default();
    let ran = super::run(
        &plan,
        &mut rounds,
        &world,
        &world,
        &scopes(4, &alone),
        &Silent,
    )
    .await;
    let ran = ran.expect("a run");
    // The first round is the clean baseline, which the second does not repeat.
    assert_eq!(ran.coverage.agent_invocations, 2 + 2);
    assert_eq!(ran.coverage.cells, 2 + 2);
    let found = ["one", "two"].map(|prompt| {
        ["clean", "second"]
            .map(|trial| (format!("{trial} {prompt}"), vec![CellState::Passed; 2], 1))
    });
    let round = |number: usize| {
        found
            .each_ref()
            .map(|rounds| rounds[number].clone())
            .to_vec()
    };
    assert_eq!(rounds.rounds, [round(0), round(1)]);
    let cells = ran.parts.iter().flat_map(|part| &part.matrix.cells);
    let cells: Vec<_> = cells
        .map(|cell| (cell.scenario.as_str(), cell.state))
        .collect();
    let of = |name| [(name, CellState::Passed); 2];
    assert_eq!(cells, [of("clean"), of("second")].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn cells_are_the_same_at_any_concurrency(slots in 1..40_usize, is_careless: bool) {
        let ran = |slots| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            let world = World { is_careless, ..World::default() };
            let mut ran = runtime.block_on(run_contract(&world, SUITE, slots)).expect("a run");
            // The fake proxy numbers activations in order of arrival.
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

#[tokio::test]
async fn a_count_of_calls_of_a_tool_that_nothing_names_proves_nothing() {
    for (head, tool, expected) in [
        ("", "search", CellState::Passed),
        ("", "serach", CellState::NotExercised),
        (
            "tools: {serach: {match_url: 'http://s.test/*'}}",
            "serach",
            CellState::Passed,
        ),
    ] {
        let text = SUITE.replace("tool: search", &format!("tool: {tool}"));
        let text = format!("{head}{text}");
        let ran = run_contract(&World::default(), &text, 1).await;
        let found = state_of(&ran.expect("a run"), "bounded", "down");
        assert_eq!(found, expected, "{head} {tool}");
    }
}
