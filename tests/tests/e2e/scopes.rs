//! A new activation of a named scope: what came under the one before it ends first.

use serde_json::{Value, json};
use squall_tests::upstream::standard::JSON;
use squall_tests::{End, Path, Stage, Wire};

/// `agent:x`.
const CREDENTIALS: &str = "proxy-authorization: Basic YWdlbnQ6eA==\r\n";

fn put(stage: &Stage, scope: &str, chaos: &Value) {
    stage.daemon.api.chaos_in(scope, chaos);
}

/// Waits until an exchange of the scope is listed as open.
fn wait_for_open(stage: &Stage, scope: &str) {
    stage.daemon.api.wait("an open exchange", || {
        let listed = stage.daemon.api.get("/v1/exchanges");
        let open = |entry: &&Value| entry["scope"] == scope && entry["outcome"] == "open";
        listed["items"].as_array()?.iter().find(open).map(drop)
    });
}

fn closed(wire: &mut Wire, why: &str) {
    let (rest, end) = wire.rest();
    assert_eq!(
        end,
        End::Closed,
        "{why}: {}",
        String::from_utf8_lossy(&rest)
    );
}

/// The scope's exchange was ended by Squall, and the journal says why.
fn was_ended(stage: &Stage, why: &str) {
    let entry = stage.daemon.api.wait("the exchange's end", || {
        let mut listed = stage.daemon.api.exchanges().into_iter();
        listed.find(|entry| entry["scope"] == "agent" && entry["outcome"] != "open")
    });
    assert_eq!(entry["outcome"], "denied", "{why}: {entry}");
    let error = entry["error"].as_str().unwrap_or_default();
    assert!(error.contains("`agent`"), "{why}: {entry}");
}

#[test]
fn an_exchange_that_waits_for_its_answer_ends() {
    for path in Path::THROUGH {
        let stage = Stage::new();
        let mut wire = stage.open(path);
        wire.request("GET", "/hang", &[("x-squall-scope", "agent")], b"");
        wait_for_open(&stage, "agent");
        put(&stage, "agent", &json!({}));
        closed(&mut wire, &format!("{path:?}"));
        was_ended(&stage, &format!("{path:?}"));
    }
}

#[test]
fn an_exchange_in_the_middle_of_its_answer_ends_and_that_of_another_scope_goes_on() {
    for path in Path::THROUGH {
        let stage = Stage::new();
        let open = |scope| {
            let mut wire = stage.open(path);
            wire.request("GET", "/events", &[("x-squall-scope", scope)], b"");
            wire.receive_until("\n\n");
            wait_for_open(&stage, scope);
            wire
        };
        let (mut agent, mut other) = (open("agent"), open("other"));
        put(&stage, "agent", &json!({}));
        closed(&mut agent, &format!("{path:?}"));
        was_ended(&stage, &format!("{path:?}"));
        // The upstream may take two for the answer that was ended, before it hears of that.
        for _ in 0..3 {
            stage.upstream(path).step();
        }
        other.receive_until("\n\n");
    }
}

#[test]
fn an_exchange_that_a_rule_holds_back_ends() {
    let stage = Stage::new();
    let hold = json!({ "tool_faults": [{ "mode": "timeout", "delay_ms": 600_000 }] });
    put(&stage, "agent", &hold);
    let mut wire = stage.open(Path::Reverse);
    wire.request("GET", "/json", &[("x-squall-scope", "agent")], b"");
    wait_for_open(&stage, "agent");
    put(&stage, "agent", &json!({}));
    closed(&mut wire, "held");
    was_ended(&stage, "held");
}

/// Such a connection has waited for nobody since its first request was read.
#[test]
fn an_idle_connection_whose_answers_were_made_up_closes_before_it_is_asked_again() {
    for path in Path::THROUGH {
        let stage = Stage::new();
        let down = json!({ "tool_faults": [{ "mode": "error", "error_code": 503 }] });
        put(&stage, "agent", &down);
        let mut wire = stage.open(path);
        wire.request("GET", "/json", &[("x-squall-scope", "agent")], b"");
        assert_eq!(wire.response().status, 503);
        put(&stage, "agent", &json!({}));
        closed(&mut wire, &format!("{path:?}"));
    }
}

#[test]
fn idle_connections_and_tunnels_of_the_scope_close_and_others_stay() {
    let stage = Stage::new();
    let kept = |scope| {
        let mut wire = stage.open(Path::Reverse);
        wire.request("GET", "/json", &[("x-squall-scope", scope)], b"");
        assert_eq!(wire.response().text(), JSON);
        wire
    };
    let tunnel = || {
        let mut wire = stage.daemon.connect();
        let tunnelled = wire.open_tunnel(&stage.secure_authority(), CREDENTIALS);
        assert_eq!(tunnelled.status, 200);
        wire.encrypt(&stage.daemon.ca, "localhost")
            .expect("a handshake")
    };
    let (mut agent, mut other) = (kept("agent"), kept("other"));
    let (mut unused, mut used) = (tunnel(), tunnel());
    used.host = stage.secure_authority();
    assert_eq!(used.get("/json").text(), JSON);
    put(&stage, "agent", &json!({}));
    closed(&mut agent, "kept alive");
    closed(&mut unused, "a tunnel without an exchange");
    closed(&mut used, "a tunnel");
    other.request("GET", "/json", &[("x-squall-scope", "other")], b"");
    assert_eq!(other.response().text(), JSON);
}
