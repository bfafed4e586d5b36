//! Gaps in flakestorm's runs, one test each, named after its number.

use std::time::Duration;

use super::world::LATENCY;
use super::*;

const DOWN: &str = "{name: down, tool_faults: [{tool: '*', mode: error}]}";

fn contract(invariants: &str, matrix: &str) -> String {
    format!(
        "agent: {{endpoint: 'http://agent.test/'}}\ngolden_prompts: [one, two]\n\
         chaos: {{llm_faults: [{{mode: empty}}]}}\n\
         contract:\n  name: c\n  invariants: [{invariants}]\n  chaos_matrix: [{matrix}]\n"
    )
}

fn keys_under(world: &World, wanted: impl Fn(&RequestedChaos) -> bool) -> Vec<String> {
    world.state(|state| {
        let begun = state.begun.iter();
        let found = begun.filter(|(_, one)| wanted(one));
        found.map(|(_, one)| one.key.clone()).collect()
    })
}

#[tokio::test]
async fn g6_and_g13_only_the_scenarios_rules_are_in_force_and_the_clean_run_has_none() {
    let world = World::default();
    let text = contract(
        "{id: a, type: completes}",
        &format!("{{name: clean}}, {DOWN}"),
    );
    run_contract(&world, &text, 1).await.expect("a run");
    let faulted = keys_under(&world, |wanted| wanted.rules != Rules::Nothing);
    assert_eq!(faulted, ["down/prompt-1/1", "down/prompt-2/1"]);
    world.state(|state| {
        for (_, wanted) in &state.begun {
            if let Rules::Document { text, .. } = &wanted.rules {
                assert!(!text.contains("llm_faults"), "{text}");
            }
        }
    });
}

#[tokio::test]
async fn g9_and_g29_a_cell_keeps_what_it_was_judged_by() {
    let world = World::default();
    let text = contract("{id: a, type: contains, value: well}", DOWN);
    let ran = run_contract(&world, &text, 1).await.expect("a run");
    let cell = &ran.parts[0].matrix.cells[0];
    assert_eq!((cell.state, cell.faults_applied), (CellState::Failed, 2));
    assert!(cell.reason.is_some());
    let asked: Vec<_> = cell.evidence.iter().map(|one| &*one.prompt).collect();
    assert_eq!(asked, ["one", "two"]);
    for evidence in &cell.evidence {
        assert_eq!(evidence.answer.as_deref(), Some("The data is unavailable."));
        let took = Duration::from_secs_f64(evidence.latency_ms / 1000.0);
        assert_eq!(took, LATENCY);
        assert_eq!((evidence.exchanges.len(), evidence.faults_applied), (1, 1));
        assert!(evidence.reason.is_some() && evidence.state == Some(CellState::Failed));
    }
}

#[tokio::test]
async fn g14_one_seed_governs_every_invocation() {
    for seed in [1, 2] {
        let world = World::default();
        let text =
            contract("{id: a, type: completes}", DOWN) + &format!("advanced: {{seed: {seed}}}\n");
        run_contract(&world, &text, 2).await.expect("a run");
        assert_eq!(keys_under(&world, |wanted| wanted.seed != seed), [""; 0]);
    }
}

#[tokio::test]
async fn g24_every_prompt_is_compared_with_its_own_clean_answer() {
    let world = World {
        fails_at: Some("two"),
        ..World::default()
    };
    let text = contract("{id: same, type: behavior_unchanged}", "{name: clean}");
    let ran = run_contract(&world, &text, 1).await.expect("a run");
    let cell = &ran.parts[0].matrix.cells[0];
    // Without a clean answer for `two`, the cell is an error.
    assert_eq!(cell.state, CellState::Error, "{cell:?}");
    let states: Vec<_> = cell
        .evidence
        .iter()
        .map(|one| (one.prompt.as_str(), one.state))
        .collect();
    assert_eq!(
        states,
        [
            ("two", Some(CellState::Error)),
            ("one", Some(CellState::Passed))
        ]
    );
}

#[tokio::test]
async fn g28_what_is_asked_outside_is_asked_once_for_all_cells() {
    let folder = std::env::temp_dir().join(format!("squall-g28-{}", std::process::id()));
    let script = format!(
        "echo x >> {}; echo '{{\"holds\": true, \"reason\": \"fine\"}}'",
        folder.display()
    );
    let script = serde_json::json!(script);
    // The question contains only the answer, which is the same in every clean scenario.
    let judged = format!(
        "{{id: a, type: command, command: [sh, -c, {script}]}}, \
         {{id: b, type: command, command: [sh, -c, {script}]}}"
    );
    let world = World {
        is_blind: true,
        ..World::default()
    };
    let text = contract(&judged, "{name: one}, {name: two}, {name: three}");
    let ran = run_contract(&world, &text, 1).await.expect("a run");
    let asked = std::fs::read_to_string(&folder).expect("it was asked");
    std::fs::remove_file(&folder).expect("removed");
    assert!(
        ran.parts[0]
            .matrix
            .cells
            .iter()
            .all(|cell| cell.state == CellState::Passed),
        "{ran:?}"
    );
    // Latencies are part of the question and are all equal here, so there is one question per prompt.
    assert_eq!(asked.lines().count(), 2);
}

#[tokio::test]
async fn g55_no_secret_stands_in_evidence() {
    let world = World::default();
    let text = "agent: {endpoint: 'http://agent.test/'}\n\
                golden_prompts: ['my key is sk-abcdefgh12345678']\n\
                contract:\n  name: c\n  invariants: [{id: a, type: completes}]\n  chaos_matrix: [{name: clean}]\n";
    let ran = run_contract(&world, text, 1).await.expect("a run");
    assert_eq!(
        ran.parts[0].matrix.cells[0].evidence[0].prompt,
        "my key is REDACTED"
    );
}

/// Executes a suite with its own chaos and a contract, in both parts.
async fn run_everything(world: &World, slots: usize) -> Ran {
    let text = contract(
        "{id: a, type: completes}",
        &format!("{{name: clean}}, {DOWN}"),
    ) + "invariants: [{type: output_not_empty}]\n";
    let suite = suite_of(&text);
    let trial = Trial::of("chaos", suite.chaos.as_ref().expect("chaos"));
    let parts = vec![
        RunPart::new(Component::Chaos, &suite.invariants, vec![trial]),
        RunPart::contract(contract_of(&suite)),
    ];
    let plan = RunPlan::new(&suite, "run-1", parts, Dialler::default());
    let alone = tokio::sync::Mutex::default();
    let ran = run(&plan, world, world, &scopes(slots, &alone), &Silent).await;
    ran.expect("a run")
}

#[tokio::test]
async fn g4_and_g5_the_suites_chaos_is_in_force_in_its_own_part_only() {
    let world = World::default();
    run_everything(&world, 1).await;
    let holding = |word: &'static str| {
        keys_under(&world, move |wanted| match &wanted.rules {
            Rules::Document { text, .. } => text.contains(word),
            Rules::Nothing | Rules::Profile(_) | Rules::Limited { .. } => false,
        })
    };
    assert_eq!(
        holding("llm_faults"),
        ["chaos/prompt-1/1", "chaos/prompt-2/1"]
    );
    assert_eq!(
        holding("tool_faults"),
        ["down/prompt-1/1", "down/prompt-2/1"]
    );
}
