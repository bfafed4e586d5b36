use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::*;
use crate::dialect::{AnswerForm, Credential, Part};
use crate::model::{DeltaKind, Edge, LimitFigures, LimitScope, Role, Said};
use crate::read_request;
use crate::reader::{ModelCall, Reader};
use crate::stream::{Frame, Splitter, Template};

const SSE: AnswerForm = AnswerForm::Stream(Framing::Sse);

const TEXT: &str = include_str!("../../corpus/anthropic/text.json");
const TOOL_USE: &str = include_str!("../../corpus/anthropic/tool_use.json");
const REFUSAL: &str = include_str!("../../corpus/anthropic/refusal.json");
const LENGTH: &str = include_str!("../../corpus/anthropic/length.json");
const OVERLOADED: &str = include_str!("../../corpus/anthropic/overloaded.json");
const TEXT_STREAM: &str = include_str!("../../corpus/anthropic/text.sse");
const TOOL_USE_STREAM: &str = include_str!("../../corpus/anthropic/tool_use.sse");
const REFUSAL_STREAM: &str = include_str!("../../corpus/anthropic/refusal.sse");
const ERROR_STREAM: &str = include_str!("../../corpus/anthropic/error.sse");
const CITATIONS_STREAM: &str = include_str!("../../corpus/anthropic/citations.sse");
const REQUEST: &str = include_str!("../../corpus/anthropic/request_tools.json");

#[test]
fn a_request_is_known_by_method_and_end_of_path() {
    for (method, path, expected) in [
        (Method::POST, "/v1/messages", true),
        (Method::POST, "/v1/messages?beta=true", true),
        (Method::POST, "/anthropic/v1/messages/", true),
        (Method::GET, "/v1/messages", false),
        // Counts tokens, asks no model.
        (Method::POST, "/v1/messages/count_tokens", false),
        (Method::POST, "/v1/messages/batches", false),
        (Method::POST, "/v1/threads/thread_1/messages", false),
        (Method::POST, "/messages", false),
    ] {
        let found = Anthropic.recognises(&method, Target::new(path));
        assert_eq!(found, expected, "{method} {path}");
    }
}

#[test]
fn a_body_without_messages_or_a_limit_is_not_confirmed() {
    for (body, expected) in [
        (REQUEST, true),
        (r#"{"max_tokens":1,"messages":[]}"#, true),
        // A chat completion.
        (r#"{"model":"m","messages":[]}"#, false),
        (r#"{"max_tokens":"1","messages":[]}"#, false),
        (r#"{"max_tokens":1,"messages":"hello"}"#, false),
        ("[]", false),
    ] {
        let document = Document::parse(body.as_bytes()).expect("JSON");
        assert_eq!(Anthropic.confirms(document.root()), expected, "{body}");
    }
}

#[test]
fn a_request_says_what_is_asked_for() {
    let expected = ModelRequest {
        model: Some("claude-sonnet-4-6".to_owned()),
        stream: true,
        usage_in_stream: false,
        choices: 1,
        messages: 3,
        tools: vec!["weather".to_owned()],
    };
    let asked = read_request(&Anthropic, Target::default(), REQUEST.as_bytes());
    assert_eq!(asked, Some(expected));
}

#[test]
fn a_tool_that_said_nothing_can_be_made_to_say_something() {
    let body = |result: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a"{result}}}]}}]}}"#
        )
    };
    for (before, saying, after) in [
        ("", ResultSaying::Output("x"), r#","content":"x""#),
        (
            "",
            ResultSaying::Failure("x"),
            r#","content":"x","is_error":true"#,
        ),
        (
            r#","is_error":false"#,
            ResultSaying::Failure("x"),
            r#","is_error":true,"content":"x""#,
        ),
    ] {
        let written = body(before);
        let document = Document::parse(written.as_bytes()).expect("JSON");
        let conversation = Anthropic.conversation(&document);
        let result = &conversation.tool_results[0];
        assert!(result.says_nothing());
        assert_eq!(conversation.messages[0].role, Role::Tool);
        let mut edits = Edits::new(&document);
        Anthropic.say_result(&mut edits, &document, result, saying);
        assert_eq!(
            String::from_utf8(edits.apply()).expect("UTF-8"),
            body(after)
        );
    }
}

#[test]
fn a_conversation_is_read_with_its_places() {
    let document = Document::parse(REQUEST.as_bytes()).expect("JSON");
    let conversation = Anthropic.conversation(&document);
    let texts = |said: &[Said<'_>]| -> Vec<String> {
        let said = said.iter().map(|said| document.value(said.place).raw());
        said.map(str::to_owned).collect()
    };
    let messages: Vec<_> = conversation
        .messages
        .iter()
        .map(|message| (message.role, texts(&message.texts)))
        .collect();
    let said = |text: &str| vec![quote(text)];
    let expected = [
        (Role::User, said("Is it warm in Paris?")),
        (Role::Assistant, said("Let me look.")),
        (Role::Tool, vec![]),
    ];
    assert_eq!(messages, expected);
    assert_eq!(
        texts(&conversation.system),
        said("You plan trips. Answer in one sentence.")
    );
    let results: Vec<_> = conversation
        .tool_results
        .iter()
        .map(|result| (result.tool.as_deref(), result.message, texts(&result.texts)))
        .collect();
    let expected = [
        (Some("time"), 2, said("12:30")),
        (Some("weather"), 2, said("{\"celsius\": 21}")),
    ];
    assert_eq!(results, expected);
}

/// What a reader makes of an answer.
fn read(form: AnswerForm, answer: &str) -> ModelCall {
    let mut reader = Reader::new(&Anthropic, Target::default(), None);
    reader.head(Some(form));
    for chunk in answer.as_bytes().chunks(7) {
        reader.push(chunk);
    }
    reader.finish()
}

fn call(input: u64, output: u64, finish: Finish, tools: &[&str]) -> ModelCall {
    ModelCall {
        model: Some("claude-sonnet-4-6".to_owned()),
        input_tokens: Some(input),
        output_tokens: Some(output),
        finish: Some(finish),
        tool_calls: tools.iter().map(|&tool| tool.to_owned()).collect(),
        ..ModelCall::default()
    }
}

const BOTH: &[&str] = &["weather", "time"];

#[test]
fn whole_answers_are_read_into_neutral_words() {
    let failed = ModelCall {
        error: Some("Overloaded".to_owned()),
        ..ModelCall::default()
    };
    let small = ModelCall {
        model: Some("claude-haiku-4-5".to_owned()),
        ..call(9, 8, Finish::Length, &[])
    };
    for (answer, expected) in [
        // Tokens that a cache gave or took are tokens in, too.
        (TEXT, call(19, 10, Finish::Done, &[])),
        (TOOL_USE, call(412, 96, Finish::Tool, BOTH)),
        (REFUSAL, call(81, 1, Finish::Refused, &[])),
        (LENGTH, small),
        (OVERLOADED, failed),
    ] {
        assert_eq!(read(AnswerForm::Json, answer), expected, "{answer}");
    }
}

#[test]
fn streams_are_read_into_neutral_words() {
    let paused = Finish::Foreign("pause_turn".to_owned());
    let failed = ModelCall {
        error: Some("Overloaded".to_owned()),
        output_tokens: None,
        finish: None,
        ..call(19, 0, Finish::Done, &[])
    };
    for (stream, expected) in [
        (TEXT_STREAM, call(19, 5, Finish::Done, &[])),
        (TOOL_USE_STREAM, call(412, 96, Finish::Tool, BOTH)),
        (REFUSAL_STREAM, call(81, 3, Finish::Refused, &[])),
        (ERROR_STREAM, failed),
        (CITATIONS_STREAM, call(700, 40, paused, &["web_search"])),
    ] {
        let expected = ModelCall {
            stream: true,
            ..expected
        };
        assert_eq!(read(SSE, stream), expected, "{stream}");
    }
}

#[test]
fn pieces_are_found_where_they_stand() {
    let document = Document::parse(TOOL_USE.as_bytes()).expect("JSON");
    let reading = Anthropic.read_answer(&document);
    let pieces: Vec<_> = reading
        .deltas
        .iter()
        .map(|delta| {
            (
                delta.part,
                delta.kind,
                document.value(delta.place).raw(),
                delta.signed,
            )
        })
        .collect();
    let expected = [
        (0, DeltaKind::Reasoning, "\"I need both tools.\"", true),
        (
            0,
            DeltaKind::Signature,
            "\"EqkBCkYIBxgCKkDq8Zw1fVbT==\"",
            true,
        ),
        (2, DeltaKind::Text, "\"Let me look.\"", false),
        (3, DeltaKind::ToolId, "\"toolu_01A7wq\"", false),
        (3, DeltaKind::ToolName, "\"weather\"", false),
        (
            3,
            DeltaKind::ToolArguments,
            "{\"city\": \"Paris\", \"days\": 2}",
            false,
        ),
        (4, DeltaKind::ToolId, "\"toolu_01B3kd\"", false),
        (4, DeltaKind::ToolName, "\"time\"", false),
        (4, DeltaKind::ToolArguments, "{}", false),
    ];
    assert_eq!(pieces, expected);
    // Each goes with its block.
    let content = document.root().get("content").expect("blocks");
    for delta in &reading.deltas {
        let block = content
            .items()
            .nth(usize::try_from(delta.part).expect("few"));
        assert_eq!(delta.removed_with, block.map(Value::id), "{delta:?}");
    }
    let usage = reading.usage.expect("counted");
    let output = usage.output_place.expect("a place");
    assert_eq!(document.value(output).raw(), "96");
    assert_eq!(usage.hidden, 0, "the thinking is shown");
}

#[test]
fn a_stream_s_pieces_come_between_the_edges_of_their_blocks() {
    let frames = frames(TOOL_USE_STREAM);
    let mut told = Vec::new();
    for frame in &frames {
        let data = frame.data().expect("data");
        let document = Document::parse(&data).expect("JSON");
        let reading = Anthropic.read_event(Event::of(frame, &document));
        let edges = reading.edges.iter().map(|edge: &Edge| {
            let mark = if edge.closes { "]" } else { "[" };
            format!("{}{mark}", edge.part)
        });
        told.extend(edges);
        let deltas = reading.deltas.iter();
        told.extend(deltas.map(|delta| format!("{}:{:?}", delta.part, delta.kind)));
        told.extend(reading.ends.then(|| "end".to_owned()));
    }
    let expected = "0[ 0:Reasoning 0:Reasoning 0:Signature 0] 1[ 1] 2[ 2:Text 2:Text 2] \
                    3[ 3:ToolId 3:ToolName 3:ToolArguments 3:ToolArguments 3:ToolArguments 3] \
                    4[ 4:ToolId 4:ToolName 4:ToolArguments 4] end";
    assert_eq!(told.join(" "), expected);
}

#[test]
fn hidden_thinking_is_counted_apart() {
    let counted = |content: &str| {
        let answer = format!(
            r#"{{"content":[{content}],"usage":{{"output_tokens":50,"output_tokens_details":{{"thinking_tokens":40}}}}}}"#
        );
        let document = Document::parse(answer.as_bytes()).expect("JSON");
        Anthropic
            .read_answer(&document)
            .usage
            .expect("counted")
            .hidden
    };
    let thinking = |text| format!(r#"{{"type":"thinking","thinking":"{text}","signature":"x"}}"#);
    assert_eq!(counted(&thinking("")), 40);
    assert_eq!(counted(&thinking("well")), 0);
}

#[test]
fn a_reason_to_stop_keeps_its_meaning_there_and_back() {
    for (finish, word, back) in [
        (Finish::Done, "end_turn", Finish::Done),
        (Finish::Length, "max_tokens", Finish::Length),
        (Finish::Tool, "tool_use", Finish::Tool),
        (Finish::Filtered, "refusal", Finish::Refused),
        (Finish::Refused, "refusal", Finish::Refused),
        (
            Finish::Context,
            "model_context_window_exceeded",
            Finish::Context,
        ),
        (Finish::BadTool, "end_turn", Finish::Done),
        (
            Finish::Foreign("pause_turn".to_owned()),
            "pause_turn",
            Finish::Foreign("pause_turn".to_owned()),
        ),
    ] {
        let answer = r#"{"content":[],"stop_reason":"x"}"#;
        let event = r#"{"type":"message_delta","delta":{"stop_reason":"x"}}"#;
        for text in [answer, event] {
            let document = Document::parse(text.as_bytes()).expect("JSON");
            let edited = finished(&document, Some(&finish));
            assert!(edited.contains(&quote(word)), "{edited}");
            let document = Document::parse(edited.as_bytes()).expect("JSON");
            assert_eq!(reading(&document).finishes[0].finish, back);
        }
    }
}

fn reading<'d>(document: &'d Document<'d>) -> Reading<'d> {
    if document
        .root()
        .get("type")
        .is_some_and(|kind| kind.raw() == "\"message_delta\"")
    {
        Anthropic.read_event(Event::named(None, document))
    } else {
        Anthropic.read_answer(document)
    }
}

/// The document when it ends for this reason.
fn finished(document: &Document<'_>, finish: Option<&Finish>) -> String {
    let at = reading(document).finishes.remove(0);
    let mut edits = Edits::new(document);
    assert_eq!(
        Anthropic.put_finish(&mut edits, document, &at, finish),
        None
    );
    String::from_utf8(edits.apply()).expect("UTF-8")
}

#[test]
fn what_goes_with_a_reason_to_stop_follows_it() {
    const NO: &str = r#"{"type":"refusal","category":null,"explanation":null}"#;
    for (from, finish, to) in [
        (
            r#""stop_sequence","stop_sequence":"\n""#.to_owned(),
            Some(Finish::Length),
            r#""max_tokens","stop_sequence":null"#.to_owned(),
        ),
        (
            format!(r#""refusal","stop_sequence":null,"stop_details":{NO}"#),
            Some(Finish::Length),
            r#""max_tokens","stop_sequence":null,"stop_details":null"#.to_owned(),
        ),
        (
            r#""end_turn","stop_sequence":null,"stop_details":null"#.to_owned(),
            Some(Finish::Refused),
            format!(r#""refusal","stop_sequence":null,"stop_details":{NO}"#),
        ),
        (
            r#""end_turn","stop_sequence":null"#.to_owned(),
            Some(Finish::Refused),
            format!(r#""refusal","stop_details":{NO},"stop_sequence":null"#),
        ),
        (
            r#""end_turn","stop_sequence":null"#.to_owned(),
            None,
            r#"null,"stop_sequence":null"#.to_owned(),
        ),
    ] {
        let event = |said| {
            format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{said}}},"usage":{{}}}}"#)
        };
        let text = event(from);
        let document = Document::parse(text.as_bytes()).expect("JSON");
        assert_eq!(finished(&document, finish.as_ref()), event(to));
    }
}

/// The frames of a stream.
fn frames(stream: &str) -> Vec<Frame> {
    let mut splitter = Splitter::new(Framing::Sse, 1 << 20);
    let mut frames = splitter.push(stream.as_bytes());
    frames.extend(splitter.finish());
    frames
}

/// What is made of the `number`th event of a stream, framed like it.
fn made(stream: &str, number: usize, by: impl Fn(Event<'_>) -> Vec<Made>) -> String {
    let frame = &frames(stream)[number];
    let data = frame.data().expect("data");
    let document = Document::parse(&data).expect("JSON");
    let events = by(Event::of(frame, &document));
    let bytes = events
        .iter()
        .flat_map(|event| Template::from(frame).frame(event).to_vec());
    String::from_utf8(bytes.collect()).expect("UTF-8")
}

fn ended(number: usize, finish: &Finish, kept: bool) -> String {
    made(TEXT_STREAM, number, |event| {
        let end = EndOfChoice {
            choice: 0,
            finish,
            tokens: 3,
            instead: None,
            kept,
        };
        Anthropic.finish_events(event, &end)
    })
}

const STOP: &str =
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
const TOO_LONG: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":\
                        {\"stop_reason\":\"max_tokens\",\"stop_sequence\":null},\"usage\":\
                        {\"output_tokens\":3}}\n\n";

#[test]
fn a_message_ends_with_its_open_block_and_the_reason() {
    let (block_start, block_delta) = (1, 3);
    let both = format!("{STOP}{TOO_LONG}");
    assert_eq!(ended(block_delta, &Finish::Length, true), both);
    assert_eq!(ended(block_delta, &Finish::Length, false), both);
    assert_eq!(ended(block_start, &Finish::Length, true), both);
    // A block whose start the agent never got needs no stop.
    assert_eq!(ended(block_start, &Finish::Length, false), TOO_LONG);
    assert!(
        ended(block_delta, &Finish::Refused, true)
            .contains("\"stop_details\":{\"type\":\"refusal\"")
    );
    let end = made(TEXT_STREAM, 3, |_| Anthropic.end(Framing::Sse));
    assert_eq!(
        end,
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    );
}

#[test]
fn the_upstream_s_own_end_serves_as_a_model() {
    let message_delta = 8;
    let end = ended(message_delta, &Finish::Length, false);
    let expected = TEXT_STREAM
        .split_inclusive("\n\n")
        .nth(message_delta)
        .expect("an end")
        .replace("end_turn", "max_tokens")
        .replace("\"output_tokens\":5", "\"output_tokens\":3");
    assert_eq!(end, expected);
    assert_eq!(
        ended(message_delta, &Finish::Length, true),
        format!("{STOP}{expected}")
    );
}

#[test]
fn other_words_are_said_in_a_block_of_their_own() {
    let expected = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
                    \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: \
                    content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
                    \"delta\":{\"type\":\"text_delta\",\"text\":\"no\"}}\n\n";
    let (block_start, message_delta, message_stop) = (1, 8, 9);
    for saying in [Saying::Text("no"), Saying::Refusal("no")] {
        for number in [block_start, message_delta] {
            let said = made(TEXT_STREAM, number, |event| {
                Anthropic.say_events(event, 0, saying)
            });
            assert_eq!(said, expected);
        }
    }
    for (number, choice, text) in [
        (message_stop, 0, "no"),
        (block_start, 1, "no"),
        (block_start, 0, ""),
    ] {
        let none = made(TEXT_STREAM, number, |event| {
            Anthropic.say_events(event, choice, Saying::Text(text))
        });
        assert_eq!(none, "");
    }
}

#[test]
fn other_words_are_said_in_a_whole_answer() {
    for (answer, thoughts) in [(TEXT, 0), (TOOL_USE, 2), (REFUSAL, 0)] {
        let document = Document::parse(answer.as_bytes()).expect("JSON");
        let content = document.root().get("content").expect("content");
        // What was thought before stays as it was.
        let thoughts: Vec<&str> = content.items().map(Value::raw).take(thoughts).collect();
        let no = Some(r#"{"type":"text","text":"no"}"#);
        for (saying, finish, words) in [
            (Saying::Text("no"), Finish::Done, no),
            (Saying::Refusal("no"), Finish::Refused, no),
            (Saying::Text(""), Finish::Done, None),
        ] {
            let blocks: Vec<&str> = thoughts.iter().copied().chain(words).collect();
            let expected = format!("[{}]", blocks.join(","));
            let mut edits = Edits::new(&document);
            assert!(Anthropic.say(&mut edits, &document, 0, saying, &finish));
            let edited = edits.apply();
            let edited = Document::parse(&edited).expect("JSON");
            let content = edited.root().get("content").map(Value::raw);
            assert_eq!(content, Some(&*expected));
            let reading = Anthropic.read_answer(&edited);
            assert_eq!(reading.finishes[0].finish, finish);
        }
        let mut edits = Edits::new(&document);
        assert!(!Anthropic.say(&mut edits, &document, 1, Saying::Text(""), &Finish::Done));
        assert!(edits.is_empty());
    }
    let document = Document::parse(OVERLOADED.as_bytes()).expect("JSON");
    let mut edits = Edits::new(&document);
    assert!(!Anthropic.say(&mut edits, &document, 0, Saying::Text(""), &Finish::Done));
}

#[test]
fn a_stream_is_told_as_one_message() {
    let frames = frames(TOOL_USE_STREAM);
    let data: Vec<_> = frames
        .iter()
        .map(|frame| frame.data().expect("data"))
        .collect();
    let first = Document::parse(&data[0]).expect("JSON");
    let last = Document::parse(&data[data.len() - 2]).expect("JSON");
    let part = |kind, text: &str, call: Option<(&str, &str)>, signature: Option<&str>| Part {
        choice: 0,
        part: 0,
        kind,
        text: text.to_owned(),
        call: call.map(|(id, name)| (id.to_owned(), name.to_owned())),
        signature: signature.map(str::to_owned),
    };
    let arguments = DeltaKind::ToolArguments;
    let transcript = Transcript {
        first: Event::named(None, &first),
        last: Event::named(None, &last),
        parts: vec![
            part(
                DeltaKind::Reasoning,
                "I need both tools.",
                None,
                Some("Eq=="),
            ),
            part(DeltaKind::Text, "Let me look.", None, None),
            part(
                arguments,
                "{\"city\": \"Paris\"}",
                Some(("toolu_01A7wq", "weather")),
                None,
            ),
            part(arguments, "", Some(("toolu_01B3kd", "time")), None),
        ],
        finishes: vec![(0, Finish::Tool)],
        tokens: (Some(412), Some(96)),
    };
    let whole = Anthropic.whole_answer(&transcript).expect("told");
    let expected = r#"{"model":"claude-sonnet-4-6","id":"msg_01TcU4b9kLxQe6sWmPzR8vYa","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"I need both tools.","signature":"Eq=="},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_01A7wq","name":"weather","input":{"city": "Paris"}},{"type":"tool_use","id":"toolu_01B3kd","name":"time","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"usage":{"input_tokens":412,"output_tokens":96,"output_tokens_details":{"thinking_tokens":31}}}"#;
    assert_eq!(whole, expected);
    assert_eq!(
        read(AnswerForm::Json, &whole),
        call(412, 96, Finish::Tool, BOTH)
    );
    let headless = Transcript {
        first: transcript.last,
        ..transcript
    };
    assert_eq!(Anthropic.whole_answer(&headless), None);
}

/// 2026-11-22T04:00:00Z.
const NOW: Duration = Duration::from_hours(498_700);

fn error(error: &ModelError) -> WireReply {
    Anthropic.error(
        error,
        &ErrorContext {
            draw: 42,
            account: 42,
            credential: None,
            model: Some("claude-haiku-4-5"),
            now: Some(NOW),
            ..ErrorContext::default()
        },
    )
}

fn rate_limit(scope: LimitScope, retry_after: Option<Duration>) -> ModelError {
    ModelError::RateLimit {
        scope,
        retry_after,
        figures: None,
    }
}

/// Status, headers and body, as on the wire.
fn written(reply: &WireReply) -> String {
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}: {}\n", value.to_str().expect("ASCII"))
    };
    let headers: String = reply.headers.iter().map(header).collect();
    let body = String::from_utf8_lossy(&reply.body);
    format!("{}\n{headers}\n{body}\n", reply.status)
}

#[test]
fn every_error_reads_like_anthropic_s() {
    let wait = Some(Duration::from_millis(1500));
    let written = [
        rate_limit(LimitScope::Requests, wait),
        rate_limit(LimitScope::Tokens, None),
        ModelError::RateLimit {
            scope: LimitScope::Requests,
            retry_after: wait,
            figures: Some(LimitFigures {
                per_minute: 6,
                used: 6,
                requested: 1,
            }),
        },
        ModelError::QuotaExhausted,
        ModelError::ContextLength,
        ModelError::ContentFilter,
        ModelError::Auth,
        ModelError::ModelNotFound,
        ModelError::Timeout,
        ModelError::ServerError { status: 500 },
        ModelError::ServerError { status: 502 },
        ModelError::Overloaded,
    ]
    .map(|model_error| format!("{model_error:?}\n{}", written(&error(&model_error))));
    insta::assert_snapshot!(written.join("\n"));
}

#[test]
fn every_error_has_its_status_and_type() {
    let server = |status| ModelError::ServerError { status };
    for (model_error, status, kind) in [
        (
            rate_limit(LimitScope::Requests, None),
            429,
            "rate_limit_error",
        ),
        (server(500), 500, "api_error"),
        (server(503), 503, "api_error"),
        (server(504), 504, "timeout_error"),
        (server(529), 529, "overloaded_error"),
        (ModelError::Overloaded, 529, "overloaded_error"),
    ] {
        let reply = error(&model_error);
        assert_eq!(reply.status.as_u16(), status, "{model_error:?}");
        let body: serde_json::Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!(body["error"]["type"], kind, "{model_error:?}");
        assert_eq!(body["type"], "error");
        assert_eq!(
            body["request_id"],
            reply.headers["request-id"].to_str().expect("ASCII")
        );
    }
}

#[test]
fn an_error_in_a_stream_is_an_event_named_error() {
    let context = ErrorContext {
        draw: 42,
        account: 42,
        credential: None,
        ..ErrorContext::default()
    };
    let made = Anthropic.error_event(&ModelError::Overloaded, &context, None);
    let made = made.expect("one");
    assert_eq!(made.name.as_deref(), Some("error"));
    let document = Document::parse(&made.data).expect("JSON");
    let start = "{\"type\":\"error\",\"error\":{\"details\":null,\"type\":\"overloaded_error\",\
                 \"message\":\"Overloaded\"},\"request_id\":\"req_011C";
    assert!(document.text().starts_with(start), "{}", document.text());
    let reading = Anthropic.read_event(Event::named(None, &document));
    assert_eq!(reading.error.as_deref(), Some("Overloaded"));
}

#[test]
fn the_wait_is_rounded_up_and_its_end_dated() {
    for (retry_after, seconds, reset) in [
        (Some(Duration::ZERO), Some("0"), "2026-11-22T04:00:00Z"),
        (
            Some(Duration::from_millis(12)),
            Some("1"),
            "2026-11-22T04:00:00Z",
        ),
        (
            Some(Duration::from_hours(40 * 24)),
            Some("3456000"),
            "2027-01-01T04:00:00Z",
        ),
        (None, None, "2026-11-22T04:00:01Z"),
    ] {
        let reply = error(&rate_limit(LimitScope::Requests, retry_after));
        let header = |name| reply.headers.get(name).map(|v| v.to_str().expect("ASCII"));
        assert_eq!(header("retry-after"), seconds);
        assert_eq!(header("anthropic-ratelimit-requests-remaining"), Some("0"));
        assert_eq!(header("anthropic-ratelimit-requests-reset"), Some(reset));
    }
    let undated = Anthropic.error(
        &rate_limit(LimitScope::Requests, None),
        &ErrorContext::default(),
    );
    assert!(
        !undated
            .headers
            .contains_key("anthropic-ratelimit-requests-reset")
    );
}

#[test]
fn days_are_counted_as_the_calendar_does() {
    for (days, date) in [
        (0, "1970-01-01"),
        (59, "1970-03-01"),
        (789, "1972-02-29"),
        (10_956, "1999-12-31"),
        (11_016, "2000-02-29"),
        (20_779, "2026-11-22"),
        (47_540, "2100-02-28"),
        (47_541, "2100-03-01"),
    ] {
        let context = ErrorContext {
            now: Some(Duration::from_secs(days * 86_400)),
            ..ErrorContext::default()
        };
        let error = rate_limit(LimitScope::Requests, Some(Duration::ZERO));
        let reply = Anthropic.error(&error, &context);
        let reset = reply.headers["anthropic-ratelimit-requests-reset"].to_str();
        assert_eq!(reset.expect("ASCII"), format!("{date}T00:00:00Z"));
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
        let reply = Anthropic.error(&ModelError::Overloaded, &context);
        reply.headers["request-id"].clone()
    };
    assert_eq!(id(7), id(7));
    assert_ne!(id(7), id(8));
    assert_eq!(id(0).len(), "req_".len() + 24);
}

#[test]
fn a_wrong_token_is_told_as_one_and_a_wrong_key_as_one() {
    for (credential, message) in [
        (
            Some(Credential::Bearer("sk-ant-oat01-x")),
            "Invalid bearer token",
        ),
        (Some(Credential::Key("sk-ant-api03-x")), "invalid x-api-key"),
        (None, "invalid x-api-key"),
    ] {
        let context = ErrorContext {
            credential,
            ..ErrorContext::default()
        };
        let reply = Anthropic.error(&ModelError::Auth, &context);
        let body = String::from_utf8_lossy(&reply.body);
        assert!(body.contains(message), "{body}");
    }
}
