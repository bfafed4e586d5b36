//! What is known as MCP, and passes as it is.

use serde_json::json;
use squall_tests::upstream::mcp::{answers, events};
use squall_tests::{Path, Stage};

use super::{BOTH, CLIENT, ERAS, JSON, call, post, stage, stage_with, with_rule};

#[test]
fn the_official_client_hears_the_same_on_every_path() {
    let stage = stage();
    for (endpoint, arguments) in ERAS {
        let more = [
            "--list",
            "--tool",
            "get_weather,book,get_weather,fail,nothing",
        ];
        let arguments = [arguments, &more].concat();
        let straight = stage.way(Path::Direct, endpoint).ask(CLIENT, &arguments);
        assert_eq!(straight["calls"][2]["ok"], true, "{endpoint}: {straight}");
        assert_eq!(straight["calls"][3]["is_error"], true, "{straight}");
        assert_eq!(straight["calls"][4]["code"], -32602, "{straight}");
        for path in Path::THROUGH {
            let through = stage.way(path, endpoint).ask(CLIENT, &arguments);
            assert_eq!(through, straight, "{path:?} {endpoint} {arguments:?}");
        }
    }
}

/// The session's second endpoint is named from the server's root, so a route's prefix would be lost.
#[test]
fn the_official_client_hears_the_same_in_the_era_of_two_endpoints() {
    let stage = stage();
    let arguments = ["--era", "sse", "--tool", "get_weather,fail"];
    let straight = stage.way(Path::Direct, "/2024/sse").ask(CLIENT, &arguments);
    assert_eq!(straight["first"]["ok"], true, "{straight}");
    for path in [Path::Forward, Path::Intercepted] {
        let through = stage.way(path, "/2024/sse").ask(CLIENT, &arguments);
        assert_eq!(through, straight, "{path:?}");
    }
}

#[test]
fn every_event_reaches_the_agent_as_it_is_before_the_next_is_sent() {
    let stage = stage();
    let message = call(7, "get_weather");
    let expected = events(&message, &answers(&message, true).unwrap());
    assert_eq!(expected.len(), 4);
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
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
            stage.upstream(path).step();
            wire.receive_until(event);
        }
    }
}

#[test]
fn a_call_is_known_by_its_name_in_the_journal_with_and_without_headers() {
    let stage = stage();
    for (endpoint, arguments) in ERAS {
        for (path, rule) in [
            (Path::Reverse, None),
            // A rule that has to know what is called reads it before.
            (
                Path::Forward,
                Some(json!({ "mode": "slow", "tool": "get_weather", "delay_ms": 1 })),
            ),
        ] {
            stage.daemon.api.calm();
            let seen = stage.daemon.api.exchanges().len();
            if let Some(rule) = &rule {
                stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
            }
            let told = stage.way(path, endpoint).ask(CLIENT, arguments);
            assert_eq!(told["first"]["ok"], true, "{endpoint}: {told}");
            let (entries, called) = stage.daemon.api.wait("the call in the journal", || {
                let entries = stage.daemon.api.exchanges().split_off(seen);
                let called = entries.iter().find(|one| one["tool"] == "get_weather");
                called.cloned().map(|called| (entries, called))
            });
            assert_eq!(called["kind"], "mcp", "{called}");
            let rules = called["rules"].as_array().map_or(0, Vec::len);
            assert_eq!(rules, usize::from(rule.is_some()), "{called}");
            for entry in &entries {
                assert_eq!(entry["kind"], "mcp", "{endpoint}: {entry}");
            }
        }
    }
}

#[test]
fn a_name_that_no_header_can_hold_is_decoded() {
    let stage = stage();
    let rule = json!({ "mode": "error", "tool": "wetter_zürich", "error_code": 429 });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    let mut wire = stage.open(Path::Reverse);
    let headers = [
        JSON,
        BOTH,
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?d2V0dGVyX3rDvHJpY2g=?="),
    ];
    let body = call(1, "wetter_zürich").to_string();
    wire.request("POST", "/2026/json", &headers, body.as_bytes());
    assert_eq!(wire.response().status, 429);
}

#[test]
fn other_protocols_on_json_rpc_are_tools_and_no_mcp() {
    let stage = stage();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": [] });
    for chaos in [
        None,
        Some(json!({ "tool_faults": [{ "mode": "slow", "delay_ms": 1 }] })),
    ] {
        if let Some(chaos) = &chaos {
            stage.daemon.api.chaos(chaos);
        }
        let seen = stage.daemon.api.exchanges().len();
        post(&stage, Path::Reverse, "/2025/stateless", &message);
        let entry = stage
            .daemon
            .api
            .wait_for_exchanges(seen + 1)
            .swap_remove(seen);
        assert_eq!(entry["kind"], "tool", "{entry}");
        let rules = entry["rules"].as_array().map_or(0, Vec::len);
        assert_eq!(rules, usize::from(chaos.is_some()), "{entry}");
    }
}

#[test]
fn a_server_has_the_name_that_the_config_gives_it_beside_its_tools() {
    let config = json!({ "tools": { "weather_server": { "match_url": "*/2025/stateless" } } });
    let stage = stage_with(&config);
    let rule = json!({ "mode": "error", "tool": "weather_server", "error_code": 502 });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    let message = call(1, "get_weather");
    let answer = post(&stage, Path::Reverse, "/2025/stateless", &message);
    assert_eq!(answer.status, 502, "{answer:?}");
    let body = answer.json();
    assert_eq!(
        (&body["id"], &body["error"]["code"]),
        (&json!(1), &json!(-32603))
    );
    let entry = stage.daemon.api.wait_for_exchanges(1).swap_remove(0);
    assert_eq!(
        (&entry["kind"], &entry["tool"]),
        (&json!("mcp"), &json!("get_weather"))
    );
}

#[test]
fn a_fault_of_one_tool_leaves_the_others_and_the_handshake_alone() {
    let stage = stage();
    let rule = json!({ "mode": "error", "tool": "get_weather", "error_code": 503 });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    for (endpoint, arguments) in ERAS {
        let way = stage.way(Path::Reverse, endpoint);
        let told = way.ask(
            CLIENT,
            &[arguments, &["--tool", "book,get_weather"]].concat(),
        );
        let calls = told["calls"].as_array().unwrap();
        let told = [&calls[0]["ok"], &calls[1]["ok"]];
        assert_eq!(told, [&json!(true), &json!(false)], "{endpoint}: {calls:?}");
    }
    // Without a name: calls of any tool, and nothing else.
    let rule = json!({ "mode": "error", "error_code": 503 });
    stage.daemon.api.chaos(&json!({ "tool_faults": [rule] }));
    for (endpoint, arguments) in ERAS {
        let way = stage.way(Path::Reverse, endpoint);
        let told = way.ask(CLIENT, &[arguments, &["--list"]].concat());
        assert_eq!(told["tools"].as_array().map(Vec::len), Some(3), "{told}");
        assert_eq!(told["first"]["ok"], false, "{endpoint}: {told}");
    }
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
