use std::sync::Arc;

use serde_json::{Value, json};
use squall_control_api::serve;
use squall_control_api::store::Store;
use squall_harness::reach::Pending;
use squall_harness::runner::{Execute, RunContext, RunError, RunResult, RunSpec, SpecError};
use squall_proxy::chaos::Defaults;
use squall_proxy::upstream::HostPatterns;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::bench::{Api, eventually};

#[tokio::test]
async fn unknown_paths_are_problems() {
    let api = Api::new();
    for path in ["/", "/v1", "/v1/nothing", "/v1/chaos/", "/v1/scopes/a"] {
        api.get(path).await.problem(404, "not-found");
    }
}

#[tokio::test]
async fn a_handler_that_panics_is_a_problem_and_the_connection_lives() {
    let mut state = Api::new().state;
    state.readiness = Arc::new(|| panic!("a bug"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let serving = tokio::spawn(serve(listener, state, |api| api, CancellationToken::new()));
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let mut ask = async |path: &str, until: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        let mut answer = String::new();
        while !answer.contains(until) {
            let mut bytes = [0; 1024];
            let read = stream.read(&mut bytes).await.expect("an answer");
            assert_ne!(read, 0, "the connection ended: {answer}");
            answer.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        answer
    };
    let answer = ask("/readyz", "\"}").await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
    assert!(answer.contains("urn:squall:problem:internal"), "{answer}");
    assert!(!answer.contains("a bug"), "{answer}");
    let answer = ask("/healthz", "\"}").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    serving.abort();
}

/// A bug in the handler of `POST /v1/runs`.
struct Panics;

impl Execute for Panics {
    fn check(&self, _: &RunSpec) -> Vec<SpecError> {
        panic!("a bug");
    }

    fn run<'a>(
        &'a self,
        _: &'a RunSpec,
        _: RunContext<'a>,
    ) -> Pending<'a, Result<RunResult, RunError>> {
        unreachable!("no run is accepted")
    }
}

#[tokio::test]
async fn a_change_whose_handler_panics_is_in_the_audit_log_and_later_changes_succeed() {
    let (defaults, approval) = (Defaults::default(), HostPatterns::new(&[]).expect("none"));
    let api = Api::with_runs(Store::in_memory(), defaults, Arc::new(Panics), approval).await;
    let suite = json!({
        "agent": { "endpoint": "http://h/" }, "golden_prompts": ["x"], "invariants": [{ "type": "completes" }],
        "chaos": { "tool_faults": [{ "mode": "error" }] },
    });
    let run = json!({ "kind": "chaos", "suite": suite });
    let answer = api.post("/v1/runs", run).await;
    let problem = answer.problem(500, "internal");
    assert!(!problem.to_string().contains("a bug"), "{problem}");
    let put = api.put("/v1/chaos", json!({ "profile": "none" })).await;
    assert_eq!(put.status, 200, "{put:?}");
    let entries = eventually("both entries", async || {
        let list = api.get("/v1/audit").await.json();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let told = |entry: &Value| [entry["action"].clone(), entry["outcome"].clone()];
        let told: Vec<_> = items.iter().map(told).collect();
        (told.len() >= 2).then_some(told)
    });
    assert_eq!(
        entries.await,
        [
            [json!("PUT /v1/chaos"), json!("done")],
            [json!("POST /v1/runs"), json!("failed")]
        ]
    );
}

#[tokio::test]
async fn every_response_has_the_id_of_its_request() {
    let api = Api::new();
    for path in ["/healthz", "/v1/profiles", "/nowhere"] {
        let own = api
            .ask("GET", path, &[("x-request-id", "mine-7")], "")
            .await;
        assert_eq!(own.header("x-request-id"), "mine-7", "{path}");
        let (one, other) = (api.get(path).await, api.get(path).await);
        let (one, other) = (one.header("x-request-id"), other.header("x-request-id"));
        assert!(one.len() == 36 && one != other, "{path}: {one} {other}");
    }
}

#[tokio::test]
async fn wrong_methods_are_problems_that_name_the_right_ones() {
    let api = Api::new();
    for (method, path, allowed) in [
        ("POST", "/v1/chaos", "GET,HEAD,PUT,DELETE"),
        ("DELETE", "/healthz", "GET,HEAD"),
        ("PATCH", "/v1/profiles/x", "GET,HEAD,PUT,DELETE"),
        ("PUT", "/v1/exchanges", "GET,HEAD"),
    ] {
        let answer = api.ask(method, path, &[], "").await;
        answer.problem(405, "method-not-allowed");
        assert_eq!(answer.header("allow"), allowed, "{method} {path}");
    }
}

#[tokio::test]
async fn documents_that_cannot_be_read_are_problems() {
    let api = Api::new();
    let json = [("content-type", "application/json")];
    for path in ["/v1/chaos", "/v1/scopes/a/chaos", "/v1/profiles/p"] {
        let answer = api.ask("PUT", path, &json, "{\"profile\": ").await;
        assert_eq!(answer.pointers(400, "malformed"), [""], "{path}");
        let answer = api.ask("PUT", path, &json, vec![0xff, 0xfe]).await;
        answer.problem(400, "malformed");
        for unread in [
            "text/plain; charset=utf-8",
            "image/png",
            "multipart/form-data",
        ] {
            let unread = [("content-type", unread)];
            let answer = api.ask("PUT", path, &unread, "profile: none").await;
            let problem = answer.problem(415, "unsupported-type").to_string();
            let both = "application/json or application/yaml";
            assert!(problem.contains(both), "{problem}");
            let accepted = "application/json, application/yaml";
            assert_eq!(answer.header("accept"), accepted);
        }
        let answer = api.ask("PUT", path, &json, vec![b' '; (1 << 20) + 1]).await;
        answer.problem(413, "too-large");
    }
    for (bytes, status) in [((16 << 20) + 1, 422), ((64 << 20) + 1, 413)] {
        let answer = api.ask("POST", "/v1/runs", &json, vec![b' '; bytes]).await;
        assert_eq!(answer.status, status, "{bytes}");
    }
}

#[tokio::test]
async fn a_scope_that_no_name_can_be_is_a_problem_wherever_it_is_asked_for() {
    let api = Api::new();
    for path in ["/v1/exchanges", "/v1/events"] {
        for scope in ["..%2Fx", "", "a%20b"] {
            let answer = api.get(&format!("{path}?scope={scope}")).await;
            let problem = answer.problem(400, "malformed");
            assert_eq!(problem["errors"][0]["parameter"], "scope", "{problem}");
        }
    }
}

#[tokio::test]
async fn what_clients_take_out_of_paths_is_no_name() {
    let api = Api::new();
    let json = [("content-type", "application/json")];
    for name in ["..", "%2e%2e", ".", ".x"] {
        for path in ["suites", "contracts", "profiles"] {
            let answer = api
                .ask("PUT", &format!("/v1/{path}/{name}"), &json, "{}")
                .await;
            answer.problem(422, "invalid");
        }
        let path = format!("/v1/scopes/{name}/chaos");
        api.get(&path).await.problem(400, "malformed");
    }
}

#[tokio::test]
async fn a_document_within_another_makes_no_sense_where_it_cannot_be_read() {
    let api = Api::new();
    let kind = [("content-type", "application/vnd.squall.suite+json")];
    for (sent, pointer) in [
        (
            json!({ "document": "\u{93}", "variables": {} }),
            "/document",
        ),
        (json!({ "document": "a: [", "variables": {} }), "/document"),
        (json!({ "document": "a: b" }), ""),
    ] {
        let answer = api
            .ask("PUT", "/v1/suites/s", &kind, sent.to_string())
            .await;
        assert_eq!(answer.pointers(422, "invalid"), [pointer], "{sent}");
    }
    let answer = api.ask("PUT", "/v1/suites/s", &kind, "{").await;
    answer.problem(400, "malformed");
}

#[tokio::test]
async fn unknown_repeated_and_unreadable_parameters_are_refused_together() {
    let api = Api::new();
    let answer = api
        .get("/v1/exchanges?limit=0&status=abc&kind=x&hots=h&since=now&tool=a&tool=b&cursor=1")
        .await;
    let problem = answer.problem(400, "malformed");
    let mut wrong: Vec<_> = problem["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|error| error["parameter"].as_str().expect("its name").to_owned())
        .collect();
    wrong.sort();
    assert_eq!(
        wrong,
        ["cursor", "hots", "kind", "limit", "since", "status", "tool"]
    );
    for path in [
        "/v1/chaos?x=1",
        "/v1/scopes?x",
        "/v1/profiles?limit=1001",
        "/v1/events?faults=1",
    ] {
        api.get(path).await.problem(400, "malformed");
    }
    api.ask("DELETE", "/v1/chaos?all=yes", &[], "")
        .await
        .problem(400, "malformed");
    api.ask("PUT", "/v1/chaos?scope=a", &[], "{}")
        .await
        .problem(400, "malformed");
}

#[tokio::test]
async fn names_that_cannot_be_scopes_are_refused() {
    let api = Api::new();
    for scope in ["a%20b", "%00", &"x".repeat(129), "%ff"] {
        let path = format!("/v1/scopes/{scope}/chaos");
        api.get(&path).await.problem(400, "malformed");
        api.put(&path, json!({ "profile": "none" }))
            .await
            .problem(400, "malformed");
        api.delete(&path).await.problem(400, "malformed");
    }
}
