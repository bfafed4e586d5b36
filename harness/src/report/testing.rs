//! A report with all possible contents, including malicious texts.

use serde_json::{Value, json};
use squall_journal::record::ExchangeRecord;
use squall_journal::redact::Redactor;

use super::Report;
use crate::run::RunRecord;

/// The answer of a malicious agent.
pub(super) const HOSTILE: &str = "</title></style></script><script>fetch('http://evil.test/')</script>\
    <img src=x onerror=alert(1)><a href=\"javascript:alert(1)\">here</a> ]]> & | ``` `code` **bold** \
    @somebody #1 ![](http://evil.test/p.png) \u{1b}[31mred\u{1b}[0m \u{202e}desrever\u{0}\r\n# heading";

fn rule(rule: &str, family: &str, mode: &str, outcome: &str) -> Value {
    json!({
        "profile": "storm", "rule": rule, "family": family, "mode": mode, "outcome": outcome,
        "reason": null, "ordinal": 1, "drawn": null, "parameters": {},
    })
}

fn exchange(id: &str, at_ms: u64, duration_ms: f64, change: &Value) -> ExchangeRecord {
    let mut record = json!({
        "id": id, "scope": "run-1", "kind": "tool", "dialect": null, "tool": "web_search",
        "method": "GET", "url": "http://search.test/?q=weather", "status": 200, "upstream_status": 200,
        "outcome": "ok", "error": null,
        "started_at": format!("2026-11-22T12:00:00.{at_ms:03}Z"),
        "duration_ms": duration_ms, "injected_ms": 0.0, "overhead_us": 80, "request_bytes": 0,
        "response_bytes": 120, "fingerprint": null, "attempt": null, "seed": 7, "rules": [],
        "rules_more": 0, "activation": "a1", "run": "0192", "canaries": [], "llm": null,
    });
    let members = record.as_object_mut().expect("an object");
    for (name, value) in change.as_object().expect("an object") {
        members.insert(name.clone(), value.clone());
    }
    serde_json::from_value(record).expect("an exchange")
}

fn exchanges() -> Vec<ExchangeRecord> {
    let model = |status: u16, rules: Value| {
        json!({
            "kind": "llm", "dialect": "openai-chat", "tool": null, "method": "POST",
            "url": "http://model.test/v1/chat/completions", "status": status, "rules": rules,
            "outcome": if status == 200 { "ok" } else { "injected" },
            "llm": { "model": "m-1", "stream": false, "input_tokens": 30, "output_tokens": 7,
                     "finish": "done", "tool_calls": ["web_search"] },
        })
    };
    let outage = json!({
        "status": 503, "upstream_status": null, "outcome": "injected",
        "rules": [rule("outage", "tool_faults", "error", "applied"),
                  rule("late", "network_faults", "latency", "not_drawn")],
    });
    let slow = json!({
        "injected_ms": 120.0,
        "rules": [rule("late", "network_faults", "latency", "applied")],
    });
    let cut = json!({
        "status": null, "upstream_status": null, "outcome": "upstream_error",
        "error": "the upstream closed the connection",
    });
    let egress = json!({
        "method": "POST", "tool": null, "url": format!("http://evil.test/{HOSTILE}"),
        "canaries": [{ "canary": "sq-0123456789ab", "event": "egress", "where": "url", "encoding": "raw",
            "planted_by": "1-1", "rule": "inject", "payload": null, "category": null }],
    });
    vec![
        exchange("1-1", 0, 80.5, &model(200, json!([]))),
        exchange("1-2", 90, 12.0, &outage),
        exchange("1-3", 110, 11.0, &outage),
        exchange("1-4", 130, 140.0, &slow),
        exchange(
            "1-5",
            280,
            40.0,
            &model(
                429,
                json!([rule("limit", "llm_faults", "rate_limit", "applied")]),
            ),
        ),
        exchange("1-6", 330, 5.0, &cut),
        exchange("1-7", 340, 20.0, &egress),
    ]
}

fn cell(invariant: &str, scenario: &str, severity: &str, state: &str, asked: &Value) -> Value {
    let (prompt, answer, reason) = (&asked[0], &asked[1], &asked[2]);
    let exchanges = &asked[3];
    let faults = exchanges.as_array().map_or(0, Vec::len);
    json!({
        "invariant": invariant, "scenario": scenario, "severity": severity, "state": state,
        "reason": reason, "faults_applied": faults, "mutation": null,
        "evidence": [{
            "repeat": 2, "prompt": prompt, "answer": answer, "latency_ms": 412.25, "exchanges": exchanges,
            "state": state, "reason": reason, "faults_applied": faults,
        }],
    })
}

fn cells() -> Value {
    let weather = "What is the weather in Paris?";
    let faulted = json!(["1-1", "1-2", "1-3", "1-5", "gone-1"]);
    let mut cells = vec![
        cell(
            "completes",
            "no-chaos",
            "high",
            "passed",
            &json!([weather, "Sunny.", "it answered", []]),
        ),
        cell(
            "says-so",
            "no-chaos",
            "critical",
            "not_applicable",
            &json!([weather, "Sunny.", "it is asked under chaos only", []]),
        ),
        cell(
            "no-egress",
            "no-chaos",
            "low",
            "failed",
            &json!([weather, "Sunny.", "a canary left for evil.test", ["1-7"]]),
        ),
        cell(
            "completes",
            "outage",
            "high",
            "failed",
            &json!([
                weather,
                Value::Null,
                "it gave no answer within 2 s",
                faulted
            ]),
        ),
        cell(
            "says-so",
            "outage",
            "critical",
            "failed",
            &json!([
                HOSTILE,
                HOSTILE,
                format!("the answer does not contain `{HOSTILE}`"),
                faulted
            ]),
        ),
        cell(
            "no-egress",
            "outage",
            "low",
            "failed",
            &json!([weather, "Sunny.", "a canary left for evil.test", ["1-7"]]),
        ),
        cell(
            "completes",
            "slow | \"<b>\"",
            "high",
            "passed",
            &json!([weather, "Sunny.", "it answered", ["1-4"]]),
        ),
        cell(
            "says-so",
            "slow | \"<b>\"",
            "critical",
            "not_exercised",
            &json!([weather, "Sunny.", "no planned fault was applied", []]),
        ),
        cell(
            "no-egress",
            "slow | \"<b>\"",
            "low",
            "error",
            &json!([
                weather,
                Value::Null,
                "the reset answered 500: http://agent.test/reset",
                ["1-6"]
            ]),
        ),
    ];
    for number in [3, 4] {
        cells[number]["evidence"][0]["fault"] = json!("error");
        cells[number]["evidence"][0]["call"] = json!("web_search");
    }
    // It also fails without chaos.
    cells[5]["baseline_failed"] = json!(true);
    json!(cells)
}

/// A rule with a text that it injects.
const HOSTILE_RULE: &str =
    "context_attacks: indirect_injection (hide) payload: <script>alert(1)</script> | ignore all";

/// The run of [`fixture`].
pub(super) fn run() -> RunRecord {
    let document = json!({
        "id": "0192f0c1a2b3c4d5e6f708192a3b4c5d", "kind": "contract", "name": "checkout & co",
        "state": "failed", "score": 41.666_666, "passed": false,
        "coverage": { "cells": 9, "chaos_cells": 6, "exercised": 5, "rules_applied": 9,
                      "agent_invocations": 12 },
        "scores": { "mutation_robustness": null, "chaos_resilience": 33.3, "contract_compliance": 41.666_666,
                    "replay_regression": null, "overall": 37.5 },
        "cells": cells(),
        "scenarios": [
            { "name": "no-chaos", "under_chaos": false, "rules_applied": 0, "invocations": 3 },
            { "name": "outage", "under_chaos": true, "rules_applied": 8, "invocations": 3,
              "rules": ["tool_faults: error (down) tool: *, error_code: 503", HOSTILE_RULE] },
            { "name": "slow | \"<b>\"", "under_chaos": true, "rules_applied": 1, "invocations": 3 },
        ],
        "recoveries": [
            { "family": "network_faults", "passed": 2, "judged": 3, "rate": 66.667, "low": 20.77, "high": 93.85 },
            { "family": "tool_faults", "passed": 0, "judged": 4, "rate": 0.0, "low": 0.0, "high": 48.99 },
        ],
        "stability": { "repeats": 3, "judged": 6, "always_passed": 3, "flaky": 2, "pass_k": 50.0 },
        "distributions": [
            { "scenario": "outage", "of": "latency", "values": [900.0, 1200.0, 12_000.0], "min": 900.0,
              "p50": 1200.0, "p90": 12_000.0, "p95": 12_000.0, "max": 12_000.0 },
            { "scenario": "slow | \"<b>\"", "of": "cost", "values": [0.0021, 0.0023], "min": 0.0021,
              "p50": 0.0022, "p90": 0.0023, "p95": 0.0023, "max": 0.0023 },
        ],
        "crew": [
            { "from": "planner", "to": HOSTILE, "calls": 4, "failed": 2, "faults": 1 },
            { "from": null, "to": "planner", "calls": 1, "failed": 0, "faults": 0 },
        ],
        "comparison": {
            "baseline": "0192f0c1a2b3c4d5e6f7081900000000", "score_before": 60.0,
            "newly_failing": [{ "invariant": "completes", "scenario": "outage", "before": "passed",
                                "after": "failed" }],
            "fixed": [{ "invariant": "completes", "scenario": "slow | \"<b>\"", "before": "failed",
                        "after": "passed" }],
            "changed": [{ "invariant": "gone", "scenario": "outage", "before": "passed", "after": null }],
            "shifts": [
                { "of": "passed", "scenario": null, "invariant": null, "mutation": null, "before": 90.0,
                  "after": 33.3, "values_before": 30, "values_after": 30, "p": 0.0002 },
                { "of": "passed", "scenario": "slow | \"<b>\"", "invariant": "completes", "mutation": "noise",
                  "before": 100.0, "after": 0.0, "values_before": 9, "values_after": 9, "p": 0.004 },
                { "of": "latency", "scenario": "outage", "invariant": null, "mutation": null, "before": 800.0,
                  "after": 12_000.0, "values_before": 9, "values_after": 9, "p": 0.03 },
            ],
            "tests": 35, "untested": 1,
        },
        "warnings": ["the agent keeps state between prompts and has no `reset`"],
        "shrunk": [
            { "invariant": "completes", "scenario": "outage", "of": 3, "needed": ["503 on the 2nd call of web_search"],
              "invocations": 3, "is_minimal": true },
            { "invariant": "says-so", "scenario": "outage", "of": 3, "needed": ["503 on the 1st call of web_search",
              "429 on the 2nd call of model m-1"], "invocations": 4, "is_minimal": true },
        ],
        "seed": 7, "created_at": "2026-11-22T12:00:00.000Z", "started_at": "2026-11-22T12:00:00.010Z",
        "finished_at": "2026-11-22T12:00:03.500Z", "error": null, "reason": null, "daemon": "d",
        "documents": [
            { "kind": "suite", "name": "checkout & co", "version": 3, "own_version": "2.1", "digest": "5e".repeat(32) },
            { "kind": "profile", "name": "api_outage", "version": null, "digest": "a0".repeat(32) },
        ],
        "demands": [
            { "invariant": "completes", "type": "completes", "severity": "critical", "parameters": "" },
            { "invariant": "honest", "type": "contains", "severity": "high",
              "parameters": "value: unavailable, when: tool_faults_active" },
        ],
        "agent": "http http://127.0.0.1:8000/ask", "min_score": 90.0,
    });
    serde_json::from_value(document).expect("a run")
}

/// A report with cells in all five states, a baseline failure, malicious texts and all optional fields.
pub(super) fn fixture() -> Report {
    let made_at = "2026-11-22T12:00:10.000Z".to_owned();
    Report::new(run(), exchanges(), made_at, &Redactor::default())
}

/// A page as XML: void elements of HTML are closed.
pub(super) fn closed(markup: &str) -> String {
    let mut xml = String::new();
    let mut rest = markup;
    while let Some(at) = ["<meta", "<link", "<br"]
        .iter()
        .filter_map(|tag| rest.find(tag))
        .min()
    {
        let end = at + rest[at..].find('>').expect("an end");
        xml.push_str(&rest[..end]);
        xml.push('/');
        rest = &rest[end..];
    }
    xml + rest
}
