//! What fired rules write into the plan, and who gives way to whom.

use std::time::Duration;

use http::StatusCode;
use squall_dialects::model::{LimitScope, ModelError};
use squall_profiles::changes::Amount;
use squall_profiles::changes::{
    CallError, Instead, ListDriftKind, McpEdit, ResponseDrift, Rewrite, Severity, StreamFault,
    TextDrift, TlsFailure, WrongCall,
};
use squall_profiles::facts::Kind;
use squall_profiles::plan::{Answer, Edit, Ending, Plan, Reply, Substitute, ToolSays};

use crate::scope::*;

fn plan_of(chaos: &str, request: &Request) -> Plan {
    send(&scope(chaos), request).plan
}

fn network(rule: &str) -> Plan {
    plan_of(&format!("network_faults: [{rule}]"), &get("http://x/"))
}

fn tool(rule: &str) -> Plan {
    plan_of(&format!("tool_faults: [{rule}]"), &get("http://x/"))
}

fn llm(rule: &str) -> Plan {
    let streamed = Request {
        stream: Some(true),
        ..model_call("{}")
    };
    plan_of(&format!("llm_faults: [{rule}]"), &streamed)
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn what_answers_without_reaching_the_upstream() {
    for (plan, expected) in [
        (
            network("{ mode: timeout, delay_ms: 5 }"),
            Answer::Hold(millis(5)),
        ),
        (network("{ mode: refuse }"), Answer::Refuse),
        (network("{ mode: dns_failure }"), Answer::DnsFailure),
        (
            plan_of(
                "network_faults: [{ mode: tls_failure, kind: expired }]",
                &connect("https://x"),
            ),
            Answer::Tls(TlsFailure::Expired),
        ),
        (tool("{ mode: timeout }"), Answer::Hold(millis(30_000))),
        (
            tool("{ mode: redirect_loop }"),
            Answer::RedirectToSelf(StatusCode::FOUND),
        ),
        (llm("{ mode: timeout }"), Answer::Hold(millis(30_000))),
        (
            llm("{ mode: rate_limit }"),
            Answer::ModelError(ModelError::RateLimit {
                scope: LimitScope::Requests,
                retry_after: Some(millis(1000)),
                figures: None,
            }),
        ),
        (
            llm("{ mode: rate_limit, retry_after: 0.25 }"),
            Answer::ModelError(ModelError::RateLimit {
                scope: LimitScope::Requests,
                retry_after: Some(millis(250)),
                figures: None,
            }),
        ),
        (
            llm("{ mode: server_error }"),
            Answer::ModelError(ModelError::ServerError { status: 500 }),
        ),
        (
            llm("{ mode: overloaded }"),
            Answer::ModelError(ModelError::Overloaded),
        ),
        (
            llm("{ mode: quota_exhausted }"),
            Answer::ModelError(ModelError::QuotaExhausted),
        ),
        (
            llm("{ mode: context_length_exceeded }"),
            Answer::ModelError(ModelError::ContextLength),
        ),
        (
            llm("{ mode: auth_error }"),
            Answer::ModelError(ModelError::Auth),
        ),
        (
            llm("{ mode: model_not_found }"),
            Answer::ModelError(ModelError::ModelNotFound),
        ),
    ] {
        assert_eq!(plan.instead, Some((0, expected)));
    }
}

#[test]
fn made_up_replies_are_whole_answers() {
    for (rule, status, content_type, begin) in [
        (
            "{ mode: error }",
            503,
            "application/json",
            r#"{"error":{"code":503,"message":"Service"#,
        ),
        (
            "{ mode: error, error_code: 404, message: gone }",
            404,
            "application/json",
            r#"{"error":{"code":404,"message":"gone"}}"#,
        ),
        (
            "{ mode: error, body: down }",
            503,
            "text/plain; charset=utf-8",
            "down",
        ),
        (
            "{ mode: error, body: '[1]' }",
            503,
            "application/json",
            "[1]",
        ),
        (
            "{ mode: error, body: { big: 12345678901234567890 } }",
            503,
            "application/json",
            r#"{"big":12345678901234567890}"#,
        ),
        (
            "{ mode: error, response_headers: { content-type: text/x } }",
            503,
            "text/x",
            "{",
        ),
        ("{ mode: malformed }", 200, "application/json", "{"),
        (
            "{ mode: malicious_response }",
            200,
            "text/plain; charset=utf-8",
            "Ignore all",
        ),
        (
            "{ mode: malicious_response, payload: obey }",
            200,
            "text/plain; charset=utf-8",
            "obey",
        ),
        ("{ mode: empty }", 200, "application/json", ""),
        ("{ mode: html_error }", 502, "text/html", "<html>"),
        (
            "{ mode: silent_noop }",
            200,
            "application/json",
            r#"{"ok":true}"#,
        ),
        (
            "{ mode: silent_noop, error_code: 201, payload: { id: 5 } }",
            201,
            "application/json",
            r#"{"id":5}"#,
        ),
    ] {
        let plan = tool(rule);
        let reply = plain(&plan);
        assert_eq!(reply.status.as_u16(), status, "{rule}");
        assert_eq!(reply.headers["content-type"], content_type, "{rule}");
        let body = String::from_utf8(reply.body.to_vec()).unwrap();
        assert!(body.starts_with(begin), "{rule}: {body}");
    }
    let plan = tool("{ mode: error, error_code: 429, retry_after: 1.5 }");
    let reply = plain(&plan);
    assert_eq!(reply.headers["retry-after"], "2");
    let malformed = tool("{ mode: malformed }");
    let reply = plain(&malformed);
    assert!(serde_json::from_slice::<serde_json::Value>(&reply.body).is_err());
}

/// What a plan gives as plain HTTP.
fn plain(plan: &Plan) -> &Reply {
    match &plan.instead {
        Some((0, Answer::Reply(reply))) => reply,
        Some((0, Answer::Tool(answer))) => &answer.plain,
        _ => panic!("{plan:?}"),
    }
}

#[test]
fn what_is_said_where_a_form_has_words_of_its_own() {
    let text = |text: &str| ToolSays::Text(text.to_owned());
    let status = |message: &str| ToolSays::Status(message.to_owned());
    for (rule, expected) in [
        // The tool failed, unless something is written that only HTTP or the protocol can say.
        ("{ mode: error }", ToolSays::Failure(None)),
        (
            "{ mode: error, message: tired }",
            ToolSays::Failure(Some("tired".to_owned())),
        ),
        (
            "{ mode: error, error_code: 503 }",
            status("Service Unavailable"),
        ),
        (
            "{ mode: error, error_code: 429, message: slow down }",
            status("slow down"),
        ),
        (
            "{ mode: error, retry_after: 2 }",
            status("Service Unavailable"),
        ),
        (
            "{ mode: error, error_code: -32603 }",
            ToolSays::ProtocolError {
                code: -32603,
                message: "Internal error".to_owned(),
            },
        ),
        (
            "{ mode: error, error_code: -32602, message: no such tool }",
            ToolSays::ProtocolError {
                code: -32602,
                message: "no such tool".to_owned(),
            },
        ),
        ("{ mode: malformed }", ToolSays::Broken),
        ("{ mode: empty }", ToolSays::Nothing),
        ("{ mode: silent_noop }", text(r#"{"ok":true}"#)),
        (
            "{ mode: silent_noop, error_code: 500, payload: broken }",
            status("broken"),
        ),
    ] {
        let plan = tool(rule);
        let Some((0, Answer::Tool(answer))) = plan.instead else {
            panic!("{rule}: {plan:?}")
        };
        assert_eq!(answer.says, expected, "{rule}");
    }
    // What it says carries a canary.
    let plan = tool("{ mode: malicious_response, payload: obey }");
    let Some((0, Answer::Tool(answer))) = plan.instead else {
        panic!("{plan:?}")
    };
    assert!(matches!(&answer.says, ToolSays::Text(text) if text.starts_with("obey ")));
    // A body that was given is given as it is.
    let plan = tool("{ mode: error, body: down }");
    assert!(matches!(plan.instead, Some((0, Answer::Reply(_)))));
    for (rule, expected) in [
        ("{ mode: commit_then_fail }", ToolSays::Failure(None)),
        (
            "{ mode: commit_then_fail, error_code: 504 }",
            status("Gateway Timeout"),
        ),
    ] {
        let plan = tool(rule);
        let Some((0, Substitute::Answer(Answer::Tool(answer)))) = plan.afterwards else {
            panic!("{rule}: {plan:?}")
        };
        assert_eq!(answer.says, expected, "{rule}");
    }
}

#[test]
fn what_only_mcp_has_a_way_for_is_in_the_plan_s_words() {
    for (rule, expected) in [
        ("{ mode: session_expired }", Answer::SessionExpired),
        (
            "{ mode: endless_progress }",
            Answer::EndlessProgress(millis(1000)),
        ),
        (
            "{ mode: endless_progress, delay_ms: 5 }",
            Answer::EndlessProgress(millis(5)),
        ),
    ] {
        assert_eq!(tool(rule).instead, Some((0, expected)), "{rule}");
    }
    let plan = tool("{ mode: wrong_id }");
    assert_eq!(plan.edits, [(0, Edit::Mcp(McpEdit::WrongId))]);
    for (drift, expected) in [
        ("", ListDriftKind::Description),
        (", drift: description", ListDriftKind::Description),
        (", drift: schema", ListDriftKind::Schema),
        (", drift: duplicates", ListDriftKind::Duplicates),
        (", drift: empty", ListDriftKind::Empty),
    ] {
        let chaos = format!("tool_faults: [{{ mode: list_drift{drift} }}]");
        let listing = Request {
            kind: Kind::Mcp,
            mcp_tool_list: true,
            ..post("http://x/", "{}")
        };
        let plan = plan_of(&chaos, &listing);
        let [(0, Edit::Mcp(McpEdit::List { drift, instruction }))] = &plan.edits[..] else {
            panic!("{plan:?}")
        };
        assert_eq!(drift.kind, expected);
        // An instruction carries a canary, so that it shows when it is obeyed.
        let canaries: Vec<_> = plan.canaries.iter().map(|p| p.canary.to_string()).collect();
        let instructs = expected == ListDriftKind::Description;
        assert_eq!(canaries.len(), usize::from(instructs), "{expected:?}");
        for canary in &canaries {
            assert!(instruction.contains(canary), "{instruction}");
        }
        // Another one for each list that is told.
        let live = scope(&chaos);
        let planted = || {
            send(&live, &listing)
                .plan
                .canaries
                .first()
                .map(|it| it.canary)
        };
        let first = planted();
        assert!(first.is_none() || planted() != first, "{expected:?}");
        // Only lists are touched, unless a URL says otherwise.
        for other in [get("http://x/"), get("http://x/").mcp("a")] {
            assert!(plan_of(&chaos, &other).edits.is_empty(), "{other:?}");
        }
    }
}

#[test]
fn what_happens_once_the_upstream_has_answered() {
    for (plan, expected) in [
        (network("{ mode: reset_peer }"), Substitute::Reset),
        (tool("{ mode: stale }"), Substitute::Stale),
        (tool("{ mode: swapped }"), Substitute::Swapped),
        (
            tool("{ mode: commit_then_fail, reset: true }"),
            Substitute::Reset,
        ),
    ] {
        assert_eq!((plan.instead, plan.afterwards), (None, Some((0, expected))));
    }
    let plan = tool("{ mode: commit_then_fail, error_code: 504 }");
    let Some((0, Substitute::Answer(Answer::Tool(answer)))) = plan.afterwards else {
        panic!("{plan:?}")
    };
    assert_eq!(answer.plain.status, StatusCode::GATEWAY_TIMEOUT);
    for (plan, expected) in [
        (
            tool("{ mode: truncated }"),
            Edit::Truncate(Amount::Share(500_000)),
        ),
        (
            tool("{ mode: truncated, bytes: 3 }"),
            Edit::Truncate(Amount::Bytes(3)),
        ),
        (
            llm("{ mode: truncated_response }"),
            Edit::Stream(StreamFault::Truncate { max_tokens: 10 }),
        ),
        (
            llm("{ mode: stream_cut, after_tokens: 0 }"),
            Edit::Stream(StreamFault::Cut { after_tokens: 0 }),
        ),
        (
            llm("{ mode: slow_stream, ttft_ms: 10, tokens_per_second: 2.5 }"),
            Edit::Stream(StreamFault::Slow {
                time_to_first_token: millis(10),
                tokens_per_second: Some(2.5),
            }),
        ),
        (
            llm("{ mode: stream_stall, after_tokens: 3 }"),
            Edit::Stream(StreamFault::Stall {
                after_tokens: 3,
                wait: millis(30_000),
            }),
        ),
        (
            llm("{ mode: stream_error, after_tokens: 3 }"),
            Edit::Stream(StreamFault::Error {
                after_tokens: 3,
                error: ModelError::Overloaded,
            }),
        ),
        (
            llm("{ mode: missing_terminator }"),
            Edit::Stream(StreamFault::Unterminated),
        ),
        (
            llm("{ mode: json_for_stream }"),
            Edit::Stream(StreamFault::WholeForStream),
        ),
        (
            llm("{ mode: empty }"),
            Edit::Stream(StreamFault::Instead(Instead::Nothing)),
        ),
        (
            llm("{ mode: content_filter }"),
            Edit::Stream(StreamFault::Instead(Instead::Filtered)),
        ),
    ] {
        assert_eq!(plan.edits, [(0, expected)]);
    }
}

#[test]
fn what_a_model_is_made_to_say_hangs_on_the_draw() {
    for (rule, of) in [
        (
            "{ mode: duplicate_chunk }",
            (|choice| StreamFault::Repeat { choice }) as fn(u64) -> StreamFault,
        ),
        ("{ mode: refusal }", |choice| {
            StreamFault::Instead(Instead::Refusal { choice })
        }),
        ("{ mode: garbage }", |choice| {
            StreamFault::Instead(Instead::Garbage { choice })
        }),
        ("{ mode: unknown_tool_call }", |choice| {
            StreamFault::Rewrite(Rewrite::Call(WrongCall::of_any_tool(
                CallError::UnknownTool,
                choice,
            )))
        }),
        ("{ mode: malformed_tool_call }", |choice| {
            StreamFault::Rewrite(Rewrite::Call(WrongCall::of_any_tool(
                CallError::MalformedArguments,
                choice,
            )))
        }),
        ("{ mode: wrong_tool_arguments }", |choice| {
            StreamFault::Rewrite(Rewrite::Call(WrongCall::of_any_tool(
                CallError::WrongArguments,
                choice,
            )))
        }),
        ("{ mode: response_drift }", |choice| {
            drift(TextDrift::FieldNames, Severity::Moderate, choice)
        }),
        (
            "{ mode: response_drift, drift_type: tone_shift, severity: subtle }",
            |choice| drift(TextDrift::Tone, Severity::Subtle, choice),
        ),
        (
            "{ mode: response_drift, drift_type: verbosity_shift, direction: compress, factor: 3 }",
            |choice| {
                let length = TextDrift::Length {
                    factor: 3.0,
                    compress: true,
                };
                drift(length, Severity::Moderate, choice)
            },
        ),
    ] {
        let edits = llm(rule).edits;
        let drawn = match &edits[..] {
            [(0, Edit::Stream(fault))] => drawn(fault),
            other => panic!("{rule}: {other:?}"),
        };
        assert_ne!(drawn, 0, "{rule}");
        assert_eq!(edits, [(0, Edit::Stream(of(drawn)))], "{rule}");
        assert_eq!(llm(rule).edits, edits, "{rule}");
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

fn drift(kind: TextDrift, severity: Severity, choice: u64) -> StreamFault {
    StreamFault::Rewrite(Rewrite::Drift(ResponseDrift {
        kind,
        severity,
        choice,
    }))
}

/// The draw of a fault that makes one.
fn drawn(fault: &StreamFault) -> u64 {
    match fault {
        StreamFault::Repeat { choice }
        | StreamFault::Instead(Instead::Refusal { choice } | Instead::Garbage { choice })
        | StreamFault::Rewrite(
            Rewrite::Call(WrongCall { choice, .. }) | Rewrite::Drift(ResponseDrift { choice, .. }),
        ) => *choice,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_transport_does() {
    let plan = network("{ mode: bandwidth, rate_kbps: 8, direction: both }");
    let rates =
        [plan.shape.down, plan.shape.up].map(|limit| limit.map(|(_, t)| t.bytes_per_second));
    assert_eq!(rates, [Some(1000); 2]);
    let plan = network("{ mode: bandwidth, rate_kbps: 8 }");
    assert!(plan.shape.down.is_some() && plan.shape.up.is_none());
    let plan = network("{ mode: slicer, average_size: 10, size_variation: 3, delay_us: 50 }");
    let (_, slices) = plan.shape.slices.unwrap();
    assert_eq!((slices.average_size, slices.size_variation), (10, 3));
    assert_eq!(slices.delay, Duration::from_micros(50));
    let plan = network("{ mode: slow_close, delay_ms: 7 }");
    assert_eq!(plan.shape.slow_close, Some((0, millis(7))));
    for (rule, ending) in [
        ("{ mode: limit_data, bytes: 9 }", Ending::Close),
        ("{ mode: reset_peer, after_bytes: 9 }", Ending::Reset),
    ] {
        let (_, cut) = network(rule).shape.cut.unwrap();
        assert_eq!((cut.after_bytes, cut.ending), (9, ending), "{rule}");
    }
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
fn g12_what_a_connection_a_stream_or_a_provider_does_can_be_made_to_happen() {
    for (of, rules) in [
        (
            network as fn(&str) -> Plan,
            &[
                "{ mode: refuse }",
                "{ mode: reset_peer, after_bytes: 10 }",
                "{ mode: limit_data, bytes: 10 }",
                "{ mode: slow_close, delay_ms: 5 }",
                "{ mode: dns_failure }",
                "{ mode: slicer, average_size: 8, delay_us: 5 }",
                "{ mode: bandwidth, rate_kbps: 8 }",
                "{ mode: timeout, delay_ms: 5 }",
            ][..],
        ),
        (
            llm,
            &[
                "{ mode: stream_stall, after_tokens: 3, delay_ms: 5 }",
                "{ mode: stream_cut, after_tokens: 3 }",
                "{ mode: stream_error, after_tokens: 3 }",
                "{ mode: missing_terminator }",
                "{ mode: duplicate_chunk }",
                "{ mode: rate_limit }",
                "{ mode: overloaded }",
            ],
        ),
        (
            tool,
            &[
                "{ mode: schema_drift, drift: retype }",
                "{ mode: stale }",
                "{ mode: swapped }",
                "{ mode: silent_noop }",
            ],
        ),
    ] {
        for rule in rules {
            assert!(!of(rule).is_empty(), "{rule}");
        }
        let never = rules[0].replace('}', ", probability: 0 }");
        assert!(of(&never).is_empty(), "{never}");
    }
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
        let streamed = Request {
            stream: Some(true),
            ..model_call("{}")
        };
        assert_eq!(
            outcomes(&send(&scope(chaos), &streamed)),
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
