//! The control API from outside: what it lists, what it refuses, what it streams.

use serde_json::{Value, json};
use squall_tests::{Path, Stage, Wire};

use squall_tests::daemon::{OPERATOR_TOKEN, VIEWER_TOKEN};
use squall_tests::program::Way;

use crate::matrix::{Ask, see};

#[test]
fn what_is_open_without_a_token_answers() {
    let stage = Stage::new();
    for (path, kind) in [
        ("/healthz", ""),
        ("/readyz", ""),
        ("/metrics", "text/plain"),
        ("/ca.pem", "application/x-pem-file"),
        ("/openapi.json", "application/json"),
        ("/docs", "text/html"),
        ("/proxy.pac", "application/x-ns-proxy-autoconfig"),
    ] {
        let answer = stage.daemon.api.call("GET", path, None);
        assert_eq!(answer.status, 200, "{path}");
        let found = answer.header("content-type").unwrap_or_default();
        assert!(found.starts_with(kind), "{path}: {found}");
    }
}

#[test]
fn metrics_have_their_names_from_the_start() {
    let stage = Stage::new();
    assert_eq!(
        see(&stage, Path::Forward, Ask::Get("/json")).answer.status,
        200
    );
    stage.daemon.api.wait_for_exchanges(1);
    let text = stage.daemon.api.call("GET", "/metrics", None).text();
    for name in [
        "squall_exchanges_total",
        "squall_exchange_duration_seconds",
        "squall_overhead_seconds",
        "squall_open_connections",
        "squall_build_info",
    ] {
        assert!(text.contains(name), "no {name} in {text}");
    }
}

#[test]
fn built_in_profiles_are_listed_and_each_can_be_put_in_force() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let listed: Vec<String> = api.get("/v1/profiles?limit=100")["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    for name in [
        "api_outage",
        "degraded_llm",
        "hostile_tools",
        "high_latency",
        "cascading_failure",
        "indirect_injection",
        "model_version_drift",
        "rate_limit_storm",
        "flaky_network",
        "mid_stream_failure",
        "provider_overload",
        "brownout",
    ] {
        assert!(
            listed.iter().any(|one| one == name),
            "no {name} in {listed:?}"
        );
        api.activate("/v1/chaos", &json!({ "profile": name, "seed": 1 }));
        assert_eq!(api.get("/v1/chaos")["profile"], name);
        let answer = api.call("DELETE", &format!("/v1/profiles/{name}"), None);
        assert_eq!(answer.status, 409, "{name}");
    }
}

#[test]
fn a_profile_of_one_s_own_is_put_read_used_and_deleted() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let profile = json!({ "name": "mine", "chaos": { "tool_faults": [{ "mode": "error", "error_code": 418 }] } });
    let answer = api.call("PUT", "/v1/profiles/mine", Some(&profile));
    assert!((200..300).contains(&answer.status), "{}", answer.text());
    assert_eq!(api.call("GET", "/v1/profiles/mine", None).status, 200);
    api.activate("/v1/chaos", &json!({ "profile": "mine", "seed": 5 }));
    assert_eq!(
        see(&stage, Path::Reverse, Ask::Get("/json")).answer.status,
        418
    );
    api.calm();
    let answer = api.call("DELETE", "/v1/profiles/mine", None);
    assert!((200..300).contains(&answer.status), "{}", answer.text());
    assert_eq!(api.call("GET", "/v1/profiles/mine", None).status, 404);
}

#[test]
fn mistakes_are_problems_that_name_the_word_meant() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    for (path, body, word) in [
        (
            "/v1/chaos",
            json!({ "chaos": { "llm_faults": [{ "mode": "rate_limt" }] } }),
            "rate_limit",
        ),
        (
            "/v1/chaos",
            json!({ "chaos": { "tool_fault": [] } }),
            "tool_faults",
        ),
        ("/v1/chaos", json!({ "profile": "api_outag" }), "api_outage"),
        ("/v1/chaos", json!({ "profle": "api_outage" }), "profile"),
    ] {
        let answer = api.call("PUT", path, Some(&body));
        assert!((400..500).contains(&answer.status), "{body}: {answer:?}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{body}"
        );
        assert!(answer.text().contains(word), "{body}: {}", answer.text());
    }
    assert_eq!(api.call("GET", "/v1/nothing", None).status, 404);
    assert_eq!(api.call("POST", "/v1/chaos", None).status, 405);
}

#[test]
fn an_exchange_tells_all_that_was_promised() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    api.chaos(&json!({ "network_faults": [
        { "id": "late", "mode": "latency", "delay_ms": 20 },
        { "id": "never", "mode": "reset_peer", "probability": 0 },
    ] }));
    assert_eq!(
        see(
            &stage,
            Path::Forward,
            Ask::Post("/tool?key=secret", "{\"a\":1}")
        )
        .answer
        .status,
        200
    );
    let one = api.wait_for_exchanges(1).pop().unwrap();
    assert_eq!(one["method"], "POST");
    assert_eq!(
        (&one["status"], &one["upstream_status"]),
        (&json!(200), &json!(200)),
        "{one}"
    );
    assert_eq!(
        (&one["outcome"], &one["kind"], &one["seed"]),
        (&json!("ok"), &json!("tool"), &json!(1)),
        "{one}"
    );
    assert!(one["injected_ms"].as_f64().unwrap() >= 20.0, "{one}");
    assert!(
        one["duration_ms"].as_f64().unwrap() >= one["injected_ms"].as_f64().unwrap(),
        "{one}"
    );
    assert_eq!(one["request_bytes"], 7, "{one}");
    let outcome = |id: &str| {
        let rules = one["rules"].as_array().unwrap();
        rules
            .iter()
            .find(|rule| rule["rule"] == id)
            .map(|rule| rule["outcome"].clone())
    };
    assert_eq!(outcome("late"), Some(json!("applied")), "{one}");
    assert_eq!(outcome("never"), Some(json!("not_drawn")), "{one}");
    assert_eq!(
        one["rules"][0]["rule"], "late",
        "applied rules come first: {one}"
    );
    assert!(
        !one.to_string().contains("secret"),
        "a key in the URL was written down: {one}"
    );
    let id = one["id"].as_str().unwrap();
    assert_eq!(api.get(&format!("/v1/exchanges/{id}"))["id"], id);
    assert_eq!(api.call("GET", "/v1/exchanges/nothing", None).status, 404);
}

#[test]
fn exchanges_are_filtered_and_paged() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    for target in ["/json", "/status/404", "/status/500", "/json"] {
        see(&stage, Path::Forward, Ask::Get(target));
    }
    api.wait_for_exchanges(4);
    let count = |query: &str| {
        api.get(&format!("/v1/exchanges?{query}"))["items"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count("status=404"), 1);
    assert_eq!(count("kind=tool"), 4);
    assert_eq!(count("kind=llm"), 0);
    let first = api.get("/v1/exchanges?limit=3");
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = api.get(&format!("/v1/exchanges?limit=3&cursor={cursor}"));
    assert_eq!(second["items"].as_array().unwrap().len(), 1);
    assert_eq!(second["next_cursor"], Value::Null);
    // Newest first.
    assert!(
        first["items"][0]["url"]
            .as_str()
            .unwrap()
            .ends_with("/json")
    );
}

#[test]
fn events_tell_of_exchanges_and_chaos_and_resume_where_they_broke_off() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let mut wire = Wire::connect(api.address);
    wire.request("GET", "/v1/events", &[("Accept", "text/event-stream")], b"");
    wire.receive_until("\r\n\r\n");
    api.chaos(&json!({ "tool_faults": [{ "mode": "error", "error_code": 418 }] }));
    wire.receive_until("event: chaos");
    wire.receive_until("\n\n");
    see(&stage, Path::Forward, Ask::Get("/first"));
    let event = String::from_utf8(wire.receive_until("/first")).unwrap();
    assert!(event.contains("event: exchange"), "{event}");
    let id = event
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("id:"))
        .map(str::trim)
        .map(str::to_owned);
    drop(wire);
    see(&stage, Path::Forward, Ask::Get("/second"));
    api.wait_for_exchanges(2);
    let mut wire = Wire::connect(api.address);
    let last = id.unwrap_or_else(|| panic!("no id in {event}"));
    wire.request(
        "GET",
        "/v1/events",
        &[("Last-Event-ID", last.as_str())],
        b"",
    );
    let resumed = String::from_utf8(wire.receive_until("/second")).unwrap();
    assert!(
        !resumed.contains("/first"),
        "what was heard already came again: {resumed}"
    );
}

#[test]
fn a_token_is_asked_for_where_the_config_has_one() {
    let config = json!({ "api": { "tokens": [
        { "name": "ci", "role": "operator", "token": "${OPERATOR_TOKEN}" },
        { "name": "eye", "role": "viewer", "token": "${VIEWER_TOKEN}" },
    ] } });
    let stage = Stage::with(&config, squall_tests::upstream::standard::serve);
    let call = |method: &str, path: &str, token: &str| {
        let mut wire = Wire::connect(stage.daemon.api.address);
        let bearer = format!("Bearer {token}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        let body: &[u8] = if method == "PUT" {
            br#"{"profile":"none"}"#
        } else {
            b""
        };
        wire.request(method, path, &headers, body);
        wire.response().status
    };
    assert_eq!(stage.daemon.api.call("GET", "/v1/chaos", None).status, 401);
    assert_eq!(call("GET", "/v1/chaos", "wrong"), 401);
    assert_eq!(call("GET", "/v1/chaos", VIEWER_TOKEN), 200);
    assert_eq!(call("PUT", "/v1/chaos", VIEWER_TOKEN), 403);
    assert!((200..300).contains(&call("PUT", "/v1/chaos", OPERATOR_TOKEN)));
    assert_eq!(stage.daemon.api.call("GET", "/healthz", None).status, 200);
}

#[test]
fn a_time_to_live_ends_chaos_by_itself() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    api.activate(
        "/v1/chaos",
        &json!({ "profile": "api_outage", "ttl": "1s" }),
    );
    assert_eq!(api.get("/v1/chaos")["profile"], "api_outage");
    api.wait("the end of the chaos", || {
        (api.get("/v1/chaos")["profile"] == "none").then_some(())
    });
    assert_eq!(
        see(&stage, Path::Forward, Ask::Get("/json")).answer.status,
        200
    );
}

#[test]
fn faults_are_named_to_the_agent_only_if_the_configuration_says_so() {
    for (annotate, expected) in [(true, Some("error")), (false, None)] {
        let config = json!({ "proxy": { "annotate": annotate } });
        let stage = Stage::with(&config, squall_tests::upstream::standard::serve);
        let clean = see(&stage, Path::Forward, Ask::Get("/json")).answer;
        assert_eq!(clean.header("squall-fault"), None);
        stage
            .daemon
            .api
            .chaos(&json!({ "tool_faults": [{ "tool": "*", "mode": "error" }] }));
        let faulted = see(&stage, Path::Forward, Ask::Get("/json")).answer;
        assert_eq!(
            (faulted.status, faulted.header("squall-fault")),
            (503, expected)
        );
    }
}

#[test]
fn an_answer_that_a_rule_broke_off_is_injected_and_not_the_upstream_s_fault() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&json!({ "network_faults": [{ "mode": "limit_data", "bytes": 3 }] }));
    let mut wire = stage.open(Path::Forward);
    let url = stage.url(Path::Forward, "/json");
    wire.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    wire.rest();
    let seen = stage.daemon.api.wait_for_exchanges(1);
    assert_eq!(seen[0]["outcome"], "injected", "{seen:#?}");
}

/// By curl, which frames and encodes as it likes.
#[test]
fn whatever_is_refused_is_refused_with_a_problem() {
    let stage = Stage::new();
    let url = |path: &str| format!("http://{}{path}", stage.daemon.api.address);
    let long = stage.daemon.home.join("long.json");
    std::fs::write(&long, vec![b' '; (1 << 20) + 1]).unwrap();
    let long = format!("@{}", long.display());
    let json = "Content-Type: application/json";
    let cases: &[(&[&str], &str, u64, &str)] = &[
        (
            &["-d", "{", "-XPUT", "-H", json],
            "/v1/chaos",
            400,
            "malformed",
        ),
        (
            &["-d", "\u{fffd}", "-XPOST", "-H", json],
            "/v1/tokens",
            400,
            "malformed",
        ),
        (&[], "/v1/exchanges?limit=0&x", 400, "malformed"),
        (&[], "/v1/scopes/%ff/chaos", 400, "malformed"),
        (&["-H", "Host:"], "/healthz", 400, "malformed"),
        (
            &["-H", "Host: elsewhere.test"],
            "/healthz",
            403,
            "forbidden",
        ),
        (&[], "/nowhere", 404, "not-found"),
        (&["--http2-prior-knowledge"], "/nowhere", 404, "not-found"),
        (&["--path-as-is"], "/v1/../v1/chaos", 404, "not-found"),
        (&["-XPATCH"], "/v1/chaos", 405, "method-not-allowed"),
        (&["-XMADEUP"], "/healthz", 405, "method-not-allowed"),
        (
            &["--data-binary", &long, "-XPUT", "-H", json],
            "/v1/chaos",
            413,
            "too-large",
        ),
        (
            &[
                "--data-binary",
                &long,
                "-XPOST",
                "-H",
                json,
                "-H",
                "Transfer-Encoding: chunked",
            ],
            "/v1/tokens",
            413,
            "too-large",
        ),
        (
            &["-d", "x", "-XPUT", "-H", "Content-Type: text/plain"],
            "/v1/chaos",
            415,
            "unsupported-type",
        ),
        (
            &["-d", "[]", "-XPUT", "-H", json],
            "/v1/chaos",
            422,
            "invalid",
        ),
    ];
    for (arguments, path, status, kind) in cases {
        let output = Way::direct(url(path)).curl(&[arguments, &["--include"][..]].concat());
        let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
        // Behind any 100 Continue.
        let (head, body) = text.rsplit_once("\n\n").unwrap_or_default();
        assert!(
            head.contains("application/problem+json"),
            "{arguments:?} {path}: {text}"
        );
        let problem: Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["status"], *status, "{arguments:?} {path}: {text}");
        assert_eq!(
            problem["type"],
            format!("urn:squall:problem:{kind}"),
            "{path}"
        );
        assert_eq!(head.contains("\nallow: "), *status == 405, "{text}");
    }
}
