use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};

use super::*;
use crate::dialect::{AnswerForm, Credential};
use crate::model::{Delta, DeltaKind, LimitFigures, LimitScope, Role, Said, Usage};
use crate::read_request;
use crate::reader::{ModelCall, Reader};
use crate::stream::{Frame, Splitter, Template};

const SSE: AnswerForm = AnswerForm::Stream(Framing::Sse);

/// Answers shaped as `api.openai.com` and compatible servers give them.
const ANSWERS: &[(&str, &str)] = &[
    ("text", include_str!("../../corpus/openai-chat/text.json")),
    (
        "tool calls",
        include_str!("../../corpus/openai-chat/tool_calls.json"),
    ),
    (
        "refusal",
        include_str!("../../corpus/openai-chat/refusal.json"),
    ),
    (
        "two choices",
        include_str!("../../corpus/openai-chat/two_choices.json"),
    ),
];
const STREAMS: &[(&str, &str)] = &[
    ("text", include_str!("../../corpus/openai-chat/text.sse")),
    (
        "tool calls",
        include_str!("../../corpus/openai-chat/tool_calls.sse"),
    ),
    (
        "openrouter",
        include_str!("../../corpus/openai-chat/openrouter.sse"),
    ),
    ("error", include_str!("../../corpus/openai-chat/error.sse")),
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
    let expected = ModelRequest {
        model: Some("gpt-5-mini".to_owned()),
        stream: true,
        usage_in_stream: true,
        choices: 2,
        messages: 4,
        tools: vec!["weather".to_owned(), "shell".to_owned()],
    };
    assert_eq!(asked(REQUEST), Some(expected));
    assert!(confirmed(REQUEST));
}

fn asked(body: &str) -> Option<ModelRequest> {
    read_request(&PLAIN, Target::default(), body.as_bytes())
}

fn confirmed(body: &str) -> bool {
    let document = Document::parse_prefix(body.as_bytes());
    document.is_some_and(|document| PLAIN.confirms(document.root()))
}

#[test]
fn a_conversation_is_read_with_its_places() {
    let document = Document::parse(REQUEST.as_bytes()).expect("JSON");
    let conversation = PLAIN.conversation(&document);
    let roles: Vec<Role> = conversation.messages.iter().map(|m| m.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool]);
    let texts = |said: &[Said<'_>]| -> Vec<String> {
        said.iter()
            .map(|said| document.value(said.place).raw().to_owned())
            .collect()
    };
    assert_eq!(texts(&conversation.messages[0].texts), ["\"weather?\""]);
    assert!(texts(&conversation.messages[2].texts).is_empty());
    let results: Vec<_> = conversation
        .tool_results
        .iter()
        .map(|result| {
            (
                result.call.as_deref(),
                result.tool.as_deref(),
                result.message,
                texts(&result.texts),
            )
        })
        .collect();
    let expected = [
        (
            Some("call_1"),
            Some("weather"),
            2,
            vec!["\"sunny\"".to_owned()],
        ),
        (None, None, 3, vec!["\"no id\"".to_owned()]),
    ];
    assert_eq!(results, expected);
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
        assert_eq!(asked(body), expected, "{body}");
        assert!(!confirmed(body), "{body}");
    }
}

/// What a reader makes of an answer.
fn read(form: AnswerForm, request: Option<&str>, answer: &str) -> ModelCall {
    let mut reader = Reader::new(&PLAIN, Target::default(), request.map(str::as_bytes));
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
        assert_eq!(read(SSE, None, stream), streamed(expected), "{name}");
    }
}

#[test]
fn the_journal_names_the_model_that_was_asked_for() {
    let read = read(SSE, Some(REQUEST), STREAMS[0].1);
    assert_eq!(
        (read.model.as_deref(), read.stream),
        (Some("gpt-5-mini"), true)
    );
}

#[test]
fn pieces_are_found_where_they_stand() {
    let answer = ANSWERS[1].1;
    let document = Document::parse(answer.as_bytes()).expect("JSON");
    let reading = PLAIN.read_answer(&document);
    let pieces: Vec<(DeltaKind, u64, &str)> = reading
        .deltas
        .iter()
        .map(|delta: &Delta<'_>| (delta.kind, delta.part, document.value(delta.place).raw()))
        .collect();
    let expected = [
        (DeltaKind::ToolId, 0, r#""call_p2Jt9XnQ""#),
        (DeltaKind::ToolName, 0, r#""weather""#),
        (DeltaKind::ToolArguments, 0, r#""{\"city\":\"Paris\"}""#),
        (DeltaKind::ToolId, 1, r#""call_Zc81LmVw""#),
        (DeltaKind::ToolName, 1, r#""time""#),
        (DeltaKind::ToolArguments, 1, r#""{\"zone\":\"CET\"}""#),
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
        let event = r#"{"choices":[{"delta":{},"finish_reason":"x"}]}"#;
        let document = Document::parse(event.as_bytes()).expect("JSON");
        let finished = PLAIN
            .read_event(Event::named(None, &document))
            .finishes
            .remove(0);
        let mut edits = Edits::new(&document);
        PLAIN.put_finish(&mut edits, &document, &finished, Some(&finish));
        let edited = edits.apply();
        let expected = event.replace("\"x\"", word);
        assert_eq!(String::from_utf8_lossy(&edited), expected);
        let document = Document::parse(&edited).expect("JSON");
        let reading = PLAIN.read_event(Event::named(None, &document));
        assert_eq!(reading.finishes[0].finish, back);
    }
}

/// The frames of a stream.
fn frames(stream: &str) -> Vec<Frame> {
    let mut splitter = Splitter::new(Framing::Sse, 1 << 20);
    let mut frames = splitter.push(stream.as_bytes());
    frames.extend(splitter.finish());
    frames
}

/// What is made of the first event of a stream, framed like it.
fn made(stream: &str, by: impl Fn(Event<'_>) -> Vec<Made>) -> String {
    let frame = &frames(stream)[0];
    let data = frame.data().expect("data");
    let document = Document::parse(&data).expect("JSON");
    let events = by(Event::of(frame, &document));
    let bytes = events
        .iter()
        .flat_map(|event| Template::from(frame).frame(event).to_vec());
    String::from_utf8(bytes.collect()).expect("UTF-8")
}

const TWO_CHOICES: &str = concat!(
    "id: 7\r\n",
    r#"data: {"id":"c","new":[1],"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null},"#,
    r#"{"index":1,"delta":{"role":"assistant","content":"b"},"logprobs":{"content":[]},"finish_reason":null,"x":2}],"#,
    r#""usage":{"n":1},"obfuscation":"x"}"#,
    "\r\n\r\n"
);

#[test]
fn the_end_of_a_choice_is_made_after_its_last_event() {
    let end = |choice| {
        made(TWO_CHOICES, |event| {
            let end = EndOfChoice {
                choice,
                finish: &Finish::Length,
                tokens: 1,
                instead: None,
                kept: true,
            };
            PLAIN.finish_events(event, &end)
        })
    };
    let expected = "id: 7\r\ndata: {\"id\":\"c\",\"new\":[1],\"choices\":[{\"index\":1,\"delta\":{},\
                    \"logprobs\":null,\"finish_reason\":\"length\",\"x\":2}],\"usage\":null,\
                    \"obfuscation\":\"x\"}\r\n\r\n";
    assert_eq!(end(1), expected);
    assert_eq!(end(2), "");
    let mark = made(TWO_CHOICES, |_| PLAIN.end(Framing::Sse));
    assert_eq!(mark, "id: 7\r\ndata: [DONE]\r\n\r\n");
}

#[test]
fn the_end_of_a_choice_names_its_reason_even_after_events_that_do_not() {
    let stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let end = EndOfChoice {
        choice: 0,
        finish: &Finish::Length,
        tokens: 1,
        instead: None,
        kept: true,
    };
    let expected = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    assert_eq!(
        made(stream, |event| PLAIN.finish_events(event, &end)),
        expected
    );
}

#[test]
fn other_words_are_said_in_a_stream_after_the_event_they_replace() {
    for (choice, saying, delta) in [
        (0, Saying::Text("no"), r#"{"content":"no"}"#),
        (
            1,
            Saying::Text("no"),
            r#"{"role":"assistant","content":"no"}"#,
        ),
        (
            1,
            Saying::Refusal("no"),
            r#"{"role":"assistant","content":null,"refusal":"no"}"#,
        ),
    ] {
        let said = made(TWO_CHOICES, |event| PLAIN.say_events(event, choice, saying));
        assert!(said.contains(&format!("\"delta\":{delta}")), "{said}");
        assert!(said.contains("\"finish_reason\":null"), "{said}");
    }
    let none = made(TWO_CHOICES, |event| {
        PLAIN.say_events(event, 9, Saying::Text(""))
    });
    assert_eq!(none, "");
}

#[test]
fn other_words_are_said_in_a_whole_answer() {
    for (name, answer) in ANSWERS {
        let document = Document::parse(answer.as_bytes()).expect("JSON");
        for (saying, content, refusal, finish) in [
            (Saying::Text("no"), "\"no\"", "null", Finish::Done),
            (Saying::Refusal("no"), "null", "\"no\"", Finish::Refused),
        ] {
            let mut edits = Edits::new(&document);
            assert!(
                PLAIN.say(&mut edits, &document, 0, saying, &finish),
                "{name}"
            );
            let edited = edits.apply();
            let edited = Document::parse(&edited).expect("JSON");
            let choice = edited
                .root()
                .get("choices")
                .and_then(|c| c.items().next())
                .expect("one");
            let message = choice.get("message").expect("one");
            assert_eq!(
                message.get("content").map(Value::raw),
                Some(content),
                "{name}"
            );
            assert!(
                message
                    .get("refusal")
                    .is_none_or(|said| said.raw() == refusal),
                "{name}"
            );
            assert!(message.get("tool_calls").is_none(), "{name}");
            let reason = choice.get("finish_reason").map(Value::raw);
            assert_eq!(reason, Some("\"stop\""), "{name}");
            let reading = PLAIN.read_answer(&edited);
            let first = reading
                .finishes
                .iter()
                .find(|end| end.choice == 0)
                .expect("ended");
            assert_eq!(first.finish, finish, "{name}");
        }
        let mut edits = Edits::new(&document);
        assert!(!PLAIN.say(&mut edits, &document, 9, Saying::Text(""), &Finish::Done));
        assert!(edits.is_empty());
    }
}

fn error(error: &ModelError) -> WireReply {
    PLAIN.error(
        error,
        &ErrorContext {
            draw: 42,
            account: 42,
            credential: None,
            model: Some("gpt-5-mini"),
            ..ErrorContext::default()
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
    insta::assert_snapshot!(written(&error(&rate_limit(retry_after))));
}

fn rate_limit(retry_after: Option<Duration>) -> ModelError {
    ModelError::RateLimit {
        scope: LimitScope::Requests,
        retry_after,
        figures: None,
    }
}

/// Limits that are really kept: one that a wait helps with, and one that it does not.
fn real_limits() -> [ModelError; 2] {
    let limit = |retry_after, requested| ModelError::RateLimit {
        scope: LimitScope::Tokens,
        retry_after,
        figures: Some(LimitFigures {
            per_minute: 600,
            used: 350,
            requested,
        }),
    };
    [limit(Some(Duration::from_secs(5)), 300), limit(None, 601)]
}

#[test]
fn every_other_error_reads_like_openais() {
    let tokens = ModelError::RateLimit {
        scope: LimitScope::Tokens,
        retry_after: Some(Duration::from_millis(12)),
        figures: None,
    };
    let [kept, too_large] = real_limits();
    let written = [
        tokens,
        kept,
        too_large,
        ModelError::QuotaExhausted,
        ModelError::ContextLength,
        ModelError::ContentFilter,
        ModelError::Auth,
        ModelError::ModelNotFound,
        ModelError::Timeout,
    ]
    .map(|model_error| format!("{model_error:?}\n{}", written(&error(&model_error))));
    insta::assert_snapshot!(written.join("\n"));
}

#[test]
fn an_error_in_a_stream_is_an_event_of_its_own() {
    for (error, words) in [
        (
            ModelError::ServerError { status: 500 },
            r#""type":"server_error","param":null,"code":null"#,
        ),
        (
            rate_limit(None),
            r#""type":"requests","param":null,"code":"rate_limit_exceeded""#,
        ),
    ] {
        let context = ErrorContext::default();
        let event = PLAIN.error_event(&error, &context, None).expect("one");
        let document = Document::parse(&event.data).expect("JSON");
        assert!(document.text().contains(words), "{}", document.text());
        assert!(
            PLAIN
                .read_event(Event::named(None, &document))
                .error
                .is_some()
        );
    }
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
        let reply = error(&rate_limit(retry_after));
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
        (rate_limit(None), 429, "requests"),
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
        let context = ErrorContext {
            draw,
            account: draw,
            credential: None,
            ..ErrorContext::default()
        };
        let reply = PLAIN.error(&ModelError::Overloaded, &context);
        reply.headers["x-request-id"].clone()
    };
    assert_eq!(id(7), id(7));
    assert_ne!(id(7), id(8));
    assert_eq!(id(0).len(), "req_".len() + 32);
}

/// `OpenRouter`'s, Azure's, Groq's and Mistral's endpoints, and how OpenAI's differ from them.
#[test]
fn a_provider_is_told_by_its_path_and_model() {
    for (path, model, expected) in [
        ("/v1/chat/completions", "gpt-5-mini", None),
        (
            "/openai/deployments/x/chat/completions?api-version=2024-10-21",
            "x",
            Some(Variation::Azure),
        ),
        (
            "/v1/chat/completions?api-version=1",
            "x",
            Some(Variation::Azure),
        ),
        (
            "/openai/v1/chat/completions",
            "gpt-5-mini",
            Some(Variation::Azure),
        ),
        (
            "/openai/v1/chat/completions",
            "openai/gpt-oss-20b",
            Some(Variation::Groq),
        ),
        (
            "/openai/v1/chat/completions",
            "llama-3.3-70b-versatile",
            Some(Variation::Groq),
        ),
        (
            "/api/v1/chat/completions",
            "openai/gpt-5-mini",
            Some(Variation::OpenRouter),
        ),
        ("/api/v1/chat/completions", "local", None),
        ("/api/chat/completions", "a/b", None),
    ] {
        let found = Variation::of(Target::new(path), Some(model));
        assert_eq!(found, expected, "{path} {model}");
    }
}

#[test]
fn mistral_is_told_by_its_path_and_host_together() {
    let path = "/v1/chat/completions";
    for (path, host, expected) in [
        (path, "api.mistral.ai", Some(Variation::Mistral)),
        (path, "mistral.ai", Some(Variation::Mistral)),
        (path, "notmistral.ai", None),
        (path, "mistral.ai.example", None),
        ("/gateway/v1/chat/completions", "api.mistral.ai", None),
        (path, "", None),
    ] {
        let found = Variation::of(Target::new(path).at(host), Some("mistral-small-latest"));
        assert_eq!(found, expected, "{host}{path}");
    }
}

#[test]
fn only_groq_rejects_bad_calls() {
    for (path, rejects) in [
        ("/openai/v1/chat/completions", true),
        ("/v1/chat/completions", false),
    ] {
        let context = ErrorContext {
            target: Target::new(path),
            model: Some("llama-3.3-70b-versatile"),
            ..ErrorContext::default()
        };
        assert_eq!(PLAIN.rejects_bad_calls(&context), rejects, "{path}");
    }
}

/// Every provider's errors, by the name that the config calls it.
#[test]
fn every_providers_errors_read_like_its_own() {
    let limit = |scope| ModelError::RateLimit {
        scope,
        retry_after: Some(Duration::from_millis(1500)),
        figures: None,
    };
    for (name, dialect) in VARIATIONS {
        let [kept, too_large] = real_limits();
        let errors = [
            limit(LimitScope::Requests),
            limit(LimitScope::Tokens),
            kept,
            too_large,
            ModelError::QuotaExhausted,
            ModelError::ContextLength,
            ModelError::ContentFilter,
            ModelError::Auth,
            ModelError::ModelNotFound,
            ModelError::Timeout,
            ModelError::ServerError { status: 500 },
            ModelError::ServerError { status: 502 },
            ModelError::Overloaded,
        ];
        let context = ErrorContext {
            draw: 42,
            account: 42,
            credential: None,
            model: Some("vendor/model"),
            ..ErrorContext::default()
        };
        let written = errors.map(|model_error| {
            let reply = dialect.error(&model_error, &context);
            let document = Document::parse(&reply.body).expect("JSON");
            assert!(dialect.read_answer(&document).error.is_some(), "{name}");
            format!("{model_error:?}\n{}", written(&reply))
        });
        insta::assert_snapshot!(name.replace('/', "_"), written.join("\n"));
    }
}

#[test]
fn every_provider_reports_an_error_in_a_stream_in_its_own_way() {
    let last = concat!(
        r#"{"id":"gen-1","provider":"Nebius","model":"meta/llama","object":"chat.completion.chunk","#,
        r#""created":7,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#
    );
    let last = Document::parse(last.as_bytes()).expect("JSON");
    let expected = [
        (
            None,
            r#"{"error":{"message":"The server had an error while processing your request. Sorry about that! You can retry your request, or contact us through an Azure"#,
        ),
        (
            Some("error"),
            r#"{"error":{"message":"Internal Server Error","type":"internal_server_error"}}"#,
        ),
        (
            None,
            r#"{"object":"error","message":"Internal server error","type":"server_error","param":null,"code":null,"raw_status_code":500}"#,
        ),
        (
            None,
            concat!(
                r#"{"id":"gen-1","provider":"Nebius","model":"meta/llama","#,
                r#""object":"chat.completion.chunk","created":7,"#,
                r#""error":{"code":500,"message":"Provider returned error"},"choices":[{"index":0,"#,
                r#""delta":{"content":""},"finish_reason":"error"}]}"#
            ),
        ),
    ];
    for ((name, dialect), (event, data)) in VARIATIONS.iter().zip(expected) {
        let error = ModelError::ServerError { status: 500 };
        let after = Event::named(None, &last);
        let made = dialect.error_event(&error, &ErrorContext::default(), Some(after));
        let made = made.expect("one");
        assert_eq!(made.name.as_deref(), event, "{name}");
        let text = String::from_utf8_lossy(&made.data);
        assert!(text.starts_with(data), "{name}: {text}");
        let document = Document::parse(&made.data).expect("JSON");
        let reading = dialect.read_event(Event::named(event, &document));
        assert!(reading.error.is_some(), "{name}: {text}");
    }
}

#[test]
fn what_providers_add_is_read_from_all_of_them() {
    let azure = include_str!("../../corpus/openai-chat/azure.sse");
    let groq = include_str!("../../corpus/openai-chat/groq.sse");
    let mistral = include_str!("../../corpus/openai-chat/mistral_thinking.json");
    assert_eq!(read(SSE, None, azure).finish, Some(Finish::Filtered));
    let groq = read(SSE, None, groq);
    assert_eq!((groq.input_tokens, groq.output_tokens), (Some(38), Some(4)));
    assert_eq!(
        read(AnswerForm::Json, None, mistral).finish,
        Some(Finish::Context)
    );
    let document = Document::parse(mistral.as_bytes()).expect("JSON");
    let reading = PLAIN.read_answer(&document);
    let said: Vec<(DeltaKind, &str)> = reading
        .deltas
        .iter()
        .map(|delta| (delta.kind, &*delta.text))
        .collect();
    let expected = [
        (DeltaKind::Reasoning, "Ships float."),
        (DeltaKind::Text, "They do not sink."),
    ];
    assert_eq!(said, expected);
}

/// What Azure answers to a chat with an error.
fn azures(error: &ModelError) -> WireReply {
    let target = Target::new("/openai/deployments/x/chat/completions?api-version=2024-10-21");
    PLAIN.error(
        error,
        &ErrorContext {
            draw: 7,
            account: 7,
            credential: None,
            target,
            ..ErrorContext::default()
        },
    )
}

#[test]
fn azure_says_what_is_left_of_its_limits() {
    let figures = LimitFigures {
        per_minute: 40,
        used: 39,
        requested: 2,
    };
    for (scope, figures, [requests, tokens]) in [
        (LimitScope::Requests, Some(figures), [Some("1"), None]),
        (LimitScope::Tokens, Some(figures), [None, Some("1")]),
        (LimitScope::Requests, None, [Some("0"), None]),
        (LimitScope::Tokens, None, [None, Some("0")]),
    ] {
        let reply = azures(&ModelError::RateLimit {
            scope,
            retry_after: Some(Duration::from_micros(1_425_500)),
            figures,
        });
        let header = |name: &str| reply.headers[name].to_str().expect("ASCII").to_owned();
        for (name, left) in [("requests", requests), ("tokens", tokens)] {
            let told = header(&format!("x-ratelimit-remaining-{name}"));
            assert!(told.parse::<u64>().is_ok(), "{told}");
            assert!(left.is_none_or(|left| left == told), "{name}: {told}");
        }
        assert_eq!(header("retry-after"), "2");
        assert_eq!(header("retry-after-ms"), "1426");
    }
}

#[test]
fn azure_fails_in_its_own_words() {
    for (error, status, words) in [
        (
            ModelError::ServerError { status: 500 },
            500,
            "Azure support request",
        ),
        (
            ModelError::ServerError { status: 503 },
            503,
            "Azure support request",
        ),
        (ModelError::Overloaded, 503, "temporarily unable"),
        (ModelError::QuotaExhausted, 429, "retry after 86400 seconds"),
    ] {
        let reply = azures(&error);
        assert_eq!(reply.status.as_u16(), status);
        let body = String::from_utf8_lossy(&reply.body);
        assert!(body.contains(words), "{body}");
        assert!(!body.contains("openai.com"), "{body}");
        assert!(serde_json::from_slice::<serde_json::Value>(&reply.body).is_ok());
    }
}

#[test]
fn groq_s_quota_says_when_to_come_back() {
    let context = ErrorContext {
        target: Target::new("/openai/v1/chat/completions"),
        model: Some("llama-3.3-70b-versatile"),
        ..ErrorContext::default()
    };
    let reply = PLAIN.error(&ModelError::QuotaExhausted, &context);
    assert_eq!(reply.headers["retry-after"], "600");
}

#[test]
fn a_wrong_key_is_shown_masked() {
    for (key, shown) in [
        ("sk-proj-0123456789abcdef", "sk-proj-************cdef."),
        ("sk-12345", "********."),
    ] {
        let context = ErrorContext {
            credential: Some(Credential::Bearer(key)),
            ..ErrorContext::default()
        };
        let reply = PLAIN.error(&ModelError::Auth, &context);
        let body = String::from_utf8_lossy(&reply.body);
        assert!(
            body.contains(&format!("provided: {shown} You can")),
            "{body}"
        );
        assert!(!reply.headers.contains_key("openai-organization"));
    }
}

#[test]
fn an_account_keeps_its_names_from_one_error_to_the_next() {
    let limit = ModelError::RateLimit {
        scope: LimitScope::Requests,
        retry_after: None,
        figures: None,
    };
    let [one, other] = [1, 2].map(|draw| {
        let context = ErrorContext {
            draw,
            account: 7,
            ..ErrorContext::default()
        };
        PLAIN.error(&limit, &context)
    });
    assert_eq!(
        one.headers["openai-organization"],
        other.headers["openai-organization"]
    );
    assert_ne!(one.headers["x-request-id"], other.headers["x-request-id"]);
}
