//! Mutants that a model wrote, in a run that is repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Upstream};

use super::{agent, cells};

/// A model whose texts are all different.
fn model() -> Upstream {
    let number = Arc::new(AtomicU64::new(1));
    Upstream::start(None, move |mut connection| {
        while connection.request().is_some() {
            let text = format!("Variant {}", number.fetch_add(1, Ordering::SeqCst));
            let body = json!({ "message": { "role": "assistant", "content": text }, "done": true });
            let body = body.to_string();
            if !connection.send(standard::whole(
                "200 OK",
                "application/json",
                body.as_bytes(),
            )) {
                return;
            }
        }
    })
}

#[test]
fn a_repeated_run_gets_the_same_mutants_without_the_model_after_a_restart_too() {
    let (agent, model) = (agent(), model());
    let mut daemon = Daemon::start(&json!({}));
    let suite = json!({
        "name": "weather",
        "agent": { "endpoint": format!("http://{}/ask", agent.address) },
        "golden_prompts": ["What is the weather in Kiel today?", ["Hello", "And in Rome?"]],
        "invariants": [{ "type": "contains", "value": "sunny" }],
        "model": { "provider": "ollama", "name": "writer", "base_url": format!("http://{}", model.address) },
        "mutations": { "count": 4, "types": ["paraphrase", "tone_shift"] },
    });
    // The mutants of a run with this seed, and how often the model was called.
    let mutants = |daemon: &Daemon, seed: u64| {
        let before = model.requests().len();
        let wish = json!({ "kind": "mutation", "suite": suite, "options": { "seed": seed } });
        let run = daemon.api.ended_run(&daemon.api.ask_for_run(&wish));
        assert_eq!(run["state"], "passed", "{run:#}");
        let evidence = cells(&run).flat_map(|cell| cell["evidence"].as_array().unwrap());
        let texts = evidence.map(|one| {
            assert!(
                one["mutant"]["lineage"]
                    .to_string()
                    .contains("written by writer"),
                "{one:#}"
            );
            one["mutant"]["turns"]
                .as_array()
                .map_or_else(|| one["prompt"].clone(), |turns| json!(turns))
        });
        let texts: Vec<Value> = texts.collect();
        assert_eq!(texts.len(), 8, "{run:#}");
        (texts, model.requests().len() - before)
    };
    let (first, calls) = mutants(&daemon, 7);
    assert_eq!(calls, 8);
    assert_eq!(mutants(&daemon, 7), (first.clone(), 0));
    daemon.kill_and_start_again();
    assert_eq!(mutants(&daemon, 7), (first.clone(), 0));
    let (other, calls) = mutants(&daemon, 8);
    assert_eq!(calls, 8);
    assert!(other.iter().all(|text| !first.contains(text)), "{other:?}");
}
