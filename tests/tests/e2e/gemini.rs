//! The `gemini` dialect byte by byte, and as Google's official client takes it.

use serde_json::{Value, json};
use squall_tests::upstream::gemini::{SIGNATURE, WORDS, events, list, serve, sse};
use squall_tests::{Path, Stage};

use crate::matrix::{Ask, Row, Seen, check, exchange, see};
use crate::official::{Case, Client, got_one_twice};

const CLIENT: Client = Client::new("gemini.py", "");
const BODY: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
const WHOLE: &str = "/v1beta/models/gemini-3-flash-preview:generateContent";
const STREAM: &str = "/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse";
const LIST: &str = "/v1beta/models/gemini-3-flash-preview:streamGenerateContent";

fn stage() -> Stage {
    Stage::with(&json!({}), serve)
}

#[test]
fn every_event_reaches_the_agent_as_it_is_before_the_next_is_sent() {
    let stage = stage();
    let events = events(false);
    for path in Path::THROUGH {
        for (target, pieces) in [(STREAM, sse(&events)), (LIST, list(&events))] {
            let mut wire = stage.open(path);
            let headers = [("x-step", "1"), ("content-type", "application/json")];
            wire.request("POST", target, &headers, BODY.as_bytes());
            for piece in &pieces {
                stage.upstream(path).step();
                wire.receive_until(piece);
            }
        }
    }
}

#[test]
fn a_call_is_recognised_by_its_path_and_told_in_neutral_words() {
    let stage = stage();
    for (number, (target, stream)) in (1..).zip([(WHOLE, false), (STREAM, true), (LIST, true)]) {
        let straight = see(&stage, Path::Direct, Ask::Post(target, BODY));
        let through = see(&stage, Path::Reverse, Ask::Post(target, BODY));
        assert_eq!(through.answer.text(), straight.answer.text(), "{target}");
        let entry = exchange(&stage, number);
        assert_eq!(
            (&entry["kind"], &entry["dialect"]),
            (&json!("llm"), &json!("gemini")),
            "{entry}"
        );
        let llm = &entry["llm"];
        for (field, value) in [
            ("model", json!("gemini-3-flash-preview")),
            ("stream", json!(stream)),
            ("finish", json!("done")),
            ("input_tokens", json!(9)),
            ("output_tokens", json!(25)),
        ] {
            assert_eq!(llm[field], value, "{field} of {entry}");
        }
    }
}

#[test]
fn the_official_client_hears_the_same_on_every_path() {
    let stage = stage();
    for arguments in [
        &[][..],
        &["--stream"],
        &["--tools"],
        &["--stream", "--tools"],
    ] {
        let straight = CLIENT.ask(&stage, Path::Direct, arguments);
        assert_eq!(straight["ok"], true, "{straight}");
        assert_eq!(straight["signatures"], json!([SIGNATURE]), "{straight}");
        for path in Path::THROUGH {
            let through = CLIENT.ask(&stage, path, arguments);
            assert_eq!(through, straight, "{path:?} {arguments:?}");
        }
    }
    let entries = stage.daemon.api.wait_for_exchanges(12);
    for entry in &entries[6..] {
        assert_eq!(entry["llm"]["finish"], "tool", "{entry}");
        assert_eq!(
            entry["llm"]["tool_calls"],
            json!(["weather", "time"]),
            "{entry}"
        );
    }
}

#[test]
fn the_official_client_takes_each_fault_for_the_provider_s() {
    let whole: &[&str] = &[];
    let stream: &[&str] = &["--stream"];
    let cases = [
        Case {
            arguments: whole,
            rule: json!({ "mode": "rate_limit", "retry_after": 7 }),
            told: json!({
                "error": "ClientError", "status": 429, "code": "RESOURCE_EXHAUSTED", "wait": "7s",
            }),
            attempts: 1,
        },
        Case {
            arguments: stream,
            rule: json!({ "mode": "rate_limit" }),
            told: json!({ "error": "ClientError", "status": 429, "wait": "1s" }),
            attempts: 1,
        },
        Case {
            arguments: &["--attempts", "3"],
            rule: json!({ "mode": "rate_limit" }),
            told: json!({ "error": "ClientError", "status": 429 }),
            attempts: 3,
        },
        Case {
            arguments: whole,
            rule: json!({ "mode": "server_error" }),
            told: json!({ "error": "ServerError", "status": 500, "code": "INTERNAL" }),
            attempts: 1,
        },
        Case {
            arguments: stream,
            rule: json!({ "mode": "server_error", "error_code": 504 }),
            told: json!({ "error": "ServerError", "status": 504, "code": "DEADLINE_EXCEEDED" }),
            attempts: 1,
        },
        Case {
            // The front end's page is no JSON.
            arguments: whole,
            rule: json!({ "mode": "server_error", "error_code": 502 }),
            told: json!({ "error": "ServerError", "status": 502, "code": "Bad Gateway" }),
            attempts: 1,
        },
        Case {
            arguments: whole,
            rule: json!({ "mode": "overloaded" }),
            told: json!({ "error": "ServerError", "status": 503, "code": "UNAVAILABLE" }),
            attempts: 1,
        },
        Case {
            arguments: &["--stream", "--attempts", "2"],
            rule: json!({ "mode": "overloaded" }),
            told: json!({ "error": "ServerError", "status": 503 }),
            attempts: 2,
        },
        Case {
            arguments: stream,
            rule: json!({ "mode": "stream_cut", "after_tokens": 9 }),
            told: json!({ "error": "RemoteProtocolError" }),
            attempts: 1,
        },
        Case {
            arguments: whole,
            rule: json!({ "mode": "stream_cut", "after_tokens": 9 }),
            told: json!({ "error": "RemoteProtocolError" }),
            attempts: 1,
        },
        Case {
            // Six tokens of thought come before the words.
            arguments: stream,
            rule: json!({ "mode": "truncated_response", "max_tokens": 9 }),
            told: json!({ "ok": true, "finish": "MAX_TOKENS", "text": WORDS[..3].concat() }),
            attempts: 1,
        },
        Case {
            arguments: whole,
            rule: json!({ "mode": "truncated_response", "max_tokens": 9 }),
            told: json!({ "ok": true, "finish": "MAX_TOKENS", "text": WORDS[..3].concat() }),
            attempts: 1,
        },
    ];
    CLIENT.tells(&stage(), Path::Reverse, &cases);
}

#[test]
fn other_words_and_errors_reach_the_official_client_as_the_provider_s() {
    let stream: &[&str] = &["--stream"];
    let cases = [
        Case {
            arguments: stream,
            rule: json!({ "mode": "empty" }),
            told: json!({ "ok": true, "finish": "STOP", "text": "", "thoughts": "**Looking out to sea**" }),
            attempts: 1,
        },
        Case {
            arguments: stream,
            rule: json!({ "mode": "stream_error", "after_tokens": 9 }),
            told: json!({ "error": "ServerError", "status": 503, "code": "UNAVAILABLE" }),
            attempts: 1,
        },
        Case {
            arguments: stream,
            rule: json!({ "mode": "content_filter" }),
            told: json!({ "ok": true, "finish": "SAFETY", "text": "", "thoughts": "**Looking out to sea**" }),
            attempts: 1,
        },
        Case {
            arguments: stream,
            rule: json!({ "mode": "refusal" }),
            told: json!({ "ok": true, "finish": "STOP", "thoughts": "**Looking out to sea**", "signatures": [] }),
            attempts: 1,
        },
        Case {
            arguments: &[],
            rule: json!({ "mode": "model_not_found" }),
            told: json!({ "error": "ClientError", "status": 404, "code": "NOT_FOUND" }),
            attempts: 1,
        },
    ];
    CLIENT.tells(&stage(), Path::Reverse, &cases);
}

#[test]
fn a_document_for_a_stream_is_taken_as_one_event_and_a_stall_for_a_time_out() {
    let cases = [
        Case {
            arguments: &["--stream"],
            rule: json!({ "mode": "json_for_stream" }),
            told: json!({
                "ok": true, "text": WORDS.concat(), "signatures": [SIGNATURE],
                "events": [["**Looking out to sea**", WORDS.concat(), ""]],
            }),
            attempts: 1,
        },
        Case {
            // Longer than the client waits for an event.
            arguments: &["--stream", "--timeout", "3"],
            rule: json!({ "mode": "stream_stall", "after_tokens": 9, "delay_ms": 600_000 }),
            told: json!({ "ok": false, "error": "ReadTimeout" }),
            attempts: 1,
        },
    ];
    CLIENT.tells(&stage(), Path::Reverse, &cases);
}

#[test]
fn what_the_model_says_drifts_and_nothing_else_does() {
    let stage = stage();
    let rule = json!({ "mode": "response_drift", "drift_type": "verbosity_shift" });
    for arguments in [&[][..], &["--stream"]] {
        let (clean, told) = CLIENT.without_and_with(&stage, &rule, arguments);
        let text = told["text"].as_str().unwrap_or_default();
        let said = WORDS.concat();
        assert!(text.len() > said.len() && text.starts_with(&said), "{told}");
        for member in ["finish", "thoughts", "signatures", "written"] {
            assert_eq!(told[member], clean[member], "{member}");
        }
    }
}

#[test]
fn a_tool_is_called_with_arguments_that_are_wrong() {
    let stage = stage();
    let rule = json!({ "mode": "wrong_tool_arguments" });
    for arguments in [&["--tools"][..], &["--tools", "--stream"]] {
        let (clean, told) = CLIENT.without_and_with(&stage, &rule, arguments);
        assert_eq!(clean["calls"][0], json!(["weather", { "city": "Kiel" }]));
        assert_eq!(told["calls"][0][0], "weather", "{told}");
        assert_ne!(told["calls"][0][1], clean["calls"][0][1], "{told}");
        assert_eq!(told["calls"][1], clean["calls"][1], "{told}");
    }
}

#[test]
fn an_event_that_comes_twice_is_taken_twice() {
    let rule = json!({ "mode": "duplicate_chunk" });
    let (clean, told) = CLIENT.without_and_with(&stage(), &rule, &["--stream"]);
    assert!(got_one_twice(&told["events"], &clean["events"]), "{told}");
    assert!(!got_one_twice(&clean["events"], &clean["events"]));
}

#[test]
fn a_client_that_retries_gets_through_a_limit_that_ends() {
    let stage = stage();
    let rule = json!({ "mode": "rate_limit", "limit": 2 });
    stage.daemon.api.chaos(&json!({ "llm_faults": [rule] }));
    let told = CLIENT.ask(&stage, Path::Reverse, &["--attempts", "3"]);
    assert_eq!(
        (&told["ok"], &told["text"]),
        (&json!(true), &json!(WORDS.concat())),
        "{told}"
    );
    let attempts = stage.daemon.api.wait_for_exchanges(3);
    let statuses: Vec<&Value> = attempts.iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, [429, 429, 200], "{attempts:?}");
}

/// The items of a list, as far as it is one.
fn items(seen: &Seen) -> Vec<Value> {
    serde_json::from_slice(&seen.answer.body).unwrap_or_default()
}

#[test]
fn a_list_that_is_truncated_is_still_a_list() {
    check(
        &stage(),
        &Row {
            family: "llm_faults",
            rule: json!({ "mode": "truncated_response", "max_tokens": 9 }),
            ask: Ask::Post(LIST, BODY),
            check: |seen| {
                let items = items(seen);
                let last = items.last().cloned().unwrap_or_default();
                seen.expect("a list", items.len() > 2)?;
                let finish = &last["candidates"][0]["finishReason"];
                seen.expect("MAX_TOKENS", finish == "MAX_TOKENS")?;
                seen.expect("its end", seen.answer.broke.is_none())
            },
        },
        &Path::THROUGH,
    );
}

#[test]
fn a_list_that_is_cut_has_no_end() {
    check(
        &stage(),
        &Row {
            family: "llm_faults",
            rule: json!({ "mode": "stream_cut", "after_tokens": 9 }),
            ask: Ask::Post(LIST, BODY),
            check: |seen| {
                let text = seen.answer.text();
                seen.expect("it broke", seen.answer.broke.is_some())?;
                seen.expect("no list", items(seen).is_empty())?;
                seen.expect(
                    "some words",
                    text.contains(WORDS[0]) && !text.contains("STOP"),
                )
            },
        },
        &Path::THROUGH,
    );
}
