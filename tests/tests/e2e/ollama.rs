//! The `ollama` dialect byte by byte, and as Ollama's official client takes it.

use serde_json::json;
use squall_tests::upstream::ollama::{WORDS, lines, serve};
use squall_tests::{Path, Stage};

use crate::matrix::{Ask, exchange, see};
use crate::official::{Case, Client, got_one_twice};

const CLIENT: Client = Client::new("ollama_chat.py", "");
const CHAT: &str = r#"{"model":"qwen3","messages":[{"role":"user","content":"hi"}]}"#;
const PROMPT: &str = r#"{"model":"qwen3","prompt":"hi"}"#;
const WHOLE: &str =
    r#"{"model":"qwen3","messages":[{"role":"user","content":"hi"}],"stream":false}"#;

fn stage() -> Stage {
    Stage::with(&json!({}), serve)
}

#[test]
fn every_line_reaches_the_agent_as_it_is_before_the_next_is_sent() {
    let stage = stage();
    for path in Path::THROUGH {
        for (target, body) in [("/api/chat", CHAT), ("/api/generate", PROMPT)] {
            let mut wire = stage.open(path);
            let headers = [("x-step", "1"), ("content-type", "application/json")];
            wire.request("POST", target, &headers, body.as_bytes());
            for line in lines(target == "/api/chat", false) {
                stage.upstream(path).step();
                wire.receive_until(&line);
            }
        }
    }
}

#[test]
fn a_call_is_recognised_by_its_path_and_told_in_neutral_words() {
    let stage = stage();
    let asks = [
        ("/api/chat", CHAT, true),
        ("/api/chat", WHOLE, false),
        ("/api/generate", PROMPT, true),
    ];
    for (number, (target, body, stream)) in (1..).zip(asks) {
        let straight = see(&stage, Path::Direct, Ask::Post(target, body));
        let through = see(&stage, Path::Reverse, Ask::Post(target, body));
        assert_eq!(through.answer.text(), straight.answer.text(), "{target}");
        let entry = exchange(&stage, number);
        assert_eq!(
            (&entry["kind"], &entry["dialect"]),
            (&json!("llm"), &json!("ollama")),
            "{entry}"
        );
        for (field, value) in [
            ("model", json!("qwen3")),
            ("stream", json!(stream)),
            ("finish", json!("done")),
            ("input_tokens", json!(26)),
            ("output_tokens", json!(9)),
        ] {
            assert_eq!(entry["llm"][field], value, "{field} of {entry}");
        }
    }
}

#[test]
fn the_official_client_hears_the_same_on_every_path() {
    let stage = stage();
    for arguments in [
        &[][..],
        &["--stream"],
        &["--generate", "--stream"],
        &["--tools", "--stream"],
    ] {
        let straight = CLIENT.ask(&stage, Path::Direct, arguments);
        assert_eq!(straight["ok"], true, "{straight}");
        assert_eq!(straight["counts"], json!([26, 9]), "{straight}");
        for path in Path::THROUGH {
            let through = CLIENT.ask(&stage, path, arguments);
            assert_eq!(through, straight, "{path:?} {arguments:?}");
        }
    }
    let entries = stage.daemon.api.wait_for_exchanges(12);
    for entry in &entries[9..] {
        assert_eq!(entry["llm"]["finish"], "tool", "{entry}");
        let tools = &entry["llm"]["tool_calls"];
        assert_eq!(tools, &json!(["weather", "time"]), "{entry}");
    }
}

#[test]
fn the_official_client_takes_each_fault_for_the_server_s() {
    let whole: &[&str] = &[];
    let stream: &[&str] = &["--stream"];
    let generate: &[&str] = &["--generate", "--stream"];
    let error = |status: i64| json!({ "error": "ResponseError", "status": status });
    let truncated = json!({ "mode": "truncated_response", "max_tokens": 5 });
    let cut = json!({ "mode": "stream_cut", "after_tokens": 5 });
    // Three tokens of thinking come before the words.
    let shortened = json!({
        "ok": true, "finish": "length", "text": WORDS[..2].concat(), "counts": [26, 5],
    });
    let broken = json!({ "error": "RemoteProtocolError" });
    let busy = json!({
        "error": "ResponseError", "status": 503,
        "text": "server busy, please try again.  maximum pending requests exceeded",
    });
    let cases = [
        (whole, json!({ "mode": "rate_limit" }), error(429)),
        (stream, json!({ "mode": "rate_limit" }), error(429)),
        (whole, json!({ "mode": "server_error" }), error(500)),
        (
            stream,
            json!({ "mode": "server_error", "error_code": 502 }),
            error(502),
        ),
        (whole, json!({ "mode": "overloaded" }), busy.clone()),
        (generate, json!({ "mode": "overloaded" }), busy),
        (stream, cut.clone(), broken.clone()),
        (whole, cut.clone(), broken.clone()),
        (generate, cut, broken),
        (stream, truncated.clone(), shortened.clone()),
        (whole, truncated.clone(), shortened.clone()),
        (generate, truncated, shortened),
    ];
    let cases = cases.map(|(arguments, rule, told)| Case {
        arguments,
        rule,
        told,
        // It never asks twice.
        attempts: 1,
    });
    CLIENT.tells(&stage(), Path::Reverse, &cases);
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_its_last_line() {
    let case = Case {
        arguments: &["--stream"],
        rule: json!({ "mode": "stream_error", "after_tokens": 5 }),
        told: json!({ "error": "ResponseError", "status": -1, "after": WORDS[..2].concat() }),
        attempts: 1,
    };
    CLIENT.tells(&stage(), Path::Reverse, &[case]);
}

#[test]
fn other_words_come_with_the_last_line_and_its_counts() {
    let case = |arguments, rule, told| Case {
        arguments,
        rule,
        told,
        attempts: 1,
    };
    let empty = json!({ "ok": true, "finish": "stop", "text": "", "thinking": "Short words." });
    let cases = [
        case(&["--stream"][..], json!({ "mode": "empty" }), empty.clone()),
        case(&[], json!({ "mode": "empty" }), empty),
        case(
            &[],
            json!({ "mode": "model_not_found" }),
            json!({ "error": "ResponseError", "status": 404, "text": "model 'qwen3' not found" }),
        ),
    ];
    CLIENT.tells(&stage(), Path::Reverse, &cases);
}

#[test]
fn other_words_are_said_whole_or_in_a_stream() {
    let stage = stage();
    for mode in ["refusal", "garbage"] {
        let rule = json!({ "mode": mode });
        for arguments in [&[][..], &["--stream"], &["--generate", "--stream"]] {
            let (clean, told) = CLIENT.without_and_with(&stage, &rule, arguments);
            assert_eq!(clean["text"], WORDS.concat(), "{clean}");
            let text = told["text"].as_str().unwrap_or_default();
            assert!(!text.is_empty() && text != WORDS.concat(), "{mode}: {told}");
            assert_eq!(
                (&told["thinking"], &told["finish"]),
                (&clean["thinking"], &json!("stop"))
            );
        }
    }
}

#[test]
fn a_document_for_a_stream_is_taken_as_one_line_and_a_stall_for_a_time_out() {
    let cases = [
        Case {
            arguments: &["--stream"],
            rule: json!({ "mode": "json_for_stream" }),
            told: json!({
                "ok": true, "finish": "stop", "counts": [26, 9], "lines": [WORDS.concat()],
            }),
            attempts: 1,
        },
        Case {
            // Longer than the client waits for a line.
            arguments: &["--stream", "--timeout", "3"],
            rule: json!({ "mode": "stream_stall", "after_tokens": 5, "delay_ms": 600_000 }),
            told: json!({ "error": "ReadTimeout", "after": WORDS[..2].concat() }),
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
        for member in ["finish", "thinking", "counts"] {
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
    assert!(got_one_twice(&told["lines"], &clean["lines"]), "{told}");
    assert!(!got_one_twice(&clean["lines"], &clean["lines"]));
}

#[test]
fn arguments_that_are_no_text_stay_as_they_are() {
    let stage = stage();
    let rule = json!({ "mode": "malformed_tool_call" });
    stage.daemon.api.chaos(&json!({ "llm_faults": [rule] }));
    let tools = r#""tools":[{"type":"function","function":{"name":"weather"}}],"messages":[]"#;
    for stream in [true, false] {
        let body = format!("{{\"model\":\"qwen3\",\"stream\":{stream},{tools}}}");
        let answer = stage.open(Path::Reverse).post("/api/chat", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains("tool_calls"), "{}", answer.text());
    }
    for entry in stage.daemon.api.wait_for_exchanges(2) {
        assert_eq!(entry["rules"][0]["outcome"], "bypassed", "{entry}");
    }
}

#[test]
fn a_stream_that_is_truncated_ends_as_the_server_ends_one() {
    let stage = stage();
    let rule = json!({ "mode": "truncated_response", "max_tokens": 5 });
    stage.daemon.api.chaos(&json!({ "llm_faults": [rule] }));
    let seen = see(&stage, Path::Reverse, Ask::Post("/api/chat", CHAT));
    let sent = lines(true, false);
    let end = sent[7]
        .replace("\"stop\"", "\"length\"")
        .replace("\"eval_count\":9", "\"eval_count\":5");
    assert_ne!(end, sent[7]);
    assert_eq!(seen.answer.text(), sent[..4].concat() + &end);
}
