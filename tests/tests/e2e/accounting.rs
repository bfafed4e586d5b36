//! What model calls use up: counted, shown, and budgeted for.

use serde_json::{Value, json};
use squall_tests::upstream::{bedrock, gemini, ollama};
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
    stage.daemon.api.calm();
    let before = stage.daemon.api.exchanges().len();
    assert_eq!(see(stage, path, ask).answer.status, 200);
    let used = tokens(&exchange(stage, before + 1));
    assert!(used > 0, "{ask:?} used up nothing");
    for (calls, after_tokens) in [(1, 1), (7, 7 * used), (8, 7 * used + 1)] {
        quota(stage, &json!({ "after_tokens": after_tokens }));
        let (passed, refused) = passing(stage, path, ask);
        assert_eq!(passed, calls, "{after_tokens} tokens, {path:?}: {ask:?}");
        assert_eq!(refused.forwarded, 0, "{refused:?}");
    }
}

#[test]
fn a_budget_knows_each_answer_before_the_next_call_on_every_path() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        for ask in [WHOLE, STREAM] {
            budget_is_exact(&stage, path, ask);
        }
    }
}

/// Checks calls in every dialect, whole and streamed, with an upstream that answers them.
fn in_every_dialect(check: impl Fn(&Stage, Ask)) {
    let stage = Stage::new();
    for ask in [
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
    ] {
        check(&stage, ask);
    }
    let stage = Stage::with(&json!({}), gemini::serve);
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
    for target in [
        "/v1beta/models/gemini-2.5-flash:generateContent",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
    ] {
        check(&stage, Ask::Post(target, body));
    }
    let stage = Stage::with(&json!({}), ollama::serve);
    for body in [
        r#"{"model":"qwen3","messages":[]}"#,
        r#"{"model":"qwen3","messages":[],"stream":false}"#,
    ] {
        check(&stage, Ask::Post("/api/chat", body));
    }
    let stage = Stage::with(&json!({}), bedrock::serve);
    let body = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;
    for target in ["/model/m/converse", "/model/m/converse-stream"] {
        check(&stage, Ask::Post(target, body));
    }
}

#[test]
fn a_budget_knows_each_answer_before_the_next_call_in_every_dialect() {
    in_every_dialect(|stage, ask| budget_is_exact(stage, Path::Reverse, ask));
}

#[test]
fn a_document_given_for_a_stream_is_read_as_the_stream_would_be() {
    in_every_dialect(|stage, ask| {
        let api = stage.daemon.api;
        api.calm();
        let before = api.exchanges().len();
        see(stage, Path::Reverse, ask);
        let streamed = exchange(stage, before + 1);
        api.chaos(&json!({ "llm_faults": [{ "mode": "json_for_stream" }] }));
        see(stage, Path::Reverse, ask);
        let entry = exchange(stage, before + 2);
        assert!(tokens(&streamed) > 0, "{ask:?}: {streamed}");
        assert_eq!(entry["llm"], streamed["llm"], "{ask:?}");
    });
}

#[test]
fn tokens_of_an_answer_that_a_rule_ends_or_words_anew_are_marked_as_estimated() {
    in_every_dialect(|stage, ask| {
        let api = stage.daemon.api;
        for rule in [
            json!({ "mode": "truncated_response", "max_tokens": 2 }),
            json!({ "mode": "refusal" }),
            json!({ "mode": "empty" }),
        ] {
            // A budget reads the call as it passes, the journal afterwards.
            for more in [
                &[][..],
                &[json!({ "mode": "quota_exhausted", "after_tokens": 9999 })],
            ] {
                let before = api.exchanges().len();
                let rules = [std::slice::from_ref(&rule), more].concat();
                api.chaos(&json!({ "llm_faults": rules }));
                see(stage, Path::Reverse, ask);
                let entry = exchange(stage, before + 1);
                assert_eq!(entry["rules"][0]["outcome"], "applied", "{ask:?}: {entry}");
                assert_eq!(entry["llm"]["estimated"], true, "{ask:?}: {entry}");
                let exact = entry["llm"]["model"] == "gpt-4o";
                let counted_by = if exact { "o200k_base" } else { "estimate" };
                assert_eq!(entry["llm"]["counted_by"], counted_by, "{ask:?}: {entry}");
            }
        }
    });
}

#[test]
fn what_has_come_of_an_answer_that_broke_off_is_counted() {
    in_every_dialect(|stage, ask| {
        let api = stage.daemon.api;
        let before = api.exchanges().len();
        api.chaos(&json!({ "llm_faults": [{ "mode": "stream_cut", "after_tokens": 2 }] }));
        see(stage, Path::Reverse, ask);
        let entry = exchange(stage, before + 1);
        assert_eq!(entry["rules"][0]["outcome"], "applied", "{ask:?}: {entry}");
        let llm = &entry["llm"];
        assert_eq!(llm["finish"], Value::Null, "{ask:?}: {entry}");
        // Some begin with an event of more tokens than that.
        if entry["response_bytes"] == 0 {
            return;
        }
        assert!(llm["output_tokens"].as_u64() > Some(0), "{ask:?}: {entry}");
        assert!(llm["input_tokens"].as_u64() > Some(0), "{ask:?}: {entry}");
    });
}

#[test]
fn a_budget_counts_what_other_faults_leave_of_an_answer() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    for (family, rule) in [
        (
            "network_faults",
            json!({ "mode": "slicer", "average_size": 50 }),
        ),
        (
            "network_faults",
            json!({ "mode": "slow_close", "delay_ms": 1 }),
        ),
        (
            "network_faults",
            json!({ "mode": "bandwidth", "rate_kbps": 100_000 }),
        ),
        ("llm_faults", json!({ "mode": "slow_stream", "ttft_ms": 1 })),
        (
            "llm_faults",
            json!({ "mode": "truncated_response", "max_tokens": 2 }),
        ),
        ("llm_faults", json!({ "mode": "empty" })),
        ("llm_faults", json!({ "mode": "json_for_stream" })),
        (
            "llm_faults",
            json!({ "mode": "stream_cut", "after_tokens": 2 }),
        ),
    ] {
        for ask in [WHOLE, STREAM] {
            let before = api.exchanges().len();
            api.chaos(&json!({ family: [rule] }));
            see(&stage, Path::Reverse, ask);
            let entry = exchange(&stage, before + 1);
            let used = tokens(&entry);
            assert!(used > 0, "{rule}: {entry}");
            let quota = json!({ "mode": "quota_exhausted", "after_tokens": 4 * used });
            let mut rules = json!({ "llm_faults": [quota] });
            match rules[family].as_array_mut() {
                Some(rules) => rules.push(rule.clone()),
                None => rules[family] = json!([rule]),
            }
            api.chaos(&rules);
            let statuses = [0; 5].map(|_| see(&stage, Path::Reverse, ask).answer.status);
            assert_eq!(statuses, [200, 200, 200, 200, 429], "{rule} {ask:?}");
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
