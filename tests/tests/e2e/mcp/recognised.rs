//! What is known as MCP, and passes as it is.

use serde_json::json;
use squall_tests::upstream::mcp::{answers, events};
use squall_tests::{Path, Stage};

use super::{BOTH, CLIENT, ERAS, JSON, call, stage, with_rule};

#[test]
fn the_official_client_hears_the_same_and_its_calls_are_known_by_name() {
    let stage = stage();
    let tools = [
        "--list",
        "--tool",
        "get_weather,book,get_weather,fail,nothing",
    ];
    // The second endpoint of 2024 is named from the server's root, so a route's prefix would be lost.
    for (path, endpoint, arguments) in [
        (Path::Forward, "/2024/sse", &["--era", "sse"][..]),
        (Path::Reverse, ERAS[1].0, ERAS[1].1),
        (Path::Intercepted, ERAS[2].0, ERAS[2].1),
    ] {
        let arguments = [arguments, &tools].concat();
        let straight = stage.way(Path::Direct, endpoint).ask(CLIENT, &arguments);
        assert_eq!(straight["calls"][2]["ok"], true, "{endpoint}: {straight}");
        assert_eq!(straight["calls"][3]["is_error"], true, "{straight}");
        assert_eq!(straight["calls"][4]["code"], -32602, "{straight}");
        let seen = stage.daemon.api.exchanges().len();
        let through = stage.way(path, endpoint).ask(CLIENT, &arguments);
        assert_eq!(through, straight, "{path:?} {endpoint} {arguments:?}");
        let entries = stage.daemon.api.wait("the last call", || {
            let entries = stage.daemon.api.exchanges().split_off(seen);
            let last = entries.iter().any(|one| one["tool"] == "nothing");
            last.then_some(entries)
        });
        for entry in &entries {
            assert_eq!(entry["kind"], "mcp", "{endpoint}: {entry}");
        }
        let of = |tool: &str| entries.iter().filter(|one| one["tool"] == tool).count();
        assert_eq!((of("get_weather"), of("book")), (2, 1), "{endpoint}");
    }
}

#[test]
fn every_event_reaches_the_agent_as_it_is_before_the_next_is_sent() {
    let stage = stage();
    let message = call(7, "get_weather");
    let expected = events(&message, &answers(&message, true).unwrap());
    assert_eq!(expected.len(), 4);
    let mut wire = stage.open(Path::Reverse);
    let headers = [
        JSON,
        BOTH,
        ("x-step", "1"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "get_weather"),
    ];
    let body = message.to_string();
    wire.request("POST", "/2026/events", &headers, body.as_bytes());
    for event in &expected {
        stage.plain.step();
        wire.receive_until(event);
    }
}

#[test]
fn a_fault_of_one_tool_leaves_the_others_and_the_handshake_alone() {
    let stage = stage();
    let rule = json!({ "mode": "error", "tool": "get_weather", "error_code": 503 });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    let (endpoint, arguments) = ERAS[0];
    let way = stage.way(Path::Reverse, endpoint);
    let told = way.ask(
        CLIENT,
        &[arguments, &["--tool", "book,get_weather"]].concat(),
    );
    let told = [&told["calls"][0]["ok"], &told["calls"][1]["ok"]];
    assert_eq!(told, [&json!(true), &json!(false)]);
    // Without a name: calls of any tool, and nothing else.
    let rule = json!({ "mode": "error", "error_code": 503 });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    let told = way.ask(CLIENT, &[arguments, &["--list"]].concat());
    assert_eq!(told["tools"].as_array().map(Vec::len), Some(3), "{told}");
    assert_eq!(told["first"]["ok"], false, "{told}");
}

#[test]
fn what_only_mcp_has_is_bypassed_elsewhere() {
    let stage = Stage::new();
    for mode in ["session_expired", "wrong_id", "endless_progress"] {
        stage
            .daemon
            .api
            .chaos(&json!({ "tool_faults": [{ "mode": mode }] }));
        let answer = stage.open(Path::Reverse).get("/tool");
        assert_eq!(answer.status, 200);
        let (_, rule) = with_rule(&stage, mode);
        assert_eq!(rule["outcome"], "bypassed", "{rule}");
        assert!(rule["reason"].to_string().contains("no MCP call"), "{rule}");
    }
    // A list drifts where there is one, or where a URL says so.
    let rule = json!({ "mode": "list_drift", "match_url": "*" });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    assert_eq!(stage.open(Path::Reverse).get("/tool").status, 200);
    let (_, rule) = with_rule(&stage, "list_drift");
    assert_eq!(rule["outcome"], "bypassed", "{rule}");
}
