//! Faults that make connections fail also apply to agents with kept-alive connections, and to CONNECTs without a
//! scope.

use super::*;

const MATRIX: &str = "[{name: clean}, \
    {name: down, tool_faults: [{tool: '*', mode: error}]}, \
    {name: untrusted, network_faults: [{mode: tls_failure, kind: untrusted}]}, \
    {name: refused, network_faults: [{mode: refuse}]}]";

fn text(agent: &str, matrix: &str, counters: &str) -> String {
    format!(
        "agent: {agent}\ngolden_prompts: [one, two]\nadvanced: {{counters: {counters}}}\n\
         contract:\n  name: c\n  invariants: [{{id: a, type: completes}}]\n  chaos_matrix: {matrix}\n"
    )
}

async fn begun(agent: &str, matrix: &str, counters: &str) -> Vec<(String, RequestedChaos)> {
    let world = World::default();
    let ran = run_contract(&world, &text(agent, matrix, counters), 4).await;
    ran.expect("a run");
    world.state(|state| std::mem::take(&mut state.begun))
}

const HTTP: &str = "{endpoint: 'http://agent.test/'}";

#[tokio::test]
async fn each_exchange_has_its_connection_where_some_scenario_fails_them() {
    for (matrix, expected) in [
        (
            "[{name: clean}, {name: slow, network_faults: [{mode: latency, delay_ms: 1}]}]",
            false,
        ),
        (MATRIX, true),
    ] {
        for (scope, wanted) in begun(HTTP, matrix, "invocation").await {
            assert_eq!(wanted.connects_anew, expected, "{} in {scope}", wanted.key);
        }
    }
}

#[tokio::test]
async fn a_scenario_that_fails_handshakes_is_in_force_in_the_scope_that_connects_fall_into() {
    for (agent, expected) in [
        (HTTP, vec!["untrusted/prompt-1/1", "untrusted/prompt-2/1"]),
        // The scope of its CONNECTs is in the variables that it is started with.
        ("{type: command, command: [./agent]}", vec![]),
    ] {
        let begun = begun(agent, MATRIX, "invocation").await;
        let shared = |(scope, wanted): &&(String, RequestedChaos)| {
            scope == "default" && wanted.rules != Rules::Nothing
        };
        let shared = begun.iter().filter(shared);
        let keys: Vec<_> = shared.map(|(_, wanted)| &*wanted.key).collect();
        assert_eq!(keys, expected, "{agent}");
    }
}

#[tokio::test]
async fn counters_of_a_run_go_on_there() {
    let begun = begun(HTTP, MATRIX, "run").await;
    let shared = |(scope, wanted): &&(String, RequestedChaos)| {
        scope == "default" && wanted.key.starts_with("untrusted")
    };
    let after = begun.iter().filter(shared);
    let after: Vec<_> = after.map(|(_, wanted)| wanted.after.is_some()).collect();
    assert_eq!(after, [false, true]);
}
