//! The LLM faults of the first dialect, byte by byte and as the official clients take them.

use serde_json::{Value, json};
use squall_tests::upstream::chat::WORDS;
use squall_tests::{End, Path, Stage};

use crate::matrix::{Ask, Judge, Row, Seen, check, exchange, see};

const LLM: &str = "llm_faults";
const WHOLE: Ask = Ask::Post(
    "/v1/chat/completions",
    r#"{"model":"test-model","messages":[{"role":"user","content":"hi"}]}"#,
);
const STREAM: Ask = Ask::Post(
    "/v1/chat/completions",
    r#"{"model":"test-model","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
);

const CALL: Ask = Ask::Post(
    "/v1/chat/completions",
    r#"{"model":"test-model","tools":[{"type":"function","function":{"name":"weather"}}],"messages":[{"role":"user","content":"hi"}]}"#,
);
const CALL_STREAM: Ask = Ask::Post(
    "/v1/chat/completions",
    r#"{"model":"test-model","stream":true,"tools":[{"type":"function","function":{"name":"weather"}}],"messages":[{"role":"user","content":"hi"}]}"#,
);

fn run(rule: Value, ask: Ask, judge: Judge) {
    check(
        &Stage::new(),
        &Row {
            family: LLM,
            rule,
            ask,
            check: judge,
        },
        &Path::THROUGH,
    );
}

/// An error in the provider's own words.
fn provider_error(seen: &Seen, status: u16, kind: &str) -> Result<(), String> {
    seen.expect(&format!("status {status}"), seen.answer.status == status)?;
    let body: Value = serde_json::from_slice(&seen.answer.body).unwrap_or_default();
    seen.expect("a message", body["error"]["message"].is_string())?;
    seen.expect(kind, body["error"]["type"] == kind)?;
    seen.expect(
        "JSON",
        seen.answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/json")),
    )?;
    seen.expect("nothing reached the upstream", seen.forwarded == 0)
}

/// Text and finish reason of an answer, streamed or not.
fn said(seen: &Seen) -> (String, Option<String>) {
    let text = seen.answer.text();
    let mut words = String::new();
    let mut finish = None;
    let choices = |value: &Value, from: &str| {
        let choice = &value["choices"][0];
        let content = choice[from]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (content, choice["finish_reason"].as_str().map(str::to_owned))
    };
    if let Ok(whole) = serde_json::from_str::<Value>(&text) {
        return choices(&whole, "message");
    }
    for data in text
        .split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "))
    {
        if let Ok(event) = serde_json::from_str::<Value>(data) {
            let (content, reason) = choices(&event, "delta");
            words.push_str(&content);
            finish = reason.or(finish);
        }
    }
    (words, finish)
}

#[test]
fn a_model_call_passes_untouched_and_is_recognised() {
    for path in Path::THROUGH {
        let stage = Stage::new();
        for (number, ask) in [(1, WHOLE), (2, STREAM)] {
            let straight = see(&stage, Path::Direct, ask);
            let through = see(&stage, path, ask);
            assert_eq!(through.answer.text(), straight.answer.text(), "{path:?}");
            let entry = exchange(&stage, number);
            assert_eq!(
                (&entry["kind"], &entry["dialect"]),
                (&json!("llm"), &json!("openai-chat")),
                "{entry}"
            );
            assert_eq!(entry["llm"]["model"], "test-model", "{entry}");
        }
    }
}

#[test]
fn a_rate_limit_is_a_429_that_says_when_to_come_back() {
    for ask in [WHOLE, STREAM] {
        run(
            json!({ "mode": "rate_limit", "retry_after": 7 }),
            ask,
            |seen| {
                seen.expect("429", seen.answer.status == 429)?;
                seen.expect(
                    "retry-after: 7",
                    seen.answer.header("retry-after") == Some("7"),
                )?;
                let body: Value = serde_json::from_slice(&seen.answer.body).unwrap_or_default();
                seen.expect("a message", body["error"]["message"].is_string())?;
                seen.expect("a code", body["error"]["code"] == "rate_limit_exceeded")?;
                seen.expect("nothing reached the upstream", seen.forwarded == 0)
            },
        );
    }
}

#[test]
fn a_server_error_is_the_provider_s_own() {
    for ask in [WHOLE, STREAM] {
        run(
            json!({ "mode": "server_error", "error_code": 500 }),
            ask,
            |seen| provider_error(seen, 500, "server_error"),
        );
    }
}

#[test]
fn a_timeout_closes_without_an_answer() {
    for ask in [WHOLE, STREAM] {
        run(json!({ "mode": "timeout", "delay_ms": 250 }), ask, |seen| {
            seen.expect("no answer", seen.answer.status == 0)?;
            seen.expect("FIN", seen.answer.broke == Some(End::Closed))?;
            seen.expect("it took 250 ms", seen.took.as_millis() >= 250)?;
            seen.expect("nothing reached the upstream", seen.forwarded == 0)
        });
    }
}

#[test]
fn a_truncated_answer_ends_with_the_provider_s_length_reason() {
    for ask in [WHOLE, STREAM] {
        run(
            json!({ "mode": "truncated_response", "max_tokens": 2 }),
            ask,
            |seen| {
                let (text, finish) = said(seen);
                seen.expect(
                    "a whole answer",
                    seen.answer.status == 200 && seen.answer.broke.is_none(),
                )?;
                seen.expect("finish: length", finish.as_deref() == Some("length"))?;
                let kept = WORDS.concat().starts_with(&text) && text.len() < WORDS.concat().len();
                seen.expect("a beginning of the text", kept && !text.is_empty())
            },
        );
    }
    run(
        json!({ "mode": "truncated_response", "max_tokens": 2 }),
        STREAM,
        |seen| {
            let text = seen.answer.text();
            seen.expect(
                "the terminator",
                text.ends_with("data: [DONE]\n\n") && said(seen).1.as_deref() == Some("length"),
            )
        },
    );
}

#[test]
fn a_cut_stream_breaks_off_without_an_end() {
    run(
        json!({ "mode": "stream_cut", "after_tokens": 2 }),
        STREAM,
        |seen| {
            let (text, finish) = said(seen);
            seen.expect("it broke", seen.answer.broke.is_some())?;
            seen.expect(
                "no finish and no terminator",
                finish.is_none() && !seen.answer.text().contains("[DONE]"),
            )?;
            seen.expect(
                "a beginning of the text",
                !text.is_empty() && WORDS.concat().starts_with(&text),
            )
        },
    );
}

#[test]
fn a_slow_stream_says_the_same_later() {
    let rule = json!({ "mode": "slow_stream", "ttft_ms": 150, "tokens_per_second": 40 });
    run(rule, STREAM, |seen| {
        let (text, finish) = said(seen);
        seen.expect(
            "the whole text",
            text == WORDS.concat() && finish.as_deref() == Some("stop"),
        )?;
        seen.expect(
            "the terminator",
            seen.answer.text().ends_with("data: [DONE]\n\n"),
        )?;
        // The first token waits, and at least four more follow at 40 a second.
        seen.expect("it took 250 ms", seen.took.as_millis() >= 250)
    });
}

/// What an answer's first tool call says, streamed or not.
fn called(seen: &Seen) -> (String, String) {
    let text = seen.answer.text();
    let (mut name, mut arguments) = (String::new(), String::new());
    let mut add = |said: &Value| {
        let function = &said["tool_calls"][0]["function"];
        name.push_str(function["name"].as_str().unwrap_or_default());
        arguments.push_str(function["arguments"].as_str().unwrap_or_default());
    };
    if let Ok(whole) = serde_json::from_str::<Value>(&text) {
        add(&whole["choices"][0]["message"]);
    }
    for data in text
        .split("\n\n")
        .filter_map(|event| event.strip_prefix("data: "))
    {
        if let Ok(event) = serde_json::from_str::<Value>(data) {
            add(&event["choices"][0]["delta"]);
        }
    }
    (name, arguments)
}

#[test]
fn every_refusal_of_the_api_is_its_own() {
    for (mode, judge) in [
        (
            "quota_exhausted",
            (|seen| provider_error(seen, 429, "insufficient_quota")) as Judge,
        ),
        ("context_length_exceeded", |seen| {
            provider_error(seen, 400, "invalid_request_error")
        }),
        ("auth_error", |seen| {
            provider_error(seen, 401, "invalid_request_error")
        }),
        ("model_not_found", |seen| {
            provider_error(seen, 404, "invalid_request_error")
        }),
    ] {
        run(json!({ "mode": mode }), STREAM, judge);
    }
}

#[test]
fn a_model_that_says_nothing_ends_as_it_would_have() {
    for ask in [WHOLE, STREAM] {
        run(json!({ "mode": "empty" }), ask, |seen| {
            let said = said(seen);
            seen.expect(
                "nothing, done",
                said == (String::new(), Some("stop".into())),
            )
        });
        run(json!({ "mode": "content_filter" }), ask, |seen| {
            let said = said(seen);
            let filtered = (String::new(), Some("content_filter".into()));
            seen.expect("nothing, filtered", said == filtered)
        });
        run(json!({ "mode": "refusal" }), ask, |seen| {
            seen.expect("no content", said(seen).0.is_empty())?;
            seen.expect("a refusal", seen.answer.text().contains("\"refusal\":\""))
        });
        run(json!({ "mode": "garbage" }), ask, |seen| {
            let (text, finish) = said(seen);
            let other = !text.is_empty() && !WORDS.concat().contains(&text);
            seen.expect("no words", other && finish.as_deref() == Some("stop"))
        });
    }
}

#[test]
fn a_model_s_text_drifts() {
    for ask in [WHOLE, STREAM] {
        run(
            json!({ "mode": "response_drift", "drift_type": "verbosity_shift" }),
            ask,
            |seen| {
                let (text, finish) = said(seen);
                let more = text.starts_with(&WORDS.concat()) && text.len() > WORDS.concat().len();
                seen.expect("more words", more && finish.as_deref() == Some("stop"))
            },
        );
    }
}

#[test]
fn a_tool_call_goes_wrong() {
    for ask in [CALL, CALL_STREAM] {
        run(json!({ "mode": "unknown_tool_call" }), ask, |seen| {
            let (name, arguments) = called(seen);
            seen.expect(
                "another tool",
                name != "weather" && name.contains("weather"),
            )?;
            seen.expect("its arguments", arguments == "{\"city\":\"Kiel\"}")
        });
        run(json!({ "mode": "malformed_tool_call" }), ask, |seen| {
            let (name, arguments) = called(seen);
            seen.expect("the tool", name == "weather")?;
            let broken = serde_json::from_str::<Value>(&arguments).is_err();
            seen.expect("no JSON", broken && !arguments.is_empty())
        });
        run(json!({ "mode": "wrong_tool_arguments" }), ask, |seen| {
            let (name, arguments) = called(seen);
            let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
            seen.expect("the tool", name == "weather")?;
            let wrong = arguments != json!({ "city": "Kiel" });
            seen.expect("other arguments", arguments.is_object() && wrong)
        });
    }
}

#[test]
fn a_tool_call_is_chosen_by_its_name() {
    for ask in [CALL, CALL_STREAM] {
        let rule = json!({ "mode": "wrong_tool_arguments", "tool": "weather" });
        run(rule, ask, |seen| {
            let (name, arguments) = called(seen);
            let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
            seen.expect("the tool", name == "weather")?;
            seen.expect("other arguments", arguments != json!({ "city": "Kiel" }))
        });
    }
    let stage = Stage::new();
    let rule = json!({ "mode": "malformed_tool_call", "tool": "mail" });
    stage.daemon.api.chaos(&json!({ LLM: [rule] }));
    stage
        .way(Path::Reverse, "/v1")
        .ask("openai_chat.py", &["--tools"]);
    let ended = stage.daemon.api.wait_for_exchanges(1).remove(0);
    assert_eq!(ended["outcome"], "ok", "{ended}");
    let rule = &ended["rules"][0];
    let reason = "the answer calls `weather`, and the rule's `tool` is `mail`";
    assert_eq!(
        (&rule["outcome"], &rule["reason"]),
        (&json!("bypassed"), &json!(reason))
    );
    let found = stage.daemon.api.get("/v1/exchanges?tool=weather");
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{found}");
}

#[test]
fn a_stalled_stream_goes_on_later() {
    let rule = json!({ "mode": "stream_stall", "after_tokens": 2, "delay_ms": 250 });
    run(rule, STREAM, |seen| {
        let text = said(seen).0;
        seen.expect("the whole text", text == WORDS.concat())?;
        seen.expect("it took 250 ms", seen.took.as_millis() >= 250)
    });
    // Nothing but time differs, and that alone is `ok`.
    let stage = Stage::new();
    let rule = json!({ "mode": "stream_stall", "after_tokens": 2, "delay_ms": 1 });
    stage.daemon.api.chaos(&json!({ LLM: [rule] }));
    stage
        .way(Path::Reverse, "/v1")
        .ask("openai_chat.py", &["--stream"]);
    let ended = stage.daemon.api.wait_for_exchanges(1).remove(0);
    assert_eq!(ended["outcome"], "ok", "{ended}");
}

#[test]
fn an_error_in_a_stream_ends_it() {
    let rule = json!({ "mode": "stream_error", "after_tokens": 2 });
    run(rule, STREAM, |seen| {
        let (text, finish) = said(seen);
        seen.expect(
            "status 200",
            seen.answer.status == 200 && seen.answer.broke.is_none(),
        )?;
        seen.expect(
            "no finish",
            finish.is_none() && WORDS.concat().starts_with(&text),
        )?;
        let last = seen.answer.text();
        let last = last.trim_end().rsplit("data: ").next().unwrap_or_default();
        let error: Value = serde_json::from_str(last).unwrap_or_default();
        seen.expect("an error at its end", error["error"]["message"].is_string())
    });
}

#[test]
fn a_stream_repeats_itself_lacks_its_end_or_is_none() {
    run(json!({ "mode": "duplicate_chunk" }), STREAM, |seen| {
        let text = said(seen).0;
        let twice = WORDS.iter().filter(|word| text.contains(&word.repeat(2)));
        seen.expect("a word twice", twice.count() == 1)
    });
    run(json!({ "mode": "missing_terminator" }), STREAM, |seen| {
        seen.expect("no end mark", !seen.answer.text().contains("[DONE]"))?;
        let said = said(seen);
        seen.expect("all else", said == (WORDS.concat(), Some("stop".into())))
    });
    run(json!({ "mode": "json_for_stream" }), STREAM, |seen| {
        let kind = seen.answer.header("content-type");
        seen.expect("JSON", kind == Some("application/json"))?;
        let whole = serde_json::from_slice::<Value>(&seen.answer.body).unwrap_or_default();
        seen.expect("one document", whole["object"] == "chat.completion")?;
        let said = said(seen);
        seen.expect(
            "that says the same",
            said == (WORDS.concat(), Some("stop".into())),
        )
    });
}

#[test]
fn llm_rules_leave_tools_alone() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&json!({ LLM: [{ "mode": "server_error" }] }));
    for path in Path::THROUGH {
        assert_eq!(
            see(&stage, path, Ask::Get("/json")).answer.status,
            200,
            "{path:?}"
        );
        assert_eq!(see(&stage, path, WHOLE).answer.status / 100, 5, "{path:?}");
    }
}

#[test]
fn a_named_gateway_speaks_several_dialects_and_does_more_than_model_calls() {
    let config = json!({ "llm": [{ "match_url": "*/custom/*", "dialect": "openai-chat" }] });
    let stage = Stage::with(&config, squall_tests::upstream::standard::serve);
    stage
        .daemon
        .api
        .chaos(&json!({ "llm_faults": [{ "mode": "rate_limit" }] }));
    let openai = r#"{"model":"any","messages":[]}"#;
    let anthropic = r#"{"model":"any","max_tokens":9,"messages":[]}"#;
    let gemini = r#"{"contents":[]}"#;
    for (method, path, body, expected) in [
        (
            "POST",
            "/custom/generate",
            openai,
            Some("rate_limit_exceeded"),
        ),
        (
            "POST",
            "/custom/v1/messages",
            anthropic,
            Some("rate_limit_error"),
        ),
        (
            "POST",
            "/custom/v1beta/models/gemini-pro:generateContent",
            gemini,
            Some("RESOURCE_EXHAUSTED"),
        ),
        ("GET", "/custom/v1/models", "", None),
        ("DELETE", "/custom/v1/files/f1", "", None),
        ("POST", "/custom/v1/files", r#"{"purpose":"x"}"#, None),
        ("POST", "/custom/v1/embeddings", r#"{"input":"x"}"#, None),
        ("POST", "/custom/agents", r#"{"name":"x"}"#, None),
    ] {
        let mut wire = stage.open(Path::Forward);
        let headers = [("content-type", "application/json")];
        wire.request(method, path, &headers, body.as_bytes());
        let answer = wire.response();
        match expected {
            Some(word) => {
                assert_eq!(answer.status, 429, "{path}");
                assert!(answer.text().contains(word), "{path}: {answer:?}");
            }
            None => assert_ne!(answer.status, 429, "{path}"),
        }
    }
}

#[test]
fn rules_can_be_narrowed_to_a_model_and_to_streams() {
    let stage = Stage::new();
    stage.daemon.api.chaos(&json!({ LLM: [
        { "mode": "server_error", "model": "other-*" },
        { "mode": "rate_limit", "stream": true },
    ] }));
    assert_eq!(see(&stage, Path::Forward, WHOLE).answer.status, 200);
    assert_eq!(see(&stage, Path::Forward, STREAM).answer.status, 429);
    let other = Ask::Post(
        "/v1/chat/completions",
        r#"{"model":"other-1","messages":[]}"#,
    );
    assert_eq!(see(&stage, Path::Forward, other).answer.status / 100, 5);
}

/// What an official client must tell of each fault: arguments, rule, and members of its JSON line.
fn client_cases() -> Vec<(&'static [&'static str], Option<Value>, Value)> {
    let whole: &[&str] = &[];
    let stream: &[&str] = &["--stream"];
    let text = WORDS.concat();
    vec![
        (
            whole,
            None,
            json!({ "ok": true, "text": text, "finish": "stop" }),
        ),
        (
            stream,
            None,
            json!({ "ok": true, "text": text, "finish": "stop" }),
        ),
        (
            whole,
            Some(json!({ "mode": "rate_limit", "retry_after": 1 })),
            json!({ "error": "RateLimitError", "status": 429 }),
        ),
        (
            whole,
            Some(json!({ "mode": "server_error", "error_code": 500 })),
            json!({ "error": "InternalServerError", "status": 500 }),
        ),
        (
            whole,
            Some(json!({ "mode": "timeout", "delay_ms": 50 })),
            json!({ "error": "APIConnectionError" }),
        ),
        (
            whole,
            Some(json!({ "mode": "truncated_response", "max_tokens": 2 })),
            json!({ "ok": true, "finish": "length" }),
        ),
        (
            stream,
            Some(json!({ "mode": "truncated_response", "max_tokens": 2 })),
            json!({ "ok": true, "finish": "length" }),
        ),
        (
            stream,
            Some(json!({ "mode": "stream_cut", "after_tokens": 2 })),
            json!({ "ok": false }),
        ),
        (
            whole,
            Some(json!({ "mode": "quota_exhausted" })),
            json!({ "error": "RateLimitError", "status": 429 }),
        ),
        (
            stream,
            Some(json!({ "mode": "content_filter" })),
            json!({ "ok": true, "text": "", "finish": "content_filter" }),
        ),
        (
            stream,
            Some(json!({ "mode": "stream_error", "after_tokens": 2 })),
            json!({ "ok": false, "error": "APIError" }),
        ),
        (
            stream,
            Some(json!({ "mode": "missing_terminator" })),
            json!({ "ok": true, "text": text, "finish": "stop" }),
        ),
        // Both clients take it for a stream that says nothing, and say nothing of it.
        (
            stream,
            Some(json!({ "mode": "json_for_stream" })),
            json!({ "ok": true, "text": "", "finish": null }),
        ),
        (
            stream,
            Some(json!({ "mode": "slow_stream", "ttft_ms": 50 })),
            json!({ "ok": true, "text": text, "finish": "stop" }),
        ),
    ]
}

fn official(script: &str, path: Path) {
    let stage = Stage::new();
    for (arguments, rule, expected) in client_cases() {
        match &rule {
            Some(rule) => stage.daemon.api.chaos(&json!({ LLM: [rule] })),
            None => stage.daemon.api.calm(),
        }
        let told = stage.way(path, "/v1").ask(script, arguments);
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(
                told[member], *value,
                "{script} {path:?} under {rule:?}: {told}"
            );
        }
    }
}

#[test]
fn python_s_openai_client_takes_each_fault_for_the_provider_s_in_clear() {
    official("openai_chat.py", Path::Forward);
    official("openai_chat.py", Path::Reverse);
}

#[test]
fn python_s_openai_client_takes_each_fault_for_the_provider_s_over_https() {
    official("openai_chat.py", Path::Intercepted);
}

#[test]
fn node_s_openai_client_takes_each_fault_for_the_provider_s_in_clear() {
    official("openai_chat.mjs", Path::Forward);
    official("openai_chat.mjs", Path::Reverse);
}

#[test]
fn node_s_openai_client_takes_each_fault_for_the_provider_s_over_https() {
    official("openai_chat.mjs", Path::Intercepted);
}

#[test]
fn a_tool_call_arrives_whole_streamed_or_not() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        for arguments in [&["--tools"][..], &["--tools", "--stream"]] {
            let told = stage.way(path, "/v1").ask("openai_chat.py", arguments);
            assert_eq!(told["finish"], "tool_calls", "{path:?}: {told}");
            assert_eq!(
                told["calls"],
                json!([["weather", "{\"city\":\"Kiel\"}"]]),
                "{path:?}: {told}"
            );
        }
    }
}

#[test]
fn a_client_that_retries_gets_through_a_limit_that_ends() {
    let stage = Stage::new();
    stage
        .daemon
        .api
        .chaos(&json!({ LLM: [{ "mode": "rate_limit", "retry_after": 0, "limit": 2 }] }));
    let told = stage
        .way(Path::Intercepted, "/v1")
        .ask("openai_chat.py", &["--retries", "3"]);
    assert_eq!(told["ok"], true, "{told}");
    let attempts: Vec<_> = stage
        .daemon
        .api
        .wait_for_exchanges(3)
        .iter()
        .map(|one| (one["status"].clone(), one["attempt"].clone()))
        .collect();
    let statuses: Vec<_> = attempts.iter().map(|(status, _)| status.clone()).collect();
    assert_eq!(
        statuses,
        [json!(429), json!(429), json!(200)],
        "{attempts:?}"
    );
}
