//! What model calls use up: counted, shown, and budgeted for.

use serde_json::{Value, json};
use squall_tests::{Path, Stage};

use crate::matrix::{Ask, Seen, exchange, see};

const WHOLE: Ask = Ask::Post(
    "/v1/chat/completions",
    r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}"#,
);
const STREAM: Ask = Ask::Post(
    "/v1/chat/completions",
    r#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
);

/// Tokens of an entry of the journal.
fn tokens(entry: &Value) -> u64 {
    let of = |field: &str| entry["llm"][field].as_u64().unwrap_or_default();
    of("input_tokens") + of("output_tokens")
}

fn quota(stage: &Stage, parameters: &Value) {
    let mut rule = json!({ "mode": "quota_exhausted" });
    rule.as_object_mut()
        .unwrap()
        .extend(parameters.as_object().unwrap().clone());
    stage.daemon.api.chaos(&json!({ "llm_faults": [rule] }));
}

/// Calls that pass, one after the other and each on a connection of its own, until one is refused.
fn passing(stage: &Stage, path: Path, ask: Ask) -> (usize, Seen) {
    for number in 0..50 {
        let seen = see(stage, path, ask);
        if seen.answer.status != 200 {
            return (number, seen);
        }
    }
    panic!("none of 50 calls was refused on {path:?}: {ask:?}");
}

/// That a budget of so many calls lets just so many pass, however short the pause between them.
fn budget_is_exact(stage: &Stage, path: Path, ask: Ask) {
    stage.daemon.api.end_chaos();
    let before = stage.daemon.api.exchanges().len();
    assert_eq!(see(stage, path, ask).answer.status, 200);
    let used = tokens(&exchange(stage, before + 1));
    assert!(used > 0, "{ask:?} used up nothing");
    for (calls, after_tokens) in [(1, 1), (3, 3 * used), (4, 3 * used + 1)] {
        quota(stage, &json!({ "after_tokens": after_tokens }));
        let (passed, refused) = passing(stage, path, ask);
        assert_eq!(passed, calls, "{after_tokens} tokens, {path:?}: {ask:?}");
        assert_eq!(refused.forwarded, 0, "{refused:?}");
    }
}

/// Calls in every dialect, whole and streamed.
const DIALECTS: [Ask; 13] = [
    WHOLE,
    STREAM,
    Ask::Post("/v1/responses", r#"{"model":"m","input":"hi"}"#),
    Ask::Post(
        "/v1/responses",
        r#"{"model":"m","stream":true,"input":"hi"}"#,
    ),
    Ask::Post(
        "/v1/messages",
        r#"{"model":"m","max_tokens":9,"messages":[]}"#,
    ),
    Ask::Post(
        "/v1/messages",
        r#"{"model":"m","max_tokens":9,"stream":true,"messages":[]}"#,
    ),
    Ask::Post("/v1beta/models/m:generateContent", CONTENTS),
    Ask::Post("/v1beta/models/m:streamGenerateContent?alt=sse", CONTENTS),
    Ask::Post("/v1beta/models/m:streamGenerateContent", CONTENTS),
    Ask::Post("/api/chat", r#"{"model":"qwen3","messages":[]}"#),
    Ask::Post(
        "/api/chat",
        r#"{"model":"qwen3","messages":[],"stream":false}"#,
    ),
    Ask::Post("/model/m/converse", CONVERSE),
    Ask::Post("/model/m/converse-stream", CONVERSE),
];

const CONTENTS: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
const CONVERSE: &str = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;

#[test]
fn a_budget_knows_each_answer_before_the_next_call_in_every_dialect_and_on_every_path() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        budget_is_exact(&stage, path, STREAM);
    }
    for ask in DIALECTS {
        budget_is_exact(&stage, Path::Reverse, ask);
    }
}

#[test]
fn what_a_rule_leaves_of_an_answer_is_counted_in_every_dialect() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    let mut number = 0;
    let mut entry = |rules: &Value, ask| {
        api.chaos(&json!({ "llm_faults": rules }));
        see(&stage, Path::Reverse, ask);
        number += 1;
        exchange(&stage, number)
    };
    for ask in DIALECTS {
        let clean = entry(&json!([]), ask);
        let as_document = entry(&json!([{ "mode": "json_for_stream" }]), ask);
        assert_eq!(as_document["llm"], clean["llm"], "{ask:?}");
        for rule in [
            json!({ "mode": "truncated_response", "max_tokens": 2 }),
            json!({ "mode": "refusal" }),
            json!({ "mode": "stream_cut", "after_tokens": 2 }),
        ] {
            // A budget reads the call as it passes, the journal afterwards.
            let quota = json!({ "mode": "quota_exhausted", "after_tokens": 9999 });
            for rules in [json!([rule]), json!([rule, quota])] {
                let entry = entry(&rules, ask);
                let llm = &entry["llm"];
                assert_eq!(entry["rules"][0]["outcome"], "applied", "{ask:?}: {entry}");
                // Some streams begin with an event of more tokens than those before a cut.
                if entry["response_bytes"] != 0 {
                    assert!(tokens(&entry) > 0, "{ask:?}: {entry}");
                    assert_eq!(llm["estimated"], true, "{ask:?}: {entry}");
                }
                let is_cut = rule["mode"] == "stream_cut";
                assert_eq!(llm["finish"].is_null(), is_cut, "{ask:?}: {entry}");
            }
        }
    }
}

#[test]
fn a_refusal_says_what_was_used_up_and_so_does_the_journal() {
    let stage = Stage::new();
    // A call is 9 tokens in and 5 out: 72.5 millionths of a dollar.
    quota(&stage, &json!({ "after_usd": 0.0001 }));
    let (passed, refused) = passing(&stage, Path::Reverse, WHOLE);
    assert_eq!(passed, 2);
    assert_eq!(refused.answer.status, 429);
    let error: Value = serde_json::from_slice(&refused.answer.body).unwrap();
    assert_eq!(error["error"]["code"], "insufficient_quota", "{error}");
    let entries = stage.daemon.api.wait_for_exchanges(3);
    let rule = |number: usize| entries[number]["rules"][0].clone();
    assert_eq!(rule(0)["outcome"], "not_drawn");
    assert_eq!(rule(1)["reason"], "$0.0000725 of `after_usd: 0.0001` spent");
    assert_eq!(rule(2)["outcome"], "applied");
    let spent = json!({
        "calls": 2, "input_tokens": 18, "output_tokens": 10, "estimated_tokens": 0, "usd": 0.000_145,
    });
    assert_eq!(rule(2)["spent"], spent);
    // What was refused used up nothing.
    assert_eq!(stage.daemon.api.get("/v1/chaos")["spent"], spent);
}

#[test]
fn what_the_provider_does_not_count_is_estimated_and_marked() {
    let stage = Stage::new();
    stage.daemon.api.chaos_in("job", &json!({}));
    let mut wire = stage.open(Path::Reverse);
    // By its vocabulary it is seven tokens where this provider says five.
    for (ask, estimated, output) in [(WHOLE, false, 5), (STREAM, true, 7)] {
        let Ask::Post(target, body) = ask else {
            panic!("{ask:?} is no call");
        };
        let headers = [
            ("x-squall-scope", "job"),
            ("content-type", "application/json"),
        ];
        wire.request("POST", target, &headers, body.as_bytes());
        assert_eq!(wire.response().status, 200);
        let entry = exchange(&stage, 1 + usize::from(estimated));
        assert_eq!(entry["llm"]["estimated"], estimated, "{entry}");
        assert_eq!(entry["llm"]["output_tokens"], output, "{entry}");
        let counted_by = estimated.then_some("o200k_base");
        assert_eq!(entry["llm"]["counted_by"].as_str(), counted_by, "{entry}");
        assert!(
            entry["llm"]["input_tokens"].as_u64().unwrap() >= 9,
            "{entry}"
        );
    }
    let direction = |direction: &str| {
        let label = format!("direction=\"{direction}\"");
        let labels = ["dialect=\"openai-chat\"", "model=\"gpt-4o\"", &label];
        stage.daemon.api.metric("squall_llm_tokens_total", &labels)
    };
    let output = direction("output");
    assert!((output - 12.0).abs() < 0.5, "{output}");
    assert!(direction("input") > 18.0);
    let scopes = stage.daemon.api.get("/v1/scopes");
    let scopes = scopes["items"].as_array().unwrap();
    for scope in scopes {
        let spent = &scope["spent"];
        let calls = if scope["scope"] == "job" { 2 } else { 0 };
        assert_eq!(spent["calls"], calls, "{scope}");
        assert_eq!(spent["output_tokens"], 12 * calls / 2, "{scope}");
        assert_eq!(
            spent["estimated_tokens"].as_u64() > Some(5),
            calls > 0,
            "{scope}"
        );
    }
    assert_eq!(scopes.len(), 2);
}
