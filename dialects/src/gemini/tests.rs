use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};

use super::*;
use crate::dialect::Part;
use crate::model::{DeltaKind, LimitScope, Role, Said, Usage};
use crate::reader::{ModelCall, Reader};
use crate::stream::{Frame, Splitter, Template};
use crate::{read_request, recognise};

macro_rules! corpus {
    ($file:literal) => {
        include_str!(concat!("../../corpus/gemini/", $file))
    };
}

const GENERATE: &str = "/v1beta/models/gemini-3-flash-preview:generateContent";
const STREAM: &str = "/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse";
const LIST: &str = "/v1beta/models/gemini-3-flash-preview:streamGenerateContent";

const REQUEST: &str = corpus!("request_tools.json");
const MODEL: &str = "gemini-3-flash-preview";

#[test]
fn a_single_content_or_part_needs_no_list() {
    let body = r#"{"systemInstruction":{"parts":{"text":"Be brief."}},"contents":{"role":"user","parts":{"text":"Hi"}},"tools":{"functionDeclarations":{"name":"weather"}}}"#;
    let document = Document::parse(body.as_bytes()).expect("JSON");
    assert!(Gemini.confirms(document.root()));
    let conversation = Gemini.conversation(&document);
    assert_eq!(conversation.system[0].text, "Be brief.");
    assert_eq!(conversation.messages[0].texts[0].text, "Hi");
    let target = Target::new("/v1beta/models/gemini-pro:generateContent");
    let request = Gemini.request(target, document.root());
    assert_eq!(
        (request.messages, &*request.tools),
        (1, &["weather".to_owned()][..])
    );
}

#[test]
fn a_call_is_known_by_the_method_behind_its_model() {
    for (method, path, known) in [
        (Method::POST, GENERATE, true),
        (Method::POST, STREAM, true),
        (
            Method::POST,
            "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent",
            true,
        ),
        (
            Method::POST,
            "/gateway/v1/models/m:streamGenerateContent?key=1",
            true,
        ),
        (
            Method::POST,
            "/v1beta/tunedModels/mine:generateContent",
            true,
        ),
        (Method::GET, GENERATE, false),
        (Method::POST, "/v1beta/models/m:countTokens", false),
        (Method::POST, "/v1beta/models/:generateContent", false),
        (Method::POST, "/v1internal:generateContent", false),
        (Method::POST, "/v1beta/models/m", false),
        (Method::POST, "/v1/chat?to=/models/m:generateContent", false),
        (Method::POST, "", false),
    ] {
        let found = recognise(&method, Target::new(path)).map(Dialect::name);
        assert_eq!(found == Some("gemini"), known, "{method} {path}");
    }
}

fn asked(path: &str, body: &str) -> Option<ModelRequest> {
    read_request(&Gemini, Target::new(path), body.as_bytes())
}

fn confirmed(body: &str) -> bool {
    let document = Document::parse_prefix(body.as_bytes());
    document.is_some_and(|document| Gemini.confirms(document.root()))
}

#[test]
fn a_request_says_what_is_asked_for_in_path_and_body() {
    let expected = ModelRequest {
        model: Some(MODEL.to_owned()),
        stream: false,
        usage_in_stream: false,
        choices: 1,
        messages: 4,
        tools: vec!["weather".to_owned(), "time".to_owned()],
    };
    assert_eq!(asked(GENERATE, REQUEST), Some(expected.clone()));
    let streamed = ModelRequest {
        stream: true,
        ..expected
    };
    assert_eq!(asked(STREAM, REQUEST), Some(streamed));
    let snake = asked(GENERATE, corpus!("request_snake.json")).expect("a request");
    assert_eq!((snake.choices, snake.messages), (2, 3));
    assert_eq!(snake.tools, ["time"]);
}

#[test]
fn a_body_without_contents_is_none_of_its() {
    assert!(confirmed(REQUEST));
    for body in [
        "{}",
        r#"{"messages":[]}"#,
        r#"{"contents":"hi"}"#,
        r#"{"request":{"contents":[]}}"#,
        "[]",
    ] {
        assert!(!confirmed(body), "{body}");
    }
    let plain = ModelRequest {
        choices: 1,
        ..ModelRequest::default()
    };
    assert_eq!(asked("", "{}"), Some(plain));
    assert_eq!(asked(GENERATE, "[]"), None);
}

fn texts(said: &[Said<'_>]) -> Vec<String> {
    said.iter().map(|said| said.text.to_string()).collect()
}

#[test]
fn a_conversation_is_read_with_its_places() {
    let document = Document::parse(REQUEST.as_bytes()).expect("JSON");
    let conversation = Gemini.conversation(&document);
    assert_eq!(texts(&conversation.system), ["You are a travel agent."]);
    let messages: Vec<_> = conversation
        .messages
        .iter()
        .map(|message| (message.role, texts(&message.texts)))
        .collect();
    let said = |text: &str| vec![text.to_owned()];
    let expected = [
        (Role::User, said("What is the weather in Kiel?")),
        // Thoughts are not among its texts.
        (Role::Assistant, vec![]),
        (Role::Tool, vec![]),
        (Role::User, said("And in Bergen?")),
    ];
    assert_eq!(messages, expected);
    let [result] = &conversation.tool_results[..] else {
        panic!("{:?}", conversation.tool_results);
    };
    assert_eq!(
        (
            result.call.as_deref(),
            result.tool.as_deref(),
            result.message
        ),
        (Some("hk3w9v2q"), Some("weather"), 2)
    );
    assert_eq!(texts(&result.texts), ["sunny", "gale"]);
    let content = document.value(result.content);
    assert!(content.get("output").is_some(), "{}", content.raw());
}

#[test]
fn the_older_names_of_a_conversation_are_read_as_well() {
    let document = Document::parse(corpus!("request_snake.json").as_bytes()).expect("JSON");
    let conversation = Gemini.conversation(&document);
    let roles: Vec<Role> = conversation.messages.iter().map(|m| m.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(texts(&conversation.system), ["Be brief."]);
    let result = &conversation.tool_results[0];
    assert_eq!(
        (result.call.as_deref(), result.tool.as_deref()),
        (None, Some("time"))
    );
}

/// What a reader makes of an answer.
fn read(form: AnswerForm, answer: &str) -> ModelCall {
    let mut reader = Reader::new(&Gemini, Target::default(), None);
    reader.head(Some(form));
    for chunk in answer.as_bytes().chunks(7) {
        reader.push(chunk);
    }
    reader.finish()
}

fn call(model: &str, input: u64, output: Option<u64>, finish: Finish) -> ModelCall {
    ModelCall {
        model: Some(model.to_owned()),
        input_tokens: Some(input),
        output_tokens: output,
        finish: Some(finish),
        ..ModelCall::default()
    }
}

fn both_tools() -> Vec<String> {
    vec!["weather".to_owned(), "time".to_owned()]
}

#[test]
fn whole_answers_are_read_into_neutral_words() {
    let flash = "gemini-2.5-flash";
    for (name, answer, expected) in [
        (
            "text",
            corpus!("text.json"),
            call(MODEL, 9, Some(206), Finish::Done),
        ),
        (
            "tool calls",
            corpus!("tool_calls.json"),
            ModelCall {
                tool_calls: both_tools(),
                ..call(MODEL, 86, Some(84), Finish::Tool)
            },
        ),
        (
            "two candidates",
            corpus!("two_candidates.json"),
            call(flash, 5, Some(9), Finish::Done),
        ),
        (
            "blocked",
            corpus!("blocked.json"),
            call(flash, 2538, None, Finish::Refused),
        ),
        (
            "filtered",
            corpus!("filtered.json"),
            call(flash, 12, None, Finish::Filtered),
        ),
        (
            "error",
            corpus!("error_vertex.json"),
            ModelCall {
                error: Some("Resource exhausted. Please try again later.".to_owned()),
                ..ModelCall::default()
            },
        ),
    ] {
        assert_eq!(read(AnswerForm::Json, answer), expected, "{name}");
    }
}

#[test]
fn streams_are_read_into_neutral_words() {
    let flash = "gemini-2.5-flash";
    let (sse, array) = (Framing::Sse, Framing::Array);
    for (name, framing, stream, expected) in [
        (
            "text",
            sse,
            corpus!("text.sse"),
            call(MODEL, 9, Some(26), Finish::Done),
        ),
        (
            // The calls come in events of their own, the end in a third.
            "tool calls",
            sse,
            corpus!("tool_calls.sse"),
            ModelCall {
                tool_calls: both_tools(),
                ..call(MODEL, 82, Some(84), Finish::Tool)
            },
        ),
        (
            "list",
            array,
            corpus!("text.array"),
            call(flash, 9, Some(9), Finish::Done),
        ),
        (
            "blocked",
            sse,
            corpus!("blocked.sse"),
            call(flash, 7, None, Finish::Refused),
        ),
        (
            "error",
            sse,
            corpus!("error.sse"),
            ModelCall {
                finish: None,
                error: Some("The service is currently unavailable.".to_owned()),
                ..call(flash, 9, Some(1), Finish::Done)
            },
        ),
    ] {
        let expected = ModelCall {
            stream: true,
            ..expected
        };
        assert_eq!(
            read(AnswerForm::Stream(framing), stream),
            expected,
            "{name}"
        );
    }
}

#[test]
fn two_calls_of_one_tool_are_two_calls() {
    let call = |id: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{{\"id\":\"{id}\",\
             \"name\":\"look\",\"args\":{{}}}}}}]}}}}]}}\r\n\r\n"
        )
    };
    let read = read(AnswerForm::Stream(Framing::Sse), &(call("a") + &call("b")));
    assert_eq!(read.tool_calls, ["look", "look"]);
}

#[test]
fn the_media_type_and_alt_tell_how_an_answer_is_laid_out() {
    let stream = |framing| Some(AnswerForm::Stream(framing));
    for (path, media_type, expected) in [
        (
            GENERATE,
            "application/json; charset=UTF-8",
            Some(AnswerForm::Json),
        ),
        (STREAM, "text/event-stream", stream(Framing::Sse)),
        // An error.
        (
            STREAM,
            "application/json; charset=UTF-8",
            Some(AnswerForm::Json),
        ),
        (
            LIST,
            "application/json; charset=UTF-8",
            stream(Framing::Array),
        ),
        (LIST, "text/html", None),
    ] {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
        let form = Gemini.form(Target::new(path), None, &headers);
        assert_eq!(form, expected, "{path} {media_type}");
    }
}

#[test]
fn pieces_are_found_where_they_stand_and_thoughts_are_signed() {
    let answer = corpus!("tool_calls.json");
    let document = Document::parse(answer.as_bytes()).expect("JSON");
    let reading = Gemini.read_answer(&document);
    let pieces: Vec<(DeltaKind, bool, &str)> = reading
        .deltas
        .iter()
        .map(|delta| {
            let raw = document.value(delta.place).raw();
            (delta.kind, delta.signed, raw)
        })
        .collect();
    let city = "{\n                \"city\": \"Kiel\"\n              }";
    let expected = [
        (
            DeltaKind::Reasoning,
            true,
            r#""**Checking the weather**\n\nBoth are needed.""#,
        ),
        (DeltaKind::Signature, false, r#""Eq0BCqoBAR+/dn2Lr0m9Zk4=""#),
        (DeltaKind::ToolId, false, r#""hk3w9v2q""#),
        (DeltaKind::ToolName, false, r#""weather""#),
        (DeltaKind::ToolArguments, false, city),
        (DeltaKind::ToolName, false, r#""time""#),
        (DeltaKind::ToolArguments, false, "{}"),
    ];
    assert_eq!(pieces, expected);
    let numbers: Vec<u64> = reading.deltas.iter().map(|delta| delta.part).collect();
    assert_eq!(numbers[1], numbers[4], "a signature belongs to its call");
    assert_ne!(numbers[4], numbers[5]);
    let Some(Usage {
        output_place: Some(output),
        total_place: Some(total),
        apart: 50,
        ..
    }) = reading.usage
    else {
        panic!("{:?}", reading.usage);
    };
    assert_eq!(
        (document.value(output).raw(), document.value(total).raw()),
        ("34", "170")
    );
}

#[test]
fn a_reason_to_stop_keeps_its_meaning_there_and_back() {
    for (finish, word, back) in [
        (Finish::Done, "\"STOP\"", Finish::Done),
        (Finish::Length, "\"MAX_TOKENS\"", Finish::Length),
        (Finish::Tool, "\"STOP\"", Finish::Done),
        (Finish::Filtered, "\"SAFETY\"", Finish::Filtered),
        (Finish::Refused, "\"STOP\"", Finish::Done),
        (Finish::Context, "\"MAX_TOKENS\"", Finish::Length),
        (
            Finish::BadTool,
            r#""MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call""#,
            Finish::BadTool,
        ),
        (
            Finish::Foreign("LANGUAGE".to_owned()),
            "\"LANGUAGE\"",
            Finish::Foreign("LANGUAGE".to_owned()),
        ),
    ] {
        let event = r#"{"candidates":[{"finishReason":"x","index":0}]}"#;
        let edited = finished(event, Some(&finish));
        assert_eq!(edited, event.replace("\"x\"", word));
        let document = Document::parse(edited.as_bytes()).expect("JSON");
        let reading = Gemini.read_event(Event::named(None, &document));
        assert_eq!(reading.finishes[0].finish, back);
    }
}

/// The event with its first end put otherwise.
fn finished(event: &str, finish: Option<&Finish>) -> String {
    let document = Document::parse(event.as_bytes()).expect("JSON");
    let at = Gemini
        .read_event(Event::named(None, &document))
        .finishes
        .remove(0);
    let mut edits = Edits::new(&document);
    Gemini.put_finish(&mut edits, &document, &at, finish);
    String::from_utf8(edits.apply()).expect("UTF-8")
}

#[test]
fn an_end_taken_back_leaves_nothing_behind() {
    let event =
        r#"{"candidates":[{"content":{},"finishReason":"STOP","finishMessage":"m","index":0}]}"#;
    let open = r#"{"candidates":[{"content":{},"index":0}]}"#;
    assert_eq!(finished(event, None), open);
    let length = r#"{"candidates":[{"content":{},"finishReason":"MAX_TOKENS","index":0}]}"#;
    assert_eq!(finished(event, Some(&Finish::Length)), length);
    // Nothing was written, so nothing can have been too long.
    let blocked = r#"{"promptFeedback":{"blockReason":"OTHER"}}"#;
    assert_eq!(finished(blocked, Some(&Finish::Length)), blocked);
}

fn frames(framing: Framing, stream: &str) -> Vec<Frame> {
    let mut splitter = Splitter::new(framing, 1 << 20);
    let mut frames = splitter.push(stream.as_bytes());
    frames.extend(splitter.finish());
    frames
}

/// What is made of the `at`th frame of a stream, framed like it.
fn made(framing: Framing, stream: &str, at: usize, by: impl Fn(Event<'_>) -> Vec<Made>) -> String {
    let frame = &frames(framing, stream)[at];
    let data = frame.data().expect("data");
    let document = Document::parse(&data).expect("JSON");
    let events = by(Event::of(frame, &document));
    let bytes = events
        .iter()
        .flat_map(|event| Template::from(frame).frame(event).to_vec());
    String::from_utf8(bytes.collect()).expect("UTF-8")
}

fn end(finish: &Finish, choice: u64) -> EndOfChoice<'_> {
    EndOfChoice {
        choice,
        finish,
        tokens: 2,
        instead: None,
        kept: true,
    }
}

#[test]
fn the_end_of_a_choice_is_made_after_its_last_event() {
    let length = made(Framing::Sse, corpus!("text.sse"), 2, |event| {
        Gemini.finish_events(event, &end(&Finish::Length, 0))
    });
    let expected = concat!(
        r#"data: {"candidates": [{"content":{"parts":[{"text":""}],"role":"model"},"#,
        r#""finishReason":"MAX_TOKENS","index":0}],"usageMetadata": {"promptTokenCount": 9,"#,
        r#""candidatesTokenCount": 2,"totalTokenCount": 31,"promptTokensDetails": "#,
        r#"[{"modality": "TEXT","tokenCount": 9}],"thoughtsTokenCount": 20},"#,
        r#""modelVersion": "gemini-3-flash-preview","responseId": "AdVRaMmDCYekqtsPrb_-iA"}"#,
        "\r\n\r\n"
    );
    assert_eq!(length, expected);
    let filtered = made(Framing::Sse, corpus!("text.sse"), 0, |event| {
        Gemini.finish_events(event, &end(&Finish::Filtered, 0))
    });
    assert!(
        filtered.contains(r#"[{"finishReason":"SAFETY","index":0,"safetyRatings":[{"#)
            && filtered.contains(r#""candidatesTokenCount":2,"totalTokenCount": 31"#),
        "{filtered}"
    );
    let none = made(Framing::Sse, corpus!("text.sse"), 0, |event| {
        Gemini.finish_events(event, &end(&Finish::Length, 7))
    });
    assert_eq!(none, "");
    assert!(Gemini.end(Framing::Sse).is_empty());
}

#[test]
fn the_end_of_a_list_s_choice_is_a_further_item() {
    let item = made(Framing::Array, corpus!("text.array"), 1, |event| {
        Gemini.finish_events(event, &end(&Finish::Length, 0))
    });
    assert!(item.starts_with("\n,\r\n{"), "{item}");
    assert!(item.contains("MAX_TOKENS"), "{item}");
}

#[test]
fn other_words_are_said_in_a_stream_after_the_event_they_replace() {
    let said = made(Framing::Sse, corpus!("tool_calls.sse"), 0, |event| {
        Gemini.say_events(event, 0, Saying::Refusal("No."))
    });
    let expected = r#"data: {"candidates": [{"content":{"parts":[{"text":"No."}],"role":"model"},"index":0}],"#;
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn other_words_are_said_in_a_whole_answer() {
    for (name, answer) in [
        ("text", corpus!("text.json")),
        ("tool calls", corpus!("tool_calls.json")),
        ("two candidates", corpus!("two_candidates.json")),
        ("filtered", corpus!("filtered.json")),
    ] {
        let document = Document::parse(answer.as_bytes()).expect("JSON");
        let mut edits = Edits::new(&document);
        assert!(Gemini.say(&mut edits, &document, 0, Saying::Text("no"), &Finish::Done));
        let edited = edits.apply();
        let edited = Document::parse(&edited).expect("JSON");
        let reading = Gemini.read_answer(&edited);
        let thoughts = |reading: &Reading<'_>| -> Vec<String> {
            let deltas = reading.deltas.iter();
            let thoughts = deltas.filter(|delta| delta.choice == 0 && delta.is_thinking());
            thoughts.map(|delta| delta.text.to_string()).collect()
        };
        assert_eq!(
            thoughts(&reading),
            thoughts(&Gemini.read_answer(&document)),
            "{name}"
        );
        let deltas: Vec<_> = reading
            .deltas
            .iter()
            .filter(|delta| delta.choice == 0 && !delta.is_thinking())
            .collect();
        assert_eq!(deltas.len(), 1, "{name}");
        assert_eq!(
            (deltas[0].kind, &*deltas[0].text),
            (DeltaKind::Text, "no"),
            "{name}"
        );
        assert_eq!(reading.finishes[0].finish, Finish::Done, "{name}");
        assert!(!edited.text().contains("finishMessage"), "{name}");
        let mut edits = Edits::new(&document);
        assert!(!Gemini.say(&mut edits, &document, 9, Saying::Text(""), &Finish::Done));
        assert!(edits.is_empty());
    }
    let document = Document::parse(corpus!("text.json").as_bytes()).expect("JSON");
    let mut edits = Edits::new(&document);
    assert!(Gemini.say(
        &mut edits,
        &document,
        0,
        Saying::Text(""),
        &Finish::Filtered
    ));
    let edited = edits.apply();
    let edited = Document::parse(&edited).expect("JSON");
    let candidate = edited
        .root()
        .get("candidates")
        .and_then(|all| all.items().next());
    let candidate = candidate.expect("one").raw();
    assert!(
        candidate.starts_with(r#"{"finishReason":"SAFETY","index":0"#),
        "{candidate}"
    );
    assert!(candidate.contains("safetyRatings"), "{candidate}");
}

#[test]
fn a_stream_put_together_is_an_answer_with_its_signatures() {
    let stream = frames(Framing::Sse, corpus!("text.sse"));
    let data: Vec<_> = stream.iter().filter_map(Frame::data).collect();
    let first = Document::parse(&data[0]).expect("JSON");
    let last = Document::parse(&data[4]).expect("JSON");
    let part = |kind, text: &str, signature: Option<&str>| Part {
        choice: 0,
        part: 0,
        kind,
        text: text.to_owned(),
        call: None,
        signature: signature.map(str::to_owned),
    };
    let call = |id: &str, name: &str, arguments: &str| Part {
        call: Some((id.to_owned(), name.to_owned())),
        ..part(DeltaKind::ToolArguments, arguments, None)
    };
    let transcript = |parts| Transcript {
        first: Event::named(None, &first),
        last: Event::named(None, &last),
        parts,
        finishes: vec![(0, Finish::Done)],
        tokens: (Some(9), Some(26)),
    };
    let whole = Gemini.whole_answer(&transcript(vec![
        part(DeltaKind::Reasoning, "Hm.", None),
        part(DeltaKind::Text, "Squalls pass.", None),
        part(DeltaKind::Reasoning, "", Some("c2ln")),
    ]));
    let expected = concat!(
        r#"{"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true},{"text":"Squalls pass."},"#,
        r#"{"text":"","thoughtSignature":"c2ln"}],"role":"model"},"finishReason":"STOP","index":0}],"#,
        r#""usageMetadata":{"promptTokenCount": 9,"candidatesTokenCount": 6,"totalTokenCount": 35,"#,
        r#""promptTokensDetails": [{"modality": "TEXT","tokenCount": 9}],"thoughtsTokenCount": 20},"#,
        r#""modelVersion":"gemini-3-flash-preview","responseId":"AdVRaMmDCYekqtsPrb_-iA"}"#
    );
    assert_eq!(whole.as_deref(), Some(expected));
    let whole = Gemini.whole_answer(&transcript(vec![
        part(DeltaKind::Reasoning, "", Some("c2ln")),
        call("7", "weather", "{\"city\":\"Kiel\"}"),
        call("", "time", ""),
    ]));
    let parts = concat!(
        r#"[{"functionCall":{"id":"7","name":"weather","args":{"city":"Kiel"}},"thoughtSignature":"c2ln"},"#,
        r#"{"functionCall":{"name":"time","args":{}}}]"#
    );
    let whole = whole.expect("an answer");
    assert!(whole.contains(parts), "{whole}");
    let nothing = Transcript {
        finishes: Vec::new(),
        ..transcript(Vec::new())
    };
    assert_eq!(Gemini.whole_answer(&nothing), None);
}

fn error_at(path: &str, error: &ModelError) -> WireReply {
    let context = ErrorContext {
        draw: 42,
        account: 42,
        credential: None,
        target: Target::new(path),
        model: Some(MODEL),
        ..ErrorContext::default()
    };
    Gemini.error(error, &context)
}

/// Status, headers and body, as on the wire.
fn written(reply: &WireReply) -> String {
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}: {}\n", value.to_str().expect("ASCII"))
    };
    let headers: String = reply.headers.iter().map(header).collect();
    let body = String::from_utf8_lossy(&reply.body);
    format!("{}\n{headers}\n{body}", reply.status)
}

fn rate_limit(retry_after: Option<Duration>) -> ModelError {
    ModelError::RateLimit {
        scope: LimitScope::Requests,
        retry_after,
        figures: None,
    }
}

#[test]
fn a_rate_limit_reads_like_google_s() {
    let wait = Some(Duration::from_micros(34_074_824));
    insta::assert_snapshot!(written(&error_at(GENERATE, &rate_limit(wait))));
}

#[test]
fn every_other_error_reads_like_google_s() {
    let tokens = ModelError::RateLimit {
        scope: LimitScope::Tokens,
        retry_after: None,
        figures: None,
    };
    let errors = [
        tokens,
        ModelError::QuotaExhausted,
        ModelError::ContextLength,
        ModelError::ContentFilter,
        ModelError::Auth,
        ModelError::ModelNotFound,
        ModelError::Timeout,
        ModelError::Overloaded,
        ModelError::ServerError { status: 500 },
        ModelError::ServerError { status: 502 },
    ];
    let written =
        errors.map(|error| format!("{error:?}\n{}", written(&error_at(GENERATE, &error))));
    insta::assert_snapshot!(written.join("\n"));
}

#[test]
fn the_wait_is_announced_in_the_body_or_not_at_all() {
    for (retry_after, message, delay) in [
        (Some(Duration::ZERO), Some("in 0s."), Some("\"0s\"")),
        (
            Some(Duration::from_micros(12_500)),
            Some("in 12.5ms."),
            Some("\"0.012500s\""),
        ),
        (
            Some(Duration::from_millis(1500)),
            Some("in 1.5s."),
            Some("\"1.500s\""),
        ),
        (
            Some(Duration::from_mins(6)),
            Some("in 6m0s."),
            Some("\"360s\""),
        ),
        (
            Some(Duration::new(68_685, 166_477_036)),
            Some("in 19h4m45.166477036s."),
            Some("\"68685.166477036s\""),
        ),
        (None, None, None),
    ] {
        let reply = error_at(GENERATE, &rate_limit(retry_after));
        let body = String::from_utf8_lossy(&reply.body);
        assert_eq!(body.contains("Please retry in"), message.is_some());
        assert_eq!(body.contains("RetryInfo"), delay.is_some());
        for words in [message, delay].into_iter().flatten() {
            assert!(body.contains(words), "{words}: {body}");
        }
        assert!(!reply.headers.contains_key("retry-after"));
    }
}

#[test]
fn an_error_is_laid_out_as_the_answer_would_have_been() {
    let overloaded =
        |path| String::from_utf8_lossy(&error_at(path, &ModelError::Overloaded).body).into_owned();
    let plain = overloaded(GENERATE);
    assert_eq!(overloaded(STREAM), plain);
    assert_eq!(overloaded(LIST), format!("[{}\n]", plain.trim_end()));
    let blocked = |path| error_at(path, &ModelError::ContentFilter);
    for (path, framing) in [(STREAM, Framing::Sse), (LIST, Framing::Array)] {
        let reply = blocked(path);
        assert_eq!(reply.status, StatusCode::OK);
        let form = Gemini.form(Target::new(path), None, &reply.headers);
        assert_eq!(form, Some(AnswerForm::Stream(framing)));
        let said = read(
            AnswerForm::Stream(framing),
            &String::from_utf8_lossy(&reply.body),
        );
        assert_eq!(said.finish, Some(Finish::Refused), "{path}");
    }
}

#[test]
fn an_error_in_a_stream_is_an_event_of_its_own() {
    for (error, words) in [
        (ModelError::Overloaded, r#"{"error": {"code": 503,"#),
        (
            rate_limit(None),
            r#""status": "RESOURCE_EXHAUSTED","details": [{"#,
        ),
    ] {
        let event = Gemini.error_event(&error, &ErrorContext::default(), None);
        let event = event.expect("one");
        let document = Document::parse(&event.data).expect("JSON");
        assert!(document.text().contains(words), "{}", document.text());
        assert!(!document.text().contains('\n'), "{}", document.text());
        let reading = Gemini.read_event(Event::named(None, &document));
        assert!(reading.error.is_some());
    }
    let filtered = ModelError::ContentFilter;
    assert_eq!(
        Gemini.error_event(&filtered, &ErrorContext::default(), None),
        None
    );
}

#[test]
fn a_model_that_is_not_there_is_named_with_its_api_s_version() {
    let context = ErrorContext {
        target: Target::new("/gateway/v1/models/nope:streamGenerateContent"),
        ..ErrorContext::default()
    };
    let reply = Gemini.error(&ModelError::ModelNotFound, &context);
    let body = String::from_utf8_lossy(&reply.body).into_owned();
    let expected = "models/nope is not found for API version v1, or is not supported for \
                    streamGenerateContent.";
    assert!(body.contains(expected), "{body}");
}

#[test]
fn what_is_said_instead_is_not_counted_as_what_was_written() {
    let data = br#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"mail","args":{}}}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":40,"thoughtsTokenCount":3,"totalTokenCount":63}}"#;
    let document = Document::parse(data).expect("JSON");
    let said = Gemini.say_events(Event::named(None, &document), 0, Saying::Text("No."));
    let said = String::from_utf8_lossy(said[0].data.as_ref()).into_owned();
    let usage =
        r#""usageMetadata":{"promptTokenCount":20,"thoughtsTokenCount":3,"totalTokenCount":23}"#;
    assert!(said.contains(usage), "{said}");
}
