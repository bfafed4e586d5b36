use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};

use super::*;
use crate::dialect::Part;
use crate::model::{DeltaKind, LimitScope, Role, Said};
use crate::reader::{ModelCall, Reader};
use crate::stream::{Frame, Splitter, Template};
use crate::{confirm, read_request, recognise};

const REQUEST: &str = include_str!("../../corpus/bedrock/request_tools.json");
const INVOKE: &str = include_str!("../../corpus/bedrock/request_invoke.json");
const TEXT: &str = include_str!("../../corpus/bedrock/text.json");
const TOOL_USE: &str = include_str!("../../corpus/bedrock/tool_use.json");
const TEXT_STREAM: &str = include_str!("../../corpus/bedrock/text.aws");
const TOOL_STREAM: &str = include_str!("../../corpus/bedrock/tool_use.aws");
const BROKEN_STREAM: &str = include_str!("../../corpus/bedrock/broken.aws");
const NOVA_STREAM: &str = include_str!("../../corpus/bedrock/nova.aws-chunks");
const ANTHROPIC_STREAM: &str = include_str!("../../corpus/bedrock/anthropic.aws-chunks");
const OPENAI_STREAM: &str = include_str!("../../corpus/bedrock/openai.aws-chunks");

const MODEL: &str = "eu.anthropic.claude-sonnet-4-6-v1:0";

fn target(operation: &str) -> String {
    format!("/model/eu.anthropic.claude-sonnet-4-6-v1%3A0/{operation}")
}

#[test]
fn a_call_is_known_by_the_end_of_its_path() {
    for (method, path, expected) in [
        (Method::POST, "/model/x/converse", true),
        (Method::POST, "/gateway/aws/model/x/converse-stream", true),
        (Method::POST, "/model/x%3A0/invoke", true),
        (
            Method::POST,
            "/model/x/invoke-with-response-stream?a=b",
            true,
        ),
        (
            Method::POST,
            "/model/arn:aws:bedrock:eu-west-1:1:inference-profile/x/converse",
            true,
        ),
        (Method::GET, "/model/x/converse", false),
        (Method::POST, "/model//converse", false),
        (Method::POST, "/model/converse", false),
        (Method::POST, "/models/x/invoke", false),
        (Method::POST, "/model/x/count-tokens", false),
        (Method::POST, "/model/x/converse/y", false),
    ] {
        let found = recognise(&method, Target::new(path)).map(Dialect::name);
        assert_eq!(found == Some("bedrock"), expected, "{method} {path}");
    }
    let confirmed = |body: &str| {
        let path = target("invoke");
        confirm(&Method::POST, Target::new(&path), body.as_bytes()).map(Dialect::name)
    };
    assert_eq!(confirmed("{\"inputText\":\"hi\"}"), Some("bedrock"));
    assert_eq!(confirmed("[]"), None);
}

#[test]
fn model_and_stream_stand_in_the_path() {
    for (operation, stream, usage_in_stream) in [
        ("converse", false, false),
        ("converse-stream", true, true),
        ("invoke", false, false),
        ("invoke-with-response-stream", true, false),
    ] {
        let path = target(operation);
        let expected = ModelRequest {
            model: Some(MODEL.to_owned()),
            stream,
            usage_in_stream,
            choices: 1,
            messages: 3,
            tools: vec!["weather".to_owned()],
        };
        let read = read_request(&Bedrock, Target::new(&path), REQUEST.as_bytes());
        assert_eq!(read, Some(expected), "{operation}");
    }
    let path = target("invoke");
    let read = read_request(&Bedrock, Target::new(&path), INVOKE.as_bytes()).expect("an object");
    assert_eq!((read.model.as_deref(), read.messages), (Some(MODEL), 2));
}

#[test]
fn an_id_in_a_path_is_decoded() {
    for (written, expected) in [
        ("a.b-v1%3A0", "a.b-v1:0"),
        ("arn%3Aaws%3Abedrock%3A%3Ax%2fy", "arn:aws:bedrock::x/y"),
        ("100%", "100%"),
        ("%zz%4", "%zz%4"),
        ("%C3%A4", "ä"),
        ("%FF", "%FF"),
    ] {
        assert_eq!(request::decoded(written), expected);
    }
}

#[test]
fn a_conversation_is_read_with_its_places() {
    let document = Document::parse(REQUEST.as_bytes()).expect("JSON");
    let conversation = Bedrock.conversation(&document);
    let raw = |said: &[Said<'_>]| -> Vec<&str> {
        said.iter()
            .map(|said| document.value(said.place).raw())
            .collect()
    };
    assert_eq!(raw(&conversation.system), ["\"You are a harbour master.\""]);
    let roles: Vec<Role> = conversation.messages.iter().map(|m| m.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
    assert!(conversation.messages[1].texts.is_empty());
    assert_eq!(raw(&conversation.messages[2].texts), ["\"Be brief.\""]);
    let [result] = &conversation.tool_results[..] else {
        panic!("{:?}", conversation.tool_results);
    };
    assert_eq!(result.tool.as_deref(), Some("weather"));
    assert_eq!(
        result.call.as_deref(),
        Some("tooluse_kZJMlvQmRJ6eAyJE5GIl7Q")
    );
    assert_eq!(
        (result.message, raw(&result.texts)),
        (2, vec!["\"7 °C, rain\""])
    );
}

#[test]
fn the_answers_form_follows_from_the_operation() {
    let aws = "application/vnd.amazon.eventstream";
    for (operation, media_type, expected) in [
        ("converse", "application/json", Some(AnswerForm::Json)),
        (
            "converse-stream",
            aws,
            Some(AnswerForm::Stream(Framing::AwsEvents)),
        ),
        (
            "invoke-with-response-stream",
            aws,
            Some(AnswerForm::Stream(Framing::AwsChunks)),
        ),
        (
            "invoke-with-response-stream",
            "application/json",
            Some(AnswerForm::Json),
        ),
        ("invoke", "text/html", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(media_type));
        let path = target(operation);
        let form = Bedrock.form(Target::new(&path), None, &headers);
        assert_eq!(form, expected, "{operation}");
    }
}

/// `name {…}` or `!name {…}` a line, or events without names.
fn stream(framing: Framing, lines: &str) -> Vec<u8> {
    let event = |line: &str| match (framing, line.split_once(' ')) {
        (Framing::AwsEvents, Some((name, data))) => match name.strip_prefix('!') {
            Some(name) => Made::exception(name.to_owned(), data),
            None => Made::event(name.to_owned(), data),
        },
        _ => Made::data(line),
    };
    let frames = lines
        .lines()
        .map(|line| Template::Fresh(framing).frame(&event(line)));
    frames.flat_map(|frame| frame.to_vec()).collect()
}

fn read(form: AnswerForm, answer: &[u8]) -> ModelCall {
    let path = target("converse");
    let mut reader = Reader::new(&Bedrock, Target::new(&path), Some(b"{}"));
    reader.head(Some(form));
    answer.chunks(7).for_each(|chunk| reader.push(chunk));
    reader.finish()
}

fn call(tokens: (u64, u64), finish: Finish) -> ModelCall {
    ModelCall {
        model: Some(MODEL.to_owned()),
        input_tokens: Some(tokens.0),
        output_tokens: Some(tokens.1),
        finish: Some(finish),
        ..ModelCall::default()
    }
}

#[test]
fn whole_answers_are_read_into_neutral_words() {
    let read = |answer: &str| read(AnswerForm::Json, answer.as_bytes());
    assert_eq!(read(TEXT), call((1045, 9), Finish::Done));
    let expected = ModelCall {
        tool_calls: vec!["weather".to_owned()],
        ..call((417, 88), Finish::Tool)
    };
    assert_eq!(read(TOOL_USE), expected);
    let error = read(include_str!("../../corpus/bedrock/throttled.json")).error;
    assert!(error.expect("one").starts_with("Too many requests"));
    let vendor = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"length"}]}"#;
    assert_eq!(read(vendor).finish, Some(Finish::Length));
}

#[test]
fn streams_are_read_into_neutral_words() {
    let own = |lines| {
        read(
            AnswerForm::Stream(Framing::AwsEvents),
            &stream(Framing::AwsEvents, lines),
        )
    };
    let inside = |lines| {
        read(
            AnswerForm::Stream(Framing::AwsChunks),
            &stream(Framing::AwsChunks, lines),
        )
    };
    assert_eq!(own(TEXT_STREAM), call((21, 9), Finish::Done));
    assert_eq!(inside(NOVA_STREAM), call((6, 7), Finish::Done));
    assert_eq!(inside(OPENAI_STREAM).finish, Some(Finish::Done));
    assert_eq!(inside(ANTHROPIC_STREAM), call((12, 8), Finish::Done));
    let tools = own(TOOL_STREAM);
    assert_eq!(
        (tools.tool_calls, tools.finish),
        (vec!["weather".to_owned()], Some(Finish::Tool))
    );
    let broken = own(BROKEN_STREAM);
    assert_eq!(
        broken.error.as_deref(),
        Some("The model produced no further output.")
    );
}

#[test]
fn pieces_are_found_where_they_stand() {
    let document = Document::parse(TOOL_USE.as_bytes()).expect("JSON");
    let reading = Bedrock.read_answer(&document);
    let pieces: Vec<(DeltaKind, u64, bool, &str)> = reading
        .deltas
        .iter()
        .map(|delta| {
            (
                delta.kind,
                delta.part,
                delta.signed,
                document.value(delta.place).raw(),
            )
        })
        .collect();
    let expected = [
        (
            DeltaKind::Reasoning,
            0,
            true,
            "\"The user wants the weather.\"",
        ),
        (DeltaKind::Signature, 0, true, "\"EqoBCkgIARABGAIiQL0v\""),
        (DeltaKind::Text, 1, false, "\"Let me look.\""),
        (
            DeltaKind::ToolId,
            2,
            false,
            "\"tooluse_kZJMlvQmRJ6eAyJE5GIl7Q\"",
        ),
        (DeltaKind::ToolName, 2, false, "\"weather\""),
        (
            DeltaKind::ToolArguments,
            2,
            false,
            r#"{"city":"Kiel","days":2}"#,
        ),
    ];
    assert_eq!(pieces, expected);
}

#[test]
fn a_reason_to_stop_keeps_its_meaning_there_and_back() {
    for (finish, word, back) in [
        (Finish::Done, "end_turn", Finish::Done),
        (Finish::Length, "max_tokens", Finish::Length),
        (Finish::Tool, "tool_use", Finish::Tool),
        (Finish::Filtered, "content_filtered", Finish::Filtered),
        (Finish::Refused, "end_turn", Finish::Done),
        (
            Finish::Context,
            "model_context_window_exceeded",
            Finish::Context,
        ),
        (Finish::BadTool, "malformed_tool_use", Finish::BadTool),
        (
            Finish::Foreign("malformed_model_output".to_owned()),
            "malformed_model_output",
            Finish::Foreign("malformed_model_output".to_owned()),
        ),
    ] {
        let document = Document::parse(TEXT.as_bytes()).expect("JSON");
        let finished = Bedrock.read_answer(&document).finishes.remove(0);
        let mut edits = Edits::new(&document);
        Bedrock.put_finish(&mut edits, &document, &finished, Some(&finish));
        let edited = edits.apply();
        let expected = TEXT.replace(
            "\"stopReason\":\"end_turn\"",
            &format!("\"stopReason\":\"{word}\""),
        );
        assert_eq!(String::from_utf8_lossy(&edited), expected);
        let document = Document::parse(&edited).expect("JSON");
        assert_eq!(Bedrock.read_answer(&document).finishes[0].finish, back);
    }
}

/// The frames of a stream that `lines` describe.
fn frames(framing: Framing, lines: &str) -> Vec<Frame> {
    Splitter::new(framing, 1 << 20).push(&stream(framing, lines))
}

/// What is made of an event of a stream, laid out like it and read back.
fn made(framing: Framing, line: &str, by: impl Fn(Event<'_>) -> Vec<Made>) -> Vec<String> {
    let frame = &frames(framing, line)[0];
    let data = frame.data().expect("data");
    let document = Document::parse(&data).expect("JSON");
    let bytes: Vec<u8> = by(Event::of(frame, &document))
        .iter()
        .flat_map(|event| Template::from(frame).frame(event).to_vec())
        .collect();
    let said = |frame: &Frame| {
        let data = String::from_utf8(frame.data().expect("data").into_owned()).expect("UTF-8");
        frame
            .name()
            .map_or_else(|| data.clone(), |name| format!("{name} {data}"))
    };
    let frames = Splitter::new(framing, 1 << 20).push(&bytes);
    frames.iter().map(said).collect()
}

fn end(kept: bool) -> EndOfChoice<'static> {
    EndOfChoice {
        choice: 0,
        finish: &Finish::Length,
        tokens: 1,
        instead: None,
        kept,
    }
}

#[test]
fn the_end_of_a_choice_closes_the_block_that_is_open() {
    let ended = |line: &str, kept| {
        made(Framing::AwsEvents, line, |event| {
            Bedrock.finish_events(event, &end(kept))
        })
    };
    let piece = r#"contentBlockDelta {"contentBlockIndex":1,"delta":{"text":"a"},"p":"abc"}"#;
    let closed = [
        r#"contentBlockStop {"contentBlockIndex":1,"p":"abc"}"#,
        r#"messageStop {"stopReason":"max_tokens","p":"abc"}"#,
    ];
    assert_eq!(ended(piece, true), closed);
    // A block of text has no start: without a piece of it there is nothing to close.
    assert_eq!(ended(piece, false), closed[1..]);
    let start = r#"contentBlockStart {"contentBlockIndex":1,"start":{"toolUse":{"name":"x"}}}"#;
    assert_eq!(ended(start, true).len(), 2);
    assert_eq!(
        ended(start, false),
        [r#"messageStop {"stopReason":"max_tokens"}"#]
    );
    assert!(ended(r#"metadata {"usage":{}}"#, true).is_empty());
    let exception = made(
        Framing::AwsEvents,
        r#"!throttlingException {"message":"x"}"#,
        |event| Bedrock.finish_events(event, &end(true)),
    );
    assert!(exception.is_empty());
}

#[test]
fn the_end_of_a_vendors_choice_is_in_the_vendors_words() {
    let ended = |line: &str| {
        made(Framing::AwsChunks, line, |event| {
            Bedrock.finish_events(event, &end(true))
        })
    };
    assert_eq!(
        ended(r#"{"contentBlockDelta":{"delta":{"text":"a"},"contentBlockIndex":0}}"#),
        [
            r#"{"contentBlockStop":{"contentBlockIndex":0}}"#,
            r#"{"messageStop":{"stopReason":"max_tokens"}}"#,
        ]
    );
    assert_eq!(
        ended(r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null,"index":0}]}"#),
        [r#"{"choices":[{"delta":{},"finish_reason":"length","index":0}]}"#]
    );
    let names = |line: &str| -> Vec<String> {
        let events = ended(line);
        let name = |event: &String| event.split('"').nth(3).map(str::to_owned);
        events.iter().filter_map(name).collect()
    };
    assert_eq!(
        names(ANTHROPIC_STREAM.lines().nth(2).expect("a piece")),
        ["content_block_stop", "message_delta", "message_stop"]
    );
    assert!(ended(r#"{"outputText":"a"}"#).is_empty());
}

#[test]
fn other_words_are_said_in_a_stream_and_in_a_whole_answer() {
    let said = |line: &str| {
        made(Framing::AwsEvents, line, |event| {
            Bedrock.say_events(event, 0, Saying::Refusal("no"))
        })
    };
    assert_eq!(
        said(r#"messageStop {"stopReason":"end_turn"}"#),
        [r#"contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"no"}}"#]
    );
    assert!(said(r#"metadata {"usage":{}}"#).is_empty());
    let document = Document::parse(TOOL_USE.as_bytes()).expect("JSON");
    for (saying, content) in [
        (Saying::Text("no"), r#"},{"text":"no"}]"#),
        (Saying::Text(""), r#""content":[{"reasoningContent":"#),
    ] {
        let thought = r#"[{"reasoningContent":{"reasoningText":{"signature":"EqoBCkgIARABGAIiQL0v","text":"The user wants the weather."}}}"#;
        let mut edits = Edits::new(&document);
        assert!(Bedrock.say(&mut edits, &document, 0, saying, &Finish::Done));
        let edited = String::from_utf8(edits.apply()).expect("UTF-8");
        assert!(edited.contains(thought), "{edited}");
        assert!(edited.contains(content), "{edited}");
        assert!(edited.contains(r#""stopReason":"end_turn""#), "{edited}");
    }
    let mut edits = Edits::new(&document);
    assert!(!Bedrock.say(&mut edits, &document, 1, Saying::Text(""), &Finish::Done));
    assert!(edits.is_empty());
}

#[test]
fn a_whole_answer_says_what_a_stream_said() {
    let frames = frames(Framing::AwsEvents, TOOL_STREAM);
    let (first, last) = (&frames[0], &frames[frames.len() - 1]);
    let (first_data, last_data) = (first.data().expect("data"), last.data().expect("data"));
    let first_document = Document::parse(&first_data).expect("JSON");
    let last_document = Document::parse(&last_data).expect("JSON");
    let part = |kind, text: &str| Part {
        choice: 0,
        part: 0,
        kind,
        text: text.to_owned(),
        call: None,
        signature: None,
    };
    let transcript = Transcript {
        first: Event::of(first, &first_document),
        last: Event::of(last, &last_document),
        parts: vec![
            Part {
                signature: Some("EqoBCkgIARABGAIiQL0v".to_owned()),
                ..part(DeltaKind::Reasoning, "The user wants the weather.")
            },
            part(DeltaKind::Text, "Let me look."),
            Part {
                call: Some((
                    "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q".to_owned(),
                    "weather".to_owned(),
                )),
                ..part(DeltaKind::ToolArguments, r#"{"city":"Kiel","days":2}"#)
            },
        ],
        finishes: vec![(0, Finish::Tool)],
        tokens: (Some(417), Some(88)),
    };
    let whole = Bedrock.whole_answer(&transcript).expect("an answer");
    assert_eq!(whole, TOOL_USE.trim_end().replace("1180", "1302"));
    let mut broken = transcript;
    broken.parts[2].text = "{\"city\"".to_owned();
    assert_eq!(Bedrock.whole_answer(&broken), None);
}

fn error(error: &ModelError) -> WireReply {
    let context = ErrorContext {
        draw: 42,
        account: 42,
        credential: None,
        ..ErrorContext::default()
    };
    Bedrock.error(error, &context)
}

#[test]
fn every_error_reads_like_bedrocks() {
    let wait = Some(Duration::from_millis(1500));
    let errors = [
        ModelError::RateLimit {
            scope: LimitScope::Requests,
            retry_after: wait,
            figures: None,
        },
        ModelError::RateLimit {
            scope: LimitScope::Tokens,
            retry_after: None,
            figures: None,
        },
        ModelError::QuotaExhausted,
        ModelError::ContextLength,
        ModelError::ContentFilter,
        ModelError::Auth,
        ModelError::ModelNotFound,
        ModelError::Timeout,
        ModelError::ServerError { status: 500 },
        ModelError::ServerError { status: 503 },
        ModelError::Overloaded,
    ];
    let written = errors.map(|model_error| {
        let reply = error(&model_error);
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}\n", value.to_str().expect("ASCII"))
        };
        let headers: String = reply.headers.iter().map(header).collect();
        let body = String::from_utf8_lossy(&reply.body);
        format!("{model_error:?}\n{}\n{headers}\n{body}\n", reply.status)
    });
    insta::assert_snapshot!(written.join("\n"));
}

#[test]
fn an_error_in_a_stream_is_an_exception() {
    for (error, converse, invoke) in [
        (
            ModelError::Overloaded,
            Some("serviceUnavailableException"),
            None,
        ),
        (
            ModelError::ServerError { status: 500 },
            Some("internalServerException"),
            None,
        ),
        (ModelError::ContextLength, Some("validationException"), None),
        (
            ModelError::QuotaExhausted,
            Some("throttlingException"),
            None,
        ),
        (
            ModelError::Timeout,
            Some("modelStreamErrorException"),
            Some("modelTimeoutException"),
        ),
        (ModelError::Auth, None, None),
        (ModelError::ModelNotFound, None, None),
    ] {
        let name = |operation: &str| {
            let path = target(operation);
            let context = ErrorContext {
                target: Target::new(&path),
                ..ErrorContext::default()
            };
            let made = Bedrock.error_event(&error, &context, None)?;
            assert!(made.exception);
            let document = Document::parse(&made.data).expect("JSON");
            let reading = Bedrock.read_event(Event::named(made.name.as_deref(), &document));
            assert!(reading.error.is_some(), "{error:?}");
            made.name
        };
        assert_eq!(name("converse-stream").as_deref(), converse, "{error:?}");
        let there = name("invoke-with-response-stream");
        assert_eq!(there.as_deref(), invoke.or(converse), "{error:?}");
    }
}

#[test]
fn any_status_can_be_answered() {
    for status in [500, 502, 529, 599] {
        let reply = error(&ModelError::ServerError { status });
        assert_eq!(
            reply.status,
            StatusCode::from_u16(status).expect("a status")
        );
    }
}
