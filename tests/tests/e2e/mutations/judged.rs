//! What judges mutants, how long they may be, and what is exported of those that fail.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{PORTS, agent, cells};
use crate::desk::{CommandResult, Desk, suite_of};

#[test]
fn a_mutant_with_another_meaning_may_be_answered_otherwise() {
    let (desk, agent) = (Desk::new(), agent());
    let suite = json!({
        "agent": { "endpoint": format!("http://{}/ask", agent.address) },
        "golden_prompts": ["What is the weather in Kiel today?"],
        "invariants": [{ "id": "same", "type": "behavior_unchanged" }, { "id": "sunny", "type": "contains", "value": "sunny" }],
        "mutations": { "count": 8, "types": ["paraphrase", "semantic_similarity_attack"] },
    });
    let mutate = [&["mutate", "--json"], PORTS].concat();
    let run: Value = serde_json::from_str(&desk.run(&mutate, &desk.write(&suite)).out).unwrap();
    for (invariant, mutation, state) in [
        ("same", "paraphrase", "passed"),
        ("same", "semantic_similarity_attack", "not_applicable"),
        ("sunny", "semantic_similarity_attack", "passed"),
    ] {
        let mut cells = cells(&run);
        let cell =
            cells.find(|cell| cell["invariant"] == invariant && cell["mutation"] == mutation);
        let cell = cell.unwrap_or_else(|| panic!("{invariant}: {run:#}"));
        assert_eq!(cell["state"], state, "{invariant}, {mutation}: {cell:#}");
    }
}

#[test]
fn mutants_of_a_short_prompt_may_be_much_longer_than_it() {
    let (desk, agent) = (Desk::new(), agent());
    let suite = json!({
        "agent": { "endpoint": format!("http://{}/ask", agent.address), "timeout": 20000 },
        "golden_prompts": ["Hi"],
        "invariants": [{ "type": "contains", "value": "sunny" }],
        "mutations": { "count": 40, "types": ["length_extremes", "advanced_jailbreak", "payload_size_attack"] },
    });
    let mutate = [&["mutate", "--json"], PORTS].concat();
    let run: Value = serde_json::from_str(&desk.run(&mutate, &desk.write(&suite)).out).unwrap();
    let evidence = cells(&run).flat_map(|cell| cell["evidence"].as_array().unwrap());
    assert_eq!(evidence.count(), 40, "{}", run["warnings"]);
    let requests = agent.requests();
    let sizes: Vec<_> = requests.iter().map(|one| one.body.len()).collect();
    let largest = sizes.iter().max().unwrap();
    assert!(*largest >= 1 << 20, "the largest body: {sizes:?}");
    let prompts = sizes.iter().filter(|size| (10_000..70_000).contains(*size));
    assert!(prompts.count() > 0, "a long prompt: {sizes:?}");
    let jailbreaks = sizes.iter().filter(|size| (100..5_000).contains(*size));
    assert!(
        jailbreaks.count() >= 10,
        "prompts around the prompt: {sizes:?}"
    );
}

#[test]
fn a_failed_mutant_is_exported_as_it_was_sent() {
    let desk = Desk::new();
    let mut suite = suite_of(&desk.agent("/json", &[]), "sunny");
    suite["mutations"] = json!({ "types": ["noise", "prompt_injection"], "count": 4 });
    let result = desk.run(&["mutate", "--chaos", "--json"], &desk.write(&suite));
    result.ended(1);
    let run: Value = serde_json::from_str(&result.out).unwrap();
    let evidence = cells(&run).flat_map(|cell| cell["evidence"].as_array().unwrap());
    let asked: BTreeSet<_> = evidence
        .map(|one| one["prompt"].as_str().unwrap())
        .collect();
    assert_eq!(asked.len(), 4, "{run:#}");
    let id = run["id"].as_str().unwrap();
    let export = [
        "replay",
        "export",
        "--run",
        id,
        "--output",
        "incidents",
        "--json",
    ];
    let exported = CommandResult::from(desk.squall(&export).output().unwrap());
    exported.ended(0);
    let exported: Value = serde_json::from_str(&exported.out).unwrap();
    let files = exported["items"].as_array().unwrap().iter();
    let sessions: Vec<String> = files
        .map(|item| {
            let file = desk.directory.path().join(item["file"].as_str().unwrap());
            std::fs::read_to_string(file).unwrap()
        })
        .collect();
    assert_eq!(sessions.len(), 4, "{exported:#}");
    for prompt in asked {
        let input = format!("input: {}", json!(prompt));
        let mut with = sessions.iter().filter(|session| session.contains(&input));
        let session = with
            .next()
            .unwrap_or_else(|| panic!("{input}: {sessions:#?}"));
        assert!(session.contains("status: 503"), "{session}");
        assert!(
            session.contains("expected_failure: \"says-so: "),
            "{session}"
        );
    }
}
