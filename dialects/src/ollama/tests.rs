use std::time::Duration;

use http::StatusCode;

use super::*;
use crate::dialect::{AnswerForm, Part};
use crate::model::{DeltaKind, LimitScope, Role};
use crate::reader::{ModelCall, Reader};
use crate::stream::{Frame, Splitter, Template};
use crate::{confirm, read_request};

macro_rules! corpus {
    ($file:literal) => {
        include_str!(concat!("../../corpus/ollama/", $file))
    };
}

const LINES: AnswerForm = AnswerForm::Stream(Framing::Lines);
const CHAT: &str = corpus!("request_tools.json");
const GENERATE: &str = corpus!("request_generate.json");

#[test]
fn a_call_is_known_by_its_path_and_confirmed_by_its_body() {
    let ours = Some("ollama");
    let found = |path: &str, body: &str| {
        confirm(&Method::POST, Target::new(path), body.as_bytes()).map(Dialect::name)
    };
    for (path, body, expected) in [
        ("/api/chat", CHAT, ours),
        ("/ollama/api/chat/", CHAT, ours),
        ("/api/generate", GENERATE, ours),
        ("/api/chat", r#"{"model":"m","messages":[]}"#, ours),
        ("/api/embed", CHAT, None),
        ("/v1/chat/completions", CHAT, Some("openai-chat")),
        ("/myapi/chat", CHAT, None),
        // Other people's /api/chat.
        (
            "/api/chat",
            r#"{"messages":[{"role":"user","content":"hi"}]}"#,
            None,
        ),
        (
            "/api/chat",
            r#"{"id":"1","model":"m","messages":[{"role":"user","parts":[]}]}"#,
            None,
        ),
        ("/api/chat", r#"{"model":"m","message":"hi"}"#, None),
        // Loads a model, says nothing.
        ("/api/generate", r#"{"model":"m"}"#, None),
        ("/api/generate", "[]", None),
    ] {
        assert_eq!(found(path, body), expected, "{path} {body}");
    }
    assert!(!Ollama.recognises(&Method::GET, Target::new("/api/chat")));
}

fn asked(body: &str) -> Option<ModelRequest> {
    read_request(&Ollama, Target::default(), body.as_bytes())
}

#[test]
fn a_request_says_what_is_asked_for_and_streams_unless_it_says_no() {
    let expected = ModelRequest {
        model: Some("qwen3".to_owned()),
        stream: false,
        usage_in_stream: false,
        choices: 1,
        messages: 5,
        tools: vec!["weather".to_owned(), "time".to_owned()],
    };
    assert_eq!(asked(CHAT), Some(expected));
    let generate = asked(GENERATE).expect("a request");
    assert_eq!((generate.stream, generate.messages), (true, 1));
    for (body, stream) in [
        ("{}", true),
        (r#"{"stream":null}"#, true),
        (r#"{"stream":true}"#, true),
        (r#"{"stream":false}"#, false),
    ] {
        assert_eq!(
            asked(body).map(|asked| asked.stream),
            Some(stream),
            "{body}"
        );
    }
}

#[test]
fn a_result_is_of_the_tool_that_it_names_or_that_was_called_just_before() {
    let call = |tool: &str| format!(r#"{{"function":{{"name":"{tool}","arguments":{{}}}}}}"#);
    let calls = |calls: &str| format!(r#"{{"role":"assistant","tool_calls":[{calls}]}}"#);
    let (one, two) = (
        calls(&call("a")),
        calls(&format!("{},{}", call("a"), call("b"))),
    );
    let result = |more: &str| format!(r#"{{"role":"tool",{more}"content":"fine"}}"#);
    let nameless = result("");
    for (messages, expected) in [
        (
            format!("{one},{}", result(r#""tool_name":"c","#)),
            &[Some("c")][..],
        ),
        (format!("{one},{}", result(r#""name":"c","#)), &[Some("c")]),
        (format!("{one},{nameless}"), &[Some("a")]),
        // Two calls, or something between: nobody says which.
        (format!("{two},{nameless},{nameless}"), &[None, None]),
        (format!("{one},{nameless},{nameless}"), &[Some("a"), None]),
        (
            format!(r#"{one},{{"role":"user","content":"Go on."}},{nameless}"#),
            &[None],
        ),
        (
            format!("{one},{}", result(r#""tool_call_id":"x","#)),
            &[None],
        ),
    ] {
        let body = format!(r#"{{"model":"m","messages":[{messages}]}}"#);
        let document = Document::parse(body.as_bytes()).expect("JSON");
        let results = Ollama.conversation(&document).tool_results;
        let tools: Vec<_> = results
            .iter()
            .map(|result| result.tool.as_deref())
            .collect();
        assert_eq!(tools, expected, "{messages}");
    }
}

#[test]
fn a_conversation_is_read_with_its_places() {
    let document = Document::parse(CHAT.as_bytes()).expect("JSON");
    let conversation = Ollama.conversation(&document);
    let messages: Vec<_> = conversation
        .messages
        .iter()
        .map(|message| (message.role, message.texts.len()))
        .collect();
    let expected = [
        (Role::System, 1),
        (Role::User, 1),
        (Role::Assistant, 1),
        (Role::Tool, 0),
        (Role::Tool, 0),
    ];
    assert_eq!(messages, expected);
    let results: Vec<_> = conversation
        .tool_results
        .iter()
        .map(|result| {
            let said = document.value(result.content).raw();
            (
                result.call.as_deref(),
                result.tool.as_deref(),
                result.message,
                said,
            )
        })
        .collect();
    let expected = [
        (Some("call_8d1xw2kq"), Some("weather"), 3, "\"sunny\""),
        (None, Some("time"), 4, "\"noon\""),
    ];
    assert_eq!(results, expected);
    let document = Document::parse(GENERATE.as_bytes()).expect("JSON");
    let conversation = Ollama.conversation(&document);
    assert_eq!(conversation.system[0].text, "Be brief.");
    assert_eq!(
        conversation.messages[0].texts[0].text,
        "Why is the sky blue?"
    );
}

/// What a reader makes of an answer.
fn read(form: AnswerForm, answer: &str) -> ModelCall {
    let mut reader = Reader::new(&Ollama, Target::default(), None);
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

fn calling(call: ModelCall) -> ModelCall {
    ModelCall {
        tool_calls: vec!["weather".to_owned(), "time".to_owned()],
        ..call
    }
}

#[test]
fn whole_answers_are_read_into_neutral_words() {
    for (name, answer, expected) in [
        (
            "text",
            corpus!("text.json"),
            call("llama3.2", 26, 7, Finish::Done),
        ),
        (
            "tool calls",
            corpus!("tool_calls.json"),
            calling(call("qwen3", 180, 41, Finish::Tool)),
        ),
        (
            "generate",
            corpus!("generate.json"),
            call("llama3.2", 31, 4, Finish::Length),
        ),
        (
            "error",
            corpus!("error.json"),
            ModelCall {
                error: Some("model 'nope' not found".to_owned()),
                ..ModelCall::default()
            },
        ),
    ] {
        assert_eq!(read(AnswerForm::Json, answer), expected, "{name}");
    }
}

#[test]
fn streams_are_read_into_neutral_words() {
    let failed = ModelCall {
        model: Some("gemma4".to_owned()),
        error: Some("an error was encountered while running the model".to_owned()),
        ..ModelCall::default()
    };
    for (name, stream, expected) in [
        (
            "text",
            corpus!("text.ndjson"),
            call("qwen3", 26, 9, Finish::Done),
        ),
        (
            "tool calls",
            corpus!("tool_calls.ndjson"),
            calling(call("qwen3", 26, 41, Finish::Tool)),
        ),
        (
            "generate",
            corpus!("generate.ndjson"),
            call("gemma4", 31, 2, Finish::Length),
        ),
        ("error", corpus!("error.ndjson"), failed),
    ] {
        let expected = ModelCall {
            stream: true,
            ..expected
        };
        assert_eq!(read(LINES, stream), expected, "{name}");
    }
}

#[test]
fn pieces_are_found_where_they_stand() {
    let document = Document::parse(corpus!("tool_calls.json").as_bytes()).expect("JSON");
    let reading = Ollama.read_answer(&document);
    let pieces: Vec<(DeltaKind, &str)> = reading
        .deltas
        .iter()
        .map(|delta| (delta.kind, document.value(delta.place).raw()))
        .collect();
    let expected = [
        (DeltaKind::Reasoning, "\"Both are needed.\""),
        (DeltaKind::Text, "\"\""),
        (DeltaKind::ToolId, "\"call_8d1xw2kq\""),
        (DeltaKind::ToolName, "\"weather\""),
        (DeltaKind::ToolArguments, r#"{"city":"Kiel"}"#),
        (DeltaKind::ToolId, "\"call_p0o4m7zt\""),
        (DeltaKind::ToolName, "\"time\""),
        (DeltaKind::ToolArguments, "{}"),
    ];
    assert_eq!(pieces, expected);
    assert!(reading.ends);
    assert_ne!(reading.deltas[2].part, reading.deltas[5].part);
}

/// A line with its end put otherwise.
fn finished(line: &str, finish: Option<&Finish>) -> String {
    let document = Document::parse(line.as_bytes()).expect("JSON");
    let at = Ollama
        .read_event(Event::named(None, &document))
        .finishes
        .remove(0);
    let mut edits = Edits::new(&document);
    Ollama.put_finish(&mut edits, &document, &at, finish);
    String::from_utf8(edits.apply()).expect("UTF-8")
}

#[test]
fn a_reason_to_stop_keeps_its_meaning_there_and_back() {
    for (finish, word, back) in [
        (Finish::Done, "stop", Finish::Done),
        (Finish::Length, "length", Finish::Length),
        (Finish::Tool, "stop", Finish::Done),
        (Finish::Filtered, "stop", Finish::Done),
        (Finish::Context, "length", Finish::Length),
        (
            Finish::Foreign("load".to_owned()),
            "load",
            Finish::Foreign("load".to_owned()),
        ),
    ] {
        for line in [
            r#"{"response":"","done":true,"done_reason":"x","eval_count":3}"#,
            // As older servers end.
            r#"{"response":"","done":true,"eval_count":3}"#,
        ] {
            let edited = finished(line, Some(&finish));
            let expected =
                format!(r#"{{"response":"","done":true,"done_reason":"{word}","eval_count":3}}"#);
            assert_eq!(edited, expected);
            let document = Document::parse(edited.as_bytes()).expect("JSON");
            let reading = Ollama.read_event(Event::named(None, &document));
            assert_eq!(reading.finishes[0].finish, back);
        }
    }
}

#[test]
fn an_end_taken_back_leaves_a_line_like_any_other() {
    for line in [
        r#"{"model":"m","response":"x","done":true,"done_reason":"stop","context":[1],"total_duration":1,"eval_count":3}"#,
        r#"{"model":"m","response":"x","done":true,"eval_count":3}"#,
    ] {
        let open = r#"{"model":"m","response":"x","done":false}"#;
        assert_eq!(finished(line, None), open);
    }
}

fn frames(stream: &str) -> Vec<Frame> {
    let mut splitter = Splitter::new(Framing::Lines, 1 << 20);
    let mut frames = splitter.push(stream.as_bytes());
    frames.extend(splitter.finish());
    frames
}

/// What is made of the `at`th line of a stream, framed like it.
fn made(stream: &str, at: usize, by: impl Fn(Event<'_>) -> Vec<Made>) -> String {
    let frame = &frames(stream)[at];
    let data = frame.data().expect("data");
    let document = Document::parse(&data).expect("JSON");
    let events = by(Event::of(frame, &document));
    let bytes = events
        .iter()
        .flat_map(|event| Template::from(frame).frame(event).to_vec());
    String::from_utf8(bytes.collect()).expect("UTF-8")
}

#[test]
fn only_the_server_knows_how_a_stream_ends() {
    let end = EndOfChoice {
        choice: 0,
        finish: &Finish::Length,
        tokens: 1,
        instead: None,
        kept: true,
    };
    for at in 0..7 {
        let none = made(corpus!("text.ndjson"), at, |event| {
            let mut made = Ollama.finish_events(event, &end);
            made.extend(Ollama.say_events(event, 0, Saying::Text("no")));
            made
        });
        assert_eq!(none, "", "line {at}");
    }
    assert!(Ollama.end(Framing::Lines).is_empty());
    // Where all came in one line, everything is known.
    let only = corpus!("generate.json");
    let said = made(only, 0, |event| {
        let mut made = Ollama.say_events(event, 0, Saying::Text("no"));
        made.extend(Ollama.finish_events(event, &end));
        made
    });
    let head = r#"{"model":"llama3.2","created_at":"2026-10-26T17:21:21.196249Z","response":"#;
    let more = concat!(
        r#""context":[128006,882,128007],"total_duration":4883583458,"load_duration":1334875,"#,
        r#""prompt_eval_count":31,"prompt_eval_duration":342546000,"eval_count":1,"#,
        r#""eval_duration":453559900}"#
    );
    let expected = format!(
        "{head}\"no\",\"done\":false}}\n{head}\"\",\"done\":true,\"done_reason\":\"length\",{more}\n"
    );
    assert_eq!(said, expected);
}

#[test]
fn other_words_are_said_in_a_whole_answer() {
    for (name, answer, thought) in [
        ("text", corpus!("text.json"), None),
        (
            "tool calls",
            corpus!("tool_calls.json"),
            Some((DeltaKind::Reasoning, "Both are needed.")),
        ),
        ("generate", corpus!("generate.json"), None),
    ] {
        let document = Document::parse(answer.as_bytes()).expect("JSON");
        let mut edits = Edits::new(&document);
        let saying = Saying::Refusal("no");
        assert!(
            Ollama.say(&mut edits, &document, 0, saying, &Finish::Done),
            "{name}"
        );
        let edited = edits.apply();
        let edited = Document::parse(&edited).expect("JSON");
        let reading = Ollama.read_answer(&edited);
        let said: Vec<_> = reading.deltas.iter().map(|d| (d.kind, &*d.text)).collect();
        let words = thought.into_iter().chain([(DeltaKind::Text, "no")]);
        assert_eq!(said, words.collect::<Vec<_>>(), "{name}");
        assert_eq!(reading.finishes[0].finish, Finish::Done, "{name}");
        let mut edits = Edits::new(&document);
        assert!(!Ollama.say(&mut edits, &document, 1, saying, &Finish::Done));
        assert!(edits.is_empty());
    }
    let document = Document::parse(corpus!("error.json").as_bytes()).expect("JSON");
    let mut edits = Edits::new(&document);
    assert!(!Ollama.say(&mut edits, &document, 0, Saying::Text("no"), &Finish::Done));
}

#[test]
fn a_stream_put_together_is_an_answer_with_the_last_line_s_counts() {
    let part = |kind, text: &str| Part {
        choice: 0,
        part: 0,
        kind,
        text: text.to_owned(),
        call: None,
        signature: None,
    };
    let whole = |stream: &str, parts: Vec<Part>| {
        let frames = frames(stream);
        let data: Vec<_> = frames.iter().filter_map(Frame::data).collect();
        let first = Document::parse(&data[0]).expect("JSON");
        let last = Document::parse(data.last().expect("some")).expect("JSON");
        Ollama.whole_answer(&Transcript {
            first: Event::named(None, &first),
            last: Event::named(None, &last),
            parts,
            finishes: vec![(0, Finish::Done)],
            tokens: (Some(26), Some(41)),
        })
    };
    let called = Part {
        call: Some(("call_1".to_owned(), "weather".to_owned())),
        ..part(DeltaKind::ToolArguments, r#"{"city":"Kiel"}"#)
    };
    let parts = vec![
        part(DeltaKind::Reasoning, "Hm."),
        part(DeltaKind::Text, "So."),
        called,
    ];
    let answer = whole(corpus!("tool_calls.ndjson"), parts).expect("an answer");
    let message = concat!(
        r#""message":{"role":"assistant","content":"So.","thinking":"Hm.","tool_calls":"#,
        r#"[{"id":"call_1","function":{"index":0,"name":"weather","arguments":{"city":"Kiel"}}}]},"#,
        r#""done":true,"done_reason":"stop","#
    );
    assert!(
        answer.contains(message) && answer.contains("\"eval_count\":41"),
        "{answer}"
    );
    let answer = whole(
        corpus!("generate.ndjson"),
        vec![part(DeltaKind::Text, "So.")],
    );
    let answer = answer.expect("an answer");
    assert!(
        answer.contains(r#""response":"So.","done":true"#),
        "{answer}"
    );
    assert_eq!(whole(corpus!("error.ndjson"), Vec::new()), None);
}

fn context() -> ErrorContext<'static> {
    ErrorContext {
        draw: 42,
        account: 42,
        credential: None,
        model: Some("qwen3"),
        ..ErrorContext::default()
    }
}

#[test]
fn every_error_reads_like_the_server_s() {
    let limit = ModelError::RateLimit {
        scope: LimitScope::Requests,
        retry_after: Some(Duration::from_secs(7)),
        figures: None,
    };
    let server_error = |status| ModelError::ServerError { status };
    let errors = [
        limit,
        ModelError::QuotaExhausted,
        ModelError::ContextLength,
        ModelError::ContentFilter,
        ModelError::Auth,
        ModelError::ModelNotFound,
        ModelError::Timeout,
        ModelError::Overloaded,
        server_error(500),
        server_error(502),
    ];
    let written = errors.map(|error| {
        let reply = Ollama.error(&error, &context());
        let media_type = reply.headers["content-type"].to_str().expect("ASCII");
        assert_eq!(media_type, "application/json; charset=utf-8");
        assert_eq!(reply.headers.len(), 1, "nothing announces a wait");
        assert_ne!(reply.status, StatusCode::OK);
        let body = String::from_utf8_lossy(&reply.body).into_owned();
        Document::parse(body.as_bytes()).expect("JSON");
        let line = Ollama.error_event(&error, &context(), None).expect("one");
        let line = String::from_utf8(line.data).expect("UTF-8");
        format!("{error:?}\n{}\n{body}\nin a stream: {line}\n", reply.status)
    });
    insta::assert_snapshot!(written.join("\n"));
}

#[test]
fn an_error_in_a_stream_ends_it() {
    let error = ModelError::ServerError { status: 500 };
    let event = Ollama.error_event(&error, &context(), None).expect("one");
    let document = Document::parse(&event.data).expect("JSON");
    let reading = Ollama.read_event(Event::named(None, &document));
    assert!(reading.error.is_some() && reading.ends);
}
