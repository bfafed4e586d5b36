use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};

use super::*;
use crate::dialect::AnswerForm;
use crate::json::NotJson;
use crate::model::{Delta, DeltaKind, ToolResult, Usage};
use crate::reader::{ModelCall, Reader};

/// Answers shaped as `api.openai.com` and compatible servers give them.
const ANSWERS: &[(&str, &str)] = &[
    ("text", include_str!("corpus/text.json")),
    ("tool calls", include_str!("corpus/tool_calls.json")),
    ("refusal", include_str!("corpus/refusal.json")),
    ("two choices", include_str!("corpus/two_choices.json")),
];
const STREAMS: &[(&str, &str)] = &[
    ("text", include_str!("corpus/text.sse")),
    ("tool calls", include_str!("corpus/tool_calls.sse")),
    ("openrouter", include_str!("corpus/openrouter.sse")),
    ("error", include_str!("corpus/error.sse")),
];

const REQUEST: &str = r#"{
  "messages": [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    {"role": "tool", "content": "no id"}
  ],
  "model": "gpt-5-mini", "stream": true, "stream_options": {"include_usage": true}, "n": 2,
  "tools": [{"type": "function", "function": {"name": "weather"}}, {"type": "custom", "custom": {"name": "shell"}}]
}"#;

#[test]
fn a_request_says_what_is_asked_for() {
    let sunny = REQUEST.find("\"sunny\"").expect("in there");
    let expected = ModelRequest {
        model: Some("gpt-5-mini".to_owned()),
        stream: true,
        usage_in_stream: true,
        choices: 2,
        messages: 4,
        tools: vec!["weather".to_owned(), "shell".to_owned()],
        tool_results: vec![ToolResult {
            call: "call_1".to_owned(),
            content: sunny..sunny + 7,
        }],
    };
    assert_eq!(OpenAiChat.request(REQUEST.as_bytes()), Some(expected));
    assert!(OpenAiChat.confirms(REQUEST.as_bytes()));
}

#[test]
fn a_request_that_says_little_has_the_apis_defaults() {
    let plain = ModelRequest {
        choices: 1,
        ..ModelRequest::default()
    };
    for (body, expected) in [
        ("{}", Some(plain.clone())),
        (
            r#"{"model": 3, "stream": "yes", "n": 0, "messages": {}}"#,
            Some(plain.clone()),
        ),
        ("[]", None),
        ("", None),
        ("<html>", None),
    ] {
        assert_eq!(OpenAiChat.request(body.as_bytes()), expected, "{body}");
        assert!(!OpenAiChat.confirms(body.as_bytes()), "{body}");
    }
}

/// What a reader makes of an answer.
fn read(form: AnswerForm, request: Option<&str>, answer: &str) -> ModelCall {
    let mut reader = Reader::new(&OpenAiChat, request.map(str::as_bytes));
    reader.head(Some(form));
    for chunk in answer.as_bytes().chunks(7) {
        reader.push(chunk);
    }
    reader.finish()
}

fn call(model: &str, input: u64, output: u64, finish: Finish) -> ModelCall {
    ModelCall {
        model: Some(model.to_owned()),
        input_tokens: Some(input),
        output_tokens: Some(output),
        finish: Some(finish),
        ..ModelCall::default()
    }
}

#[test]
fn whole_answers_are_read_into_neutral_words() {
    let model = "gpt-5-mini-2026-05-01";
    let two_tools = vec!["weather".to_owned(), "time".to_owned()];
    for ((name, answer), expected) in ANSWERS.iter().zip([
        call(model, 19, 10, Finish::Done),
        ModelCall {
            tool_calls: two_tools,
            ..call(model, 82, 34, Finish::Tool)
        },
        call(model, 81, 11, Finish::Refused),
        call(model, 9, 24, Finish::Length),
    ]) {
        assert_eq!(read(AnswerForm::Json, None, answer), expected, "{name}");
    }
}

#[test]
fn streams_are_read_into_neutral_words() {
    let model = "gpt-5-mini-2026-05-01";
    let streamed = |call: ModelCall| ModelCall {
        stream: true,
        ..call
    };
    let tools = vec!["weather".to_owned(), "time".to_owned()];
    let failed = ModelCall {
        model: Some(model.to_owned()),
        error: Some("The server had an error while processing your request.".to_owned()),
        ..ModelCall::default()
    };
    for ((name, stream), expected) in STREAMS.iter().zip([
        call(model, 19, 5, Finish::Done),
        ModelCall {
            tool_calls: tools,
            ..call(model, 82, 34, Finish::Tool)
        },
        call("meta/llama", 12, 3, Finish::Foreign("error".to_owned())),
        failed,
    ]) {
        assert_eq!(
            read(AnswerForm::Stream, None, stream),
            streamed(expected),
            "{name}"
        );
    }
}

#[test]
fn the_journal_names_the_model_that_was_asked_for() {
    let read = read(AnswerForm::Stream, Some(REQUEST), STREAMS[0].1);
    assert_eq!(
        (read.model.as_deref(), read.stream),
        (Some("gpt-5-mini"), true)
    );
}

#[test]
fn pieces_are_found_where_they_stand() {
    let answer = ANSWERS[1].1;
    let document = Document::parse(answer.as_bytes()).expect("JSON");
    let reading = OpenAiChat.read_answer(&document);
    let pieces: Vec<(DeltaKind, &str)> = reading
        .deltas
        .iter()
        .map(|Delta { kind, place, .. }| (*kind, document.value(*place).raw()))
        .collect();
    let expected = [
        (DeltaKind::ToolName { call: 0 }, r#""weather""#),
        (
            DeltaKind::ToolArguments { call: 0 },
            r#""{\"city\":\"Paris\"}""#,
        ),
        (DeltaKind::ToolName { call: 1 }, r#""time""#),
        (
            DeltaKind::ToolArguments { call: 1 },
            r#""{\"zone\":\"CET\"}""#,
        ),
    ];
    assert_eq!(pieces, expected);
    let usage = reading.usage.expect("counted");
    let Usage {
        output_place: Some(output),
        total_place: Some(total),
        ..
    } = usage
    else {
        panic!("no places: {usage:?}");
    };
    assert_eq!(
        (document.value(output).raw(), document.value(total).raw()),
        ("34", "116")
    );
}

#[test]
fn what_is_read_and_written_again_unchanged_is_the_same() -> Result<(), NotJson> {
    // Every place a reading names, replaced by what stands there.
    let rewritten = |document: &Document<'_>, reading: &Reading<'_>| {
        let mut edits = Edits::new(document);
        let deltas = reading.deltas.iter().map(|delta| delta.place);
        let finishes = reading.finishes.iter().map(|finished| finished.place);
        for place in deltas.chain(finishes) {
            edits.replace(place, document.value(place).raw());
        }
        edits.apply()
    };
    for (name, answer) in ANSWERS {
        let document = Document::parse(answer.as_bytes())?;
        let reading = OpenAiChat.read_answer(&document);
        assert_eq!(rewritten(&document, &reading), answer.as_bytes(), "{name}");
    }
    for (name, stream) in STREAMS {
        let mut splitter = sse::Splitter::default();
        let mut frames = splitter.push(stream.as_bytes());
        frames.extend(splitter.finish());
        let mut written = Vec::new();
        for frame in frames {
            match frame.data() {
                Some(data) if !OpenAiChat.is_end(&data) => {
                    let document = Document::parse(&data)?;
                    let reading = OpenAiChat.read_event(&document);
                    written.extend(frame.with_data(&rewritten(&document, &reading)));
                }
                _ => written.extend_from_slice(frame.bytes()),
            }
        }
        assert_eq!(String::from_utf8_lossy(&written), *stream, "{name}");
    }
    Ok(())
}

#[test]
fn a_reason_to_stop_keeps_its_meaning_there_and_back() {
    for (finish, word, back) in [
        (Finish::Done, "\"stop\"", Finish::Done),
        (Finish::Length, "\"length\"", Finish::Length),
        (Finish::Tool, "\"tool_calls\"", Finish::Tool),
        (Finish::Filtered, "\"content_filter\"", Finish::Filtered),
        (Finish::Refused, "\"stop\"", Finish::Done),
        (Finish::Context, "\"length\"", Finish::Length),
        (
            Finish::Foreign("eos".to_owned()),
            "\"eos\"",
            Finish::Foreign("eos".to_owned()),
        ),
    ] {
        assert_eq!(OpenAiChat.finish_word(&finish), word);
        let event = format!("{{\"choices\":[{{\"delta\":{{}},\"finish_reason\":{word}}}]}}");
        let document = Document::parse(event.as_bytes()).expect("JSON");
        assert_eq!(OpenAiChat.read_event(&document).finishes[0].finish, back);
    }
}

#[test]
fn the_end_of_a_choice_is_made_after_its_last_event() {
    let event = r#"data: {"id":"c","new":[1],"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null},{"index":1,"delta":{"content":"b"},"logprobs":{"content":[]},"finish_reason":null,"x":2}],"usage":{"n":1},"obfuscation":"x"}"#;
    let stream = format!("id: 7\r\n{event}\r\n\r\n");
    let frames = sse::Splitter::default().push(stream.as_bytes());
    let data = frames[0].data().expect("data");
    let document = Document::parse(&data).expect("JSON");
    let made = OpenAiChat.finish_events(&frames[0], &document, 1, &Finish::Length);
    let expected = "id: 7\r\ndata: {\"id\":\"c\",\"new\":[1],\"choices\":[{\"index\":1,\"delta\":{},\
                    \"logprobs\":null,\"finish_reason\":\"length\",\"x\":2}],\"usage\":null,\
                    \"obfuscation\":\"x\"}\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&made), expected);
    assert!(
        OpenAiChat
            .finish_events(&frames[0], &document, 2, &Finish::Length)
            .is_empty()
    );
    assert_eq!(
        &OpenAiChat.end(&frames[0])[..],
        b"id: 7\r\ndata: [DONE]\r\n\r\n"
    );
}

#[test]
fn the_end_of_a_choice_names_its_reason_even_after_events_that_do_not() {
    let frames =
        sse::Splitter::default().push(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n");
    let data = frames[0].data().expect("data");
    let document = Document::parse(&data).expect("JSON");
    let made = OpenAiChat.finish_events(&frames[0], &document, 0, &Finish::Length);
    let expected = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    assert_eq!(String::from_utf8_lossy(&made), expected);
}

fn error(error: &ModelError) -> WireReply {
    OpenAiChat.error(
        error,
        &ErrorContext {
            draw: 42,
            model: Some("gpt-5-mini"),
        },
    )
}

/// Status, headers and body, as on the wire.
fn written(reply: &WireReply) -> String {
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}: {}\n", value.to_str().expect("ASCII"))
    };
    let headers: String = reply.headers.iter().map(header).collect();
    format!(
        "{}\n{headers}\n{}",
        reply.status,
        String::from_utf8_lossy(&reply.body)
    )
}

#[test]
fn a_rate_limit_reads_like_openais() {
    let retry_after = Some(Duration::from_millis(1500));
    insta::assert_snapshot!(written(&error(&ModelError::RateLimit { retry_after })));
}

#[test]
fn a_server_error_reads_like_openais() {
    insta::assert_snapshot!(written(&error(&ModelError::ServerError { status: 500 })));
}

#[test]
fn a_bad_gateway_reads_like_the_one_in_front_of_openai() {
    insta::assert_snapshot!(written(&error(&ModelError::ServerError { status: 502 })));
}

#[test]
fn an_overload_reads_like_openais() {
    insta::assert_snapshot!(written(&error(&ModelError::Overloaded)));
}

#[test]
fn the_wait_is_announced_in_every_form_or_in_none() {
    for (retry_after, seconds, millis, reset) in [
        (Some(Duration::ZERO), Some("0"), Some("0"), "0s"),
        (
            Some(Duration::from_millis(12)),
            Some("1"),
            Some("12"),
            "12ms",
        ),
        (Some(Duration::from_secs(1)), Some("1"), Some("1000"), "1s"),
        (
            Some(Duration::from_millis(1500)),
            Some("2"),
            Some("1500"),
            "1.5s",
        ),
        (
            Some(Duration::from_mins(6)),
            Some("360"),
            Some("360000"),
            "6m0s",
        ),
        (
            Some(Duration::from_millis(86_400_020)),
            Some("86401"),
            Some("86400020"),
            "24h0m0.02s",
        ),
        (None, None, None, "1s"),
    ] {
        let reply = error(&ModelError::RateLimit { retry_after });
        let header = |name| reply.headers.get(name).map(|v| v.to_str().expect("ASCII"));
        assert_eq!(header("retry-after"), seconds);
        assert_eq!(header("retry-after-ms"), millis);
        assert_eq!(header("x-ratelimit-reset-requests"), Some(reset));
        assert!(String::from_utf8_lossy(&reply.body).contains(&format!("in {reset}.")));
    }
}

#[test]
fn every_error_has_its_status_and_is_json() {
    for (model_error, status, kind) in [
        (ModelError::RateLimit { retry_after: None }, 429, "requests"),
        (ModelError::ServerError { status: 500 }, 500, "server_error"),
        (
            ModelError::ServerError { status: 502 },
            502,
            "cf_bad_gateway",
        ),
        (ModelError::ServerError { status: 503 }, 503, "server_error"),
        (
            ModelError::ServerError { status: 504 },
            504,
            "cf_gateway_timeout",
        ),
        (ModelError::ServerError { status: 529 }, 529, "server_error"),
        (ModelError::Overloaded, 503, "server_error"),
    ] {
        let reply = error(&model_error);
        assert_eq!(
            reply.status,
            StatusCode::from_u16(status).expect("a status")
        );
        let body: serde_json::Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!(body["error"]["type"], kind, "{model_error:?}");
        assert!(body["error"]["message"].is_string());
        assert!(body["error"]["param"].is_null());
    }
}

#[test]
fn ids_differ_from_draw_to_draw_and_never_within_one() {
    let id = |draw| {
        let context = ErrorContext { draw, model: None };
        let reply = OpenAiChat.error(&ModelError::Overloaded, &context);
        reply.headers["x-request-id"].clone()
    };
    assert_eq!(id(7), id(7));
    assert_ne!(id(7), id(8));
    assert_eq!(id(0).len(), "req_".len() + 32);
}
