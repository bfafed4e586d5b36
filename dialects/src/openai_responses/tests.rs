use std::fmt::Write as _;

use super::*;
use crate::dialect::AnswerForm;
use crate::model::{LimitScope, Role, Said};
use crate::read_request;
use crate::reader::{ModelCall, Reader};
use crate::stream::{Frame, Splitter, Template};

const SSE: AnswerForm = AnswerForm::Stream(Framing::Sse);

const TEXT: &str = include_str!("../../corpus/openai-responses/text.json");
const TOOL_CALLS: &str = include_str!("../../corpus/openai-responses/tool_calls.json");
const REFUSAL: &str = include_str!("../../corpus/openai-responses/refusal.json");
const LENGTH: &str = include_str!("../../corpus/openai-responses/length.json");
const FAILED: &str = include_str!("../../corpus/openai-responses/failed.json");
const TEXT_STREAM: &str = include_str!("../../corpus/openai-responses/text.sse");
const TOOL_CALLS_STREAM: &str = include_str!("../../corpus/openai-responses/tool_calls.sse");
const REFUSAL_STREAM: &str = include_str!("../../corpus/openai-responses/refusal.sse");
const INCOMPLETE_STREAM: &str = include_str!("../../corpus/openai-responses/incomplete.sse");
const FAILED_STREAM: &str = include_str!("../../corpus/openai-responses/failed.sse");
const ERROR_STREAM: &str = include_str!("../../corpus/openai-responses/error.sse");
const REQUEST: &str = include_str!("../../corpus/openai-responses/request_tools.json");
const PLAIN: &str = include_str!("../../corpus/openai-responses/request_plain.json");

#[test]
fn a_request_is_known_by_method_and_end_of_path() {
    for (method, path, expected) in [
        (Method::POST, "/v1/responses", true),
        (
            Method::POST,
            "/openai/v1/responses?api-version=preview",
            true,
        ),
        (Method::POST, "/gateway/responses/", true),
        (Method::GET, "/v1/responses", false),
        (Method::POST, "/v1/responses/resp_1/cancel", false),
        (Method::POST, "/v1/responses/input_tokens", false),
        (Method::POST, "/v1/myresponses", false),
    ] {
        let found = OpenAiResponses.recognises(&method, Target::new(path));
        assert_eq!(found, expected, "{method} {path}");
    }
}

#[test]
fn a_body_that_asks_for_nothing_is_not_confirmed() {
    for (body, expected) in [
        (REQUEST, true),
        (PLAIN, true),
        (r#"{"previous_response_id":"resp_1"}"#, true),
        (r#"{"prompt":{"id":"pmpt_1"}}"#, true),
        (r#"{"model":"m"}"#, false),
        (r#"{"input":"x","messages":[]}"#, false),
        ("[]", false),
    ] {
        let document = Document::parse(body.as_bytes()).expect("JSON");
        let confirmed = OpenAiResponses.confirms(document.root());
        assert_eq!(confirmed, expected, "{body}");
    }
}

#[test]
fn a_request_says_what_is_asked_for() {
    let asked = |body: &str| read_request(&OpenAiResponses, Target::default(), body.as_bytes());
    let expected = ModelRequest {
        model: Some("gpt-5-mini".to_owned()),
        stream: true,
        usage_in_stream: false,
        choices: 1,
        messages: 7,
        tools: vec!["weather".to_owned(), "shell".to_owned()],
    };
    assert_eq!(asked(REQUEST), Some(expected));
    let plain = asked(PLAIN).expect("an object");
    assert_eq!((plain.messages, plain.stream), (1, false));
}

#[test]
fn a_conversation_is_read_with_its_places() {
    let document = Document::parse(REQUEST.as_bytes()).expect("JSON");
    let conversation = OpenAiResponses.conversation(&document);
    let texts = |said: &[Said<'_>]| -> Vec<String> {
        let said = said.iter().map(|said| document.value(said.place).raw());
        said.map(str::to_owned).collect()
    };
    let roles: Vec<Role> = conversation.messages.iter().map(|m| m.role).collect();
    let expected = [
        Role::User,
        Role::Assistant,
        Role::Assistant,
        Role::Assistant,
        Role::Tool,
        Role::Tool,
        Role::System,
    ];
    assert_eq!(roles, expected);
    assert_eq!(
        texts(&conversation.messages[0].texts),
        ["\"Is it warm in Paris?\""]
    );
    assert_eq!(
        texts(&conversation.messages[6].texts),
        ["\"Metric units.\""]
    );
    let system = "\"You plan trips. Answer in one sentence.\"";
    assert_eq!(texts(&conversation.system), [system]);
    let results: Vec<_> = conversation
        .tool_results
        .iter()
        .map(|result| (result.tool.as_deref(), result.message, texts(&result.texts)))
        .collect();
    let expected = [
        (Some("shell"), 4, vec!["\"12:30\"".to_owned()]),
        (Some("weather"), 5, vec![quote("{\"celsius\": 21}")]),
    ];
    assert_eq!(results, expected);
}

/// What a reader makes of an answer.
fn read(form: AnswerForm, answer: &str) -> ModelCall {
    let mut reader = Reader::new(&OpenAiResponses, Target::default(), None);
    reader.head(Some(form));
    for chunk in answer.as_bytes().chunks(7) {
        reader.push(chunk);
    }
    reader.finish()
}

fn call(input: u64, output: u64, finish: Finish, tools: &[&str]) -> ModelCall {
    ModelCall {
        model: Some("gpt-5-mini-2026-05-01".to_owned()),
        input_tokens: Some(input),
        output_tokens: Some(output),
        finish: Some(finish),
        tool_calls: tools.iter().map(|&tool| tool.to_owned()).collect(),
        ..ModelCall::default()
    }
}

fn failed() -> ModelCall {
    ModelCall {
        input_tokens: None,
        output_tokens: None,
        error: Some("The model failed to generate a response.".to_owned()),
        ..call(0, 0, Finish::Foreign("failed".to_owned()), &[])
    }
}

const BOTH: &[&str] = &["weather", "shell"];

#[test]
fn whole_answers_are_read_into_neutral_words() {
    for (answer, expected) in [
        (TEXT, call(19, 74, Finish::Done, &[])),
        (TOOL_CALLS, call(82, 34, Finish::Tool, BOTH)),
        (REFUSAL, call(81, 11, Finish::Refused, &[])),
        (LENGTH, call(9, 8, Finish::Length, &[])),
        (FAILED, failed()),
    ] {
        assert_eq!(read(AnswerForm::Json, answer), expected, "{answer}");
    }
}

#[test]
fn streams_are_read_into_neutral_words() {
    let limited = ModelCall {
        finish: None,
        error: Some("Rate limit reached for gpt-5-mini.".to_owned()),
        ..failed()
    };
    for (stream, expected) in [
        (TEXT_STREAM, call(19, 5, Finish::Done, &[])),
        (TOOL_CALLS_STREAM, call(82, 34, Finish::Tool, BOTH)),
        (REFUSAL_STREAM, call(81, 6, Finish::Refused, &[])),
        (INCOMPLETE_STREAM, call(9, 2, Finish::Length, &[])),
        (FAILED_STREAM, failed()),
        (ERROR_STREAM, limited),
    ] {
        let expected = ModelCall {
            stream: true,
            ..expected
        };
        assert_eq!(read(SSE, stream), expected, "{stream}");
    }
}

/// The frames of a stream.
fn frames(stream: &str) -> Vec<Frame> {
    let mut splitter = Splitter::new(Framing::Sse, 1 << 20);
    let mut frames = splitter.push(stream.as_bytes());
    frames.extend(splitter.finish());
    frames
}

#[test]
fn what_is_repeated_is_marked_and_tokens_are_counted_once() {
    let mut told = String::new();
    for frame in &frames(TOOL_CALLS_STREAM) {
        let data = frame.data().expect("data");
        let document = Document::parse(&data).expect("JSON");
        let reading = OpenAiResponses.read_event(Event::of(frame, &document));
        for edge in &reading.edges {
            let mark = if edge.closes { "]" } else { "[" };
            write!(told, "{}{mark} ", edge.part).expect("a String");
        }
        for delta in &reading.deltas {
            let mark = if delta.repeats { "=" } else { "+" };
            write!(told, "{}{mark}{} ", delta.part, delta.text).expect("a String");
        }
        if reading.ends {
            told.push_str("end");
        }
    }
    let expected = "0[ 0[ 0+**Looking 0+ outside** 0=**Looking outside** 0] 0=**Looking outside** \
                    1[ 1+Two tools. 1=Two tools. 1] 1=Two tools. \
                    0] 0=**Looking outside** 1=Two tools. \
                    65536[ 65536+call_p2Jt9XnQ 65536+weather 65536+{\"ci \
                    65536+ty\":\"Paris\"} 65536={\"city\":\"Paris\"} \
                    65536] 65536=weather 65536={\"city\":\"Paris\"} \
                    131072[ 131072+call_Zc81LmVw 131072+shell 131072+da 131072+te 131072=date \
                    131072] 131072=shell 131072=date \
                    0=**Looking outside** 1=Two tools. 65536=weather \
                    65536={\"city\":\"Paris\"} 131072=shell 131072=date end";
    assert_eq!(told, expected);
}

#[test]
fn a_reason_to_stop_keeps_its_meaning_there_and_back() {
    for (finish, status, reason, back, name) in [
        (
            Finish::Done,
            "completed",
            None,
            Finish::Done,
            "response.completed",
        ),
        (
            Finish::Tool,
            "completed",
            None,
            Finish::Done,
            "response.completed",
        ),
        (
            Finish::Length,
            "incomplete",
            Some("max_output_tokens"),
            Finish::Length,
            "response.incomplete",
        ),
        (
            Finish::Filtered,
            "incomplete",
            Some("content_filter"),
            Finish::Filtered,
            "response.incomplete",
        ),
        (
            Finish::Foreign("failed".to_owned()),
            "failed",
            None,
            Finish::Foreign("failed".to_owned()),
            "response.failed",
        ),
    ] {
        let response = r#"{"status":"completed","incomplete_details":null,"output":[]}"#;
        let event = format!("{{\"type\":\"response.completed\",\"response\":{response}}}");
        for (text, named) in [(response, None), (&*event, Some(name))] {
            let document = Document::parse(text.as_bytes()).expect("JSON");
            let at = |document| -> Finished {
                let mut reading = match named {
                    None => OpenAiResponses.read_answer(document),
                    Some(_) => OpenAiResponses.read_event(Event::named(None, document)),
                };
                reading.finishes.remove(0)
            };
            let mut edits = Edits::new(&document);
            let new =
                OpenAiResponses.put_finish(&mut edits, &document, &at(&document), Some(&finish));
            assert_eq!(new, named);
            let edited = edits.apply();
            let edited = Document::parse(&edited).expect("JSON");
            assert!(edited.text().contains(&format!("\"status\":\"{status}\"")));
            let details = reason.map_or_else(
                || "null".to_owned(),
                |reason| format!("{{\"reason\":\"{reason}\"}}"),
            );
            let details = format!("\"incomplete_details\":{details}");
            assert!(edited.text().contains(&details), "{}", edited.text());
            assert_eq!(at(&edited).finish, back);
            if let Some(name) = named {
                assert!(edited.text().contains(&format!("\"type\":\"{name}\"")));
            }
        }
    }
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

#[test]
fn other_words_are_a_message_from_its_beginning_to_its_end() {
    let item_added = 2;
    let said = [Saying::Text("no"), Saying::Refusal("no")].map(|saying| {
        made(TEXT_STREAM, item_added, |event| {
            OpenAiResponses.say_events(event, 0, saying)
        })
    });
    insta::assert_snapshot!(said.join("\n"));
    for (choice, text) in [(1, "no"), (0, "")] {
        let none = made(TEXT_STREAM, item_added, |event| {
            OpenAiResponses.say_events(event, choice, Saying::Text(text))
        });
        assert_eq!(none, "");
    }
}

#[test]
fn other_words_are_said_in_a_whole_answer_and_in_the_last_event() {
    let frames = frames(TOOL_CALLS_STREAM);
    let last = frames.last().and_then(Frame::data).expect("data");
    let last = String::from_utf8(last.into_owned()).expect("UTF-8");
    for answer in [TEXT, TOOL_CALLS, REFUSAL, LENGTH, &last] {
        let document = Document::parse(answer.as_bytes()).expect("JSON");
        for (saying, finish) in [
            (Saying::Text("no"), Finish::Done),
            (Saying::Refusal("no"), Finish::Refused),
            (Saying::Text(""), Finish::Filtered),
        ] {
            let mut edits = Edits::new(&document);
            let can = OpenAiResponses.say(&mut edits, &document, 0, saying, &finish);
            assert!(can, "{answer}");
            let edited = edits.apply();
            let edited = Document::parse(&edited).expect("JSON");
            let response = edited.root().get("response").unwrap_or(edited.root());
            let reading = answer::read(response);
            assert_eq!(reading.finishes[0].finish, finish);
            let text: String = reading.deltas.iter().map(|delta| &*delta.text).collect();
            let expected = if finish == Finish::Filtered { "" } else { "no" };
            let before = document.root().get("response").unwrap_or(document.root());
            let before = answer::read(before);
            let thoughts = before.deltas.iter().take_while(|it| it.is_thinking());
            let thought: String = thoughts.map(|delta| &*delta.text).collect();
            assert_eq!(text, format!("{thought}{expected}"));
        }
    }
    let document = Document::parse(b"{\"error\":{}}").expect("JSON");
    let mut edits = Edits::new(&document);
    assert!(!OpenAiResponses.say(&mut edits, &document, 0, Saying::Text("no"), &Finish::Done));
}

#[test]
fn the_last_event_holds_the_whole_answer() {
    let frames = frames(TEXT_STREAM);
    let data: Vec<_> = frames
        .iter()
        .map(|frame| frame.data().expect("data"))
        .collect();
    let first = Document::parse(&data[0]).expect("JSON");
    let last = Document::parse(&data[data.len() - 1]).expect("JSON");
    let transcript = |last| Transcript {
        first: Event::named(None, &first),
        last: Event::named(None, last),
        parts: Vec::new(),
        finishes: Vec::new(),
        tokens: (None, None),
    };
    let whole = OpenAiResponses.whole_answer(&transcript(&last));
    let whole = whole.expect("told");
    let expected = call(19, 5, Finish::Done, &[]);
    assert_eq!(read(AnswerForm::Json, &whole), expected);
    assert_eq!(OpenAiResponses.whole_answer(&transcript(&first)), None);
}

fn context() -> ErrorContext<'static> {
    ErrorContext {
        draw: 42,
        account: 42,
        credential: None,
        model: Some("gpt-5-mini"),
        ..ErrorContext::default()
    }
}

#[test]
fn errors_are_those_of_the_other_endpoint_but_for_their_words() {
    for (error, status, message, param) in [
        (
            ModelError::ContextLength,
            400,
            "Your input exceeds the context window of this model. Please adjust your input and \
             try again.",
            "input",
        ),
        (
            ModelError::ModelNotFound,
            404,
            "The requested model 'gpt-5-mini' does not exist.",
            "model",
        ),
    ] {
        let reply = OpenAiResponses.error(&error, &context());
        assert_eq!(reply.status.as_u16(), status);
        let body: serde_json::Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!(body["error"]["message"], message);
        assert_eq!(body["error"]["param"], param);
    }
    let limit = ModelError::RateLimit {
        scope: LimitScope::Requests,
        retry_after: None,
        figures: None,
    };
    let parts = |reply: WireReply| (reply.status, reply.headers, reply.body);
    for error in [limit, ModelError::Overloaded, ModelError::Timeout] {
        let there = crate::by_name("openai-chat").expect("built in");
        let here = parts(OpenAiResponses.error(&error, &context()));
        assert_eq!(here, parts(there.error(&error, &context())));
    }
}

#[test]
fn an_error_in_a_stream_is_numbered_after_the_event_before_it() {
    let said = made(TEXT_STREAM, 4, |event| {
        let error = ModelError::Overloaded;
        let made = OpenAiResponses.error_event(&error, &context(), Some(event));
        made.into_iter().collect()
    });
    let start = "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"Our servers \
                 are currently overloaded";
    assert!(said.starts_with(start), "{said}");
    let words =
        "\"type\":\"service_unavailable_error\",\"param\":null,\"code\":\"server_is_overloaded\"";
    assert!(said.contains(words), "{said}");
    assert!(said.ends_with("\"sequence_number\":5}\n\n"), "{said}");
    assert!(read(SSE, &said).error.is_some());
}
