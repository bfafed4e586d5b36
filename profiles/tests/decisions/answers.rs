//! What fired rules write into the plan, and who gives way to whom.

use std::time::Duration;

use squall_profiles::changes::{CallError, Rewrite, StreamFault};
use squall_profiles::facts::Kind;
use squall_profiles::plan::{Edit, Plan, SocketChange, SocketFault};

use crate::scope::*;

fn plan_of(chaos: &str, request: &Request) -> Plan {
    send(&scope(chaos), request).plan
}

fn llm(rule: &str) -> Plan {
    plan_of(&format!("llm_faults: [{rule}]"), &streamed_call())
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Rules with every mode, and with each form of their parameters.
const RULES: &str = "
network_faults latency, delay_ms: 200
network_faults latency, delay_ms: 200, jitter_ms: 50, at: response
network_faults timeout, delay_ms: 5
network_faults refuse
network_faults dns_failure
network_faults reset_peer
network_faults reset_peer, after_bytes: 9
network_faults limit_data, bytes: 9
network_faults slow_close, delay_ms: 7
network_faults bandwidth, rate_kbps: 8
network_faults bandwidth, rate_kbps: 8, direction: both
network_faults slicer, average_size: 10, size_variation: 3, delay_us: 50
tool_faults timeout
tool_faults error
tool_faults error, message: tired
tool_faults error, error_code: 404, message: gone
tool_faults error, error_code: 429, retry_after: 1.5
tool_faults error, error_code: -32603
tool_faults error, error_code: -32602, message: no such tool
tool_faults error, body: down
tool_faults error, body: '[1]'
tool_faults error, body: { big: 12345678901234567890 }
tool_faults error, response_headers: { content-type: text/x }
tool_faults malformed
tool_faults slow
tool_faults malicious_response
tool_faults malicious_response, payload: obey
tool_faults empty
tool_faults html_error
tool_faults truncated
tool_faults truncated, bytes: 3
tool_faults schema_drift, drift: retype
tool_faults schema_drift, field: price
tool_faults stale
tool_faults swapped
tool_faults redirect_loop
tool_faults commit_then_fail
tool_faults commit_then_fail, error_code: 504
tool_faults commit_then_fail, reset: true
tool_faults silent_noop
tool_faults silent_noop, error_code: 201, payload: { id: 5 }
tool_faults silent_noop, error_code: 500, payload: broken
tool_faults session_expired
tool_faults wrong_id
tool_faults endless_progress
tool_faults endless_progress, delay_ms: 5
llm_faults timeout
llm_faults truncated_response
llm_faults rate_limit
llm_faults rate_limit, retry_after: 0.25
llm_faults empty
llm_faults garbage
llm_faults response_drift
llm_faults response_drift, drift_type: tone_shift, severity: subtle
llm_faults response_drift, drift_type: verbosity_shift, direction: compress, factor: 3
llm_faults overloaded
llm_faults server_error
llm_faults quota_exhausted
llm_faults context_length_exceeded
llm_faults auth_error
llm_faults model_not_found
llm_faults previous_response_not_found
llm_faults connection_limit
llm_faults content_filter
llm_faults refusal
llm_faults malformed_tool_call
llm_faults unknown_tool_call
llm_faults wrong_tool_arguments
llm_faults slow_stream, ttft_ms: 10, tokens_per_second: 2.5
llm_faults stream_stall, after_tokens: 3
llm_faults stream_cut, after_tokens: 0
llm_faults stream_error, after_tokens: 3
llm_faults duplicate_chunk
llm_faults missing_terminator
llm_faults json_for_stream";

/// The draws in the snapshot are golden values: the same seed has the same plans in every release.
#[test]
fn every_fault_writes_its_plan() {
    let mut told = Vec::new();
    for line in RULES.lines().filter(|line| !line.is_empty()) {
        let (family, rule) = line.split_once(' ').expect("a family and a rule");
        let request = if family == "llm_faults" {
            streamed_call()
        } else {
            get("http://x/")
        };
        let plan = plan_of(&format!("{family}: [{{ mode: {rule} }}]"), &request);
        assert!(!plan.is_empty(), "{line}");
        told.extend([line.to_owned(), parts(&plan)]);
    }
    let expired = "network_faults: [{ mode: tls_failure, kind: expired }]";
    let plan = plan_of(expired, &connect("https://x"));
    told.extend([expired.to_owned(), parts(&plan)]);
    insta::assert_snapshot!(told.join("\n"));
}

/// On a WebSocket a fault acts from a message on, and only there.
#[test]
fn a_rule_for_websockets_matches_upgrades_alone_and_keeps_its_message() {
    let upgrade = get("http://x/").header("upgrade", "websocket");
    let delay = SocketChange::Delay(millis(5));
    for (rule, message, change) in [
        ("latency, delay_ms: 5, websocket: {}", None, delay.clone()),
        (
            "latency, delay_ms: 5, websocket: { message: 2 }",
            Some(2),
            delay,
        ),
        (
            "half_open, websocket: { message: 3 }",
            Some(3),
            SocketChange::HalfOpen,
        ),
        (
            "websocket_close, websocket: {}",
            None,
            SocketChange::Close(1011),
        ),
    ] {
        let chaos = format!("network_faults: [{{ mode: {rule} }}]");
        let fault = SocketFault { message, change };
        let plan = plan_of(&chaos, &upgrade);
        assert_eq!(plan.websocket, [(0, fault)], "{rule}");
        assert!(plan.wait_before.is_empty(), "{rule}");
        assert!(plan_of(&chaos, &get("http://x/")).is_empty(), "{rule}");
    }
    let cut = "network_faults: [{ mode: limit_data, bytes: 0, websocket: { message: 4 } }]";
    let plan = plan_of(cut, &upgrade);
    assert!(plan.shape.is_empty(), "{plan:?}");
    let [(0, fault)] = &plan.websocket[..] else {
        panic!("{plan:?}")
    };
    assert!(
        matches!(&fault.change, SocketChange::Shape(shape) if shape.cut.is_some()),
        "{fault:?}"
    );
    let other = "network_faults: [{ mode: half_open, websocket: {} }, { mode: refuse }]";
    assert!(plan_of(other, &upgrade).websocket.is_empty());
}

fn streamed_call() -> Request {
    Request {
        stream: Some(true),
        ..model_call("{}")
    }
}

#[test]
fn a_list_drift_plants_another_canary_for_each_list_and_touches_only_lists() {
    for (drift, plants) in [
        ("description", true),
        ("schema", false),
        ("duplicates", false),
        ("empty", false),
    ] {
        let chaos = format!("tool_faults: [{{ mode: list_drift, drift: {drift} }}]");
        let listing = Request {
            kind: Kind::Mcp,
            mcp_tool_list: true,
            ..post("http://x/", "{}")
        };
        let live = scope(&chaos);
        let [first, second] = [1, 2].map(|_| send(&live, &listing).plan);
        let planted = [&first, &second].map(|plan| plan.canaries.len());
        assert_eq!(planted, [usize::from(plants); 2], "{drift}");
        assert_eq!(parts(&first) != parts(&second), plants, "{drift}");
        for other in [get("http://x/"), get("http://x/").mcp("a")] {
            assert!(plan_of(&chaos, &other).edits.is_empty(), "{other:?}");
        }
    }
}

#[test]
fn a_tool_named_beside_a_wrong_call_is_looked_for_in_the_answer() {
    let plan = llm("{ mode: wrong_tool_arguments, tool: get_weather }");
    let [(0, Edit::Stream(StreamFault::Rewrite(Rewrite::Call(wrong))))] = &plan.edits[..] else {
        panic!("{:?}", plan.edits);
    };
    assert_eq!(wrong.error, CallError::WrongArguments);
    for (name, is_meant) in [("get_weather", true), ("get_time", false)] {
        assert_eq!(wrong.tools.has(Some(name)), is_meant, "{name}");
    }
    // The URL is the model's, so it gets no tool's name by it.
    let plan = plan_of(
        "llm_faults: [{ mode: unknown_tool_call, tool: mail, match_url: 'https://x/*' }]
tool_faults: [{ mode: empty, tool: mail }]",
        &get("https://x/a"),
    );
    assert_eq!(plan.instead, None);
}

#[test]
fn delays_add_up_on_their_side_of_the_upstream() {
    let plan = plan_of(
        "network_faults: [{ mode: latency, delay_ms: 5 }, { mode: latency, delay_ms: 0 }]
tool_faults: [{ mode: slow }, { mode: slow, delay_ms: 3, at: response }]",
        &get("http://x/"),
    );
    // A delay of nothing is none.
    assert_eq!(plan.wait_before, [(0, millis(5)), (2, millis(5000))]);
    assert_eq!(plan.wait_after, [(3, millis(3))]);
}

#[test]
fn g11_the_first_rule_that_decides_the_answer_wins() {
    for (chaos, request, expected) in [
        (
            "tool_faults: [{ id: a, mode: error }, { id: b, mode: empty }]",
            get("http://x/"),
            vec![
                "a: chosen",
                "b: bypassed, rule `a` already decides the answer",
            ],
        ),
        // Families first, whatever their order in the file.
        (
            "tool_faults: [{ id: a, mode: error }]\nnetwork_faults: [{ id: b, mode: timeout }]",
            get("http://x/"),
            vec![
                "b: chosen",
                "a: bypassed, rule `b` already decides the answer",
            ],
        ),
        (
            "tool_faults: [{ id: a, mode: commit_then_fail }, { id: b, mode: error }]",
            get("http://x/"),
            vec![
                "a: chosen",
                "b: bypassed, rule `a` already decides the answer",
            ],
        ),
        // A rule that was not drawn is in nobody's way.
        (
            "tool_faults: [{ id: a, mode: error, limit: 0 }, { id: b, mode: empty }]",
            get("http://x/"),
            vec![
                "a: not drawn, fired 0 times already, its `limit`",
                "b: chosen",
            ],
        ),
        // What an answer that never came leaves nothing to do for.
        (
            "tool_faults: [{ id: a, mode: truncated }, { id: b, mode: slow, at: response }, { id: c, mode: slow }, { id: d, mode: error }]",
            get("http://x/"),
            vec![
                "a: bypassed, rule `d` decides the answer, so there is nothing to change",
                "b: bypassed, rule `d` decides the answer, so there is nothing to change",
                "c: chosen",
                "d: chosen",
            ],
        ),
        // A made-up answer can be shaped, a held connection cannot.
        (
            "network_faults: [{ id: a, mode: limit_data, bytes: 5 }]\ntool_faults: [{ id: b, mode: error }]",
            get("http://x/"),
            vec!["a: chosen", "b: chosen"],
        ),
        (
            "network_faults: [{ id: a, mode: limit_data, bytes: 5 }]\ntool_faults: [{ id: b, mode: timeout }]",
            get("http://x/"),
            vec![
                "a: bypassed, rule `b` decides the answer, so there is nothing to change",
                "b: chosen",
            ],
        ),
        (
            "network_faults: [{ id: a, mode: bandwidth, rate_kbps: 8 }, { id: b, mode: bandwidth, rate_kbps: 8, direction: both }, { id: c, mode: bandwidth, rate_kbps: 8 }]",
            get("http://x/"),
            vec![
                "a: chosen",
                "b: chosen",
                "c: bypassed, rule `a` already limits the bandwidth",
            ],
        ),
        (
            "llm_faults: [{ id: a, mode: rate_limit }, { id: b, mode: stream_cut }]",
            model_call("{}").kind(Kind::Llm),
            vec![
                "a: chosen",
                "b: bypassed, rule `a` decides the answer, so there is nothing to change",
            ],
        ),
    ] {
        assert_eq!(
            outcomes(&send(&scope(chaos), &request)),
            expected,
            "{chaos}"
        );
    }
}

#[test]
fn the_first_rule_that_decides_what_a_model_says_wins() {
    for (chaos, expected) in [
        // What a model says is decided once; how fast it comes, and what its calls are, is not that.
        (
            "llm_faults: [{ id: a, mode: refusal }, { id: b, mode: empty }, { id: c, mode: slow_stream }]",
            vec![
                "a: chosen",
                "b: bypassed, rule `a` already decides the answer",
                "c: chosen",
            ],
        ),
        (
            "llm_faults: [{ id: a, mode: content_filter }, { id: b, mode: garbage }]",
            vec![
                "a: chosen",
                "b: bypassed, rule `a` already decides the answer",
            ],
        ),
        (
            "llm_faults: [{ id: a, mode: unknown_tool_call }, { id: b, mode: truncated_response }, { id: c, mode: stream_error }, { id: d, mode: stream_cut }]",
            vec![
                "a: chosen",
                "b: chosen",
                "c: bypassed, rule `b` already decides the answer",
                "d: bypassed, rule `b` already decides the answer",
            ],
        ),
    ] {
        assert_eq!(
            outcomes(&send(&scope(chaos), &streamed_call())),
            expected,
            "{chaos}"
        );
    }
    let chaos = "llm_faults: [{ id: a, mode: stream_error }, { id: b, mode: stream_cut }]";
    assert_eq!(
        outcomes(&send(&scope(chaos), &model_call("{}"))),
        ["a: bypassed, the answer is no stream", "b: chosen"],
    );
}

#[test]
fn a_bypassed_rule_has_fired_all_the_same() {
    let scope =
        scope("tool_faults: [{ id: a, mode: error, limit: 1 }, { id: b, mode: empty, limit: 1 }]");
    let found = [1, 2].map(|_| fired(&send(&scope, &get("http://x/"))).join(" "));
    assert_eq!(found, ["a b", ""], "no rule's luck hangs on another rule");
}
