//! MCP in its eras: byte by byte, and as the official Python client takes it.

mod batches;
mod cases;
mod faults;
mod recognised;
mod resumed;
mod two_endpoints;

use serde_json::{Value, json};
use squall_tests::program::Way;
use squall_tests::upstream::mcp::Server;
use squall_tests::wire::Response;
use squall_tests::{Path, Stage};

const CLIENT: &str = "mcp_client.py";
/// What a client of 2025 accepts.
const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("content-type", "application/json");

/// Endpoints of the simulator, each with how the client speaks to it.
const ERAS: [(&str, &[&str]); 3] = [
    ("/2025/json", &["--era", "legacy"]),
    ("/2025/events", &["--era", "legacy", "--progress"]),
    ("/2026/events", &["--era", "2026-07-28", "--progress"]),
];

fn stage() -> Stage {
    let server = Server::default();
    Stage::with(&json!({}), move |connection| server.serve(connection))
}

fn call(id: u64, tool: &str) -> Value {
    let params = json!({
        "name": tool, "arguments": { "city": "Oslo" }, "_meta": { "progressToken": "p" },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// POSTs a message as a client of 2025 without a session does.
fn post(stage: &Stage, path: Path, target: &str, message: &Value) -> Response {
    let mut wire = stage.open(path);
    let body = message.to_string();
    wire.request("POST", target, &[JSON, BOTH], body.as_bytes());
    wire.response()
}

/// What the client tells of a session under each of these, side by side in scopes of their own, by the
/// scope's name.
fn in_scopes(
    stage: &Stage,
    endpoint: &str,
    arguments: &[&str],
    chaos: &[Value],
) -> Vec<(String, Value)> {
    let scopes: Vec<_> = (0..chaos.len())
        .map(|number| format!("case-{number}"))
        .collect();
    for (scope, chaos) in scopes.iter().zip(chaos) {
        stage.daemon.api.chaos_in(scope, chaos);
    }
    let names = scopes.join(",");
    let url = format!("http://{}/_scope/SCOPE/up{endpoint}", stage.daemon.proxy);
    let arguments = [arguments, &["--scopes", &names]].concat();
    let mut told = Way::direct(url).ask(CLIENT, &arguments);
    let told = scopes.into_iter().map(|scope| {
        let told = told[&scope].take();
        (scope, told)
    });
    told.collect()
}

/// The journal's latest entry with a rule of `mode`, and that rule.
fn with_rule(stage: &Stage, mode: &str) -> (Value, Value) {
    stage
        .daemon
        .api
        .wait(&format!("{mode} in the journal"), || {
            let page = stage.daemon.api.get("/v1/exchanges?limit=20");
            page["items"].as_array()?.iter().find_map(|exchange| {
                let rules = exchange["rules"].as_array()?;
                let rule = rules.iter().find(|rule| rule["mode"] == mode)?;
                (exchange["outcome"] != "open").then(|| (exchange.clone(), rule.clone()))
            })
        })
}

fn outcome(stage: &Stage, mode: &str) -> Value {
    with_rule(stage, mode).1["outcome"].clone()
}

/// Calls that have reached the server in clear.
fn forwarded_calls(stage: &Stage) -> usize {
    let requests = stage.plain.requests();
    let calls = requests.iter().filter(|request| {
        let body = String::from_utf8_lossy(&request.body);
        body.contains("\"tools/call\"")
    });
    calls.count()
}
