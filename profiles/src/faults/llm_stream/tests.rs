use proptest::prelude::*;
use squall_dialects::model::ModelError;
use squall_dialects::stream::Framing;
use squall_dialects::tokens::{self, Counting};
use squall_dialects::{Dialect, Reader, Target, by_name, json};

use bytes::Bytes;
use squall_dialects::model::ModelRequest;

use super::*;
use crate::changes::{CallError, Instead, ResponseDrift, Rewrite, Severity, TextDrift, WrongCall};
use crate::faults::editing::EventsEditor;
use crate::plan::Ending;

mod answers;
mod calls;
mod dialects;
mod drifts;
mod forms;
mod sources;
mod thinking;

const SSE: AnswerForm = AnswerForm::Stream(Framing::Sse);

const HEAD: &str = r#""id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m""#;

fn dialect() -> &'static dyn Dialect {
    by_name("openai-chat").expect("built in")
}

fn editor(fault: &StreamFault, form: AnswerForm) -> AnswerEditor {
    super::editor(fault, form, AnsweredCall::new(dialect()))
}

/// An editor for an answer to `request`.
fn editor_for(request: &ModelRequest, fault: &StreamFault, form: AnswerForm) -> AnswerEditor {
    let call = AnsweredCall::new(dialect()).for_request(request);
    super::editor(fault, form, call)
}

fn events_editor(fault: &StreamFault) -> Box<dyn EventsEditor> {
    match editor(fault, SSE) {
        AnswerEditor::Events(editor) => editor,
        AnswerEditor::Whole(_) => panic!("{fault:?} needs the whole stream"),
    }
}

/// An event that carries `delta` for choice 0.
fn chunk(delta: &str) -> String {
    choice_chunk(0, delta, "null")
}

fn choice_chunk(choice: u64, delta: &str, finish: &str) -> String {
    format!(
        "data: {{{HEAD},\"choices\":[{{\"index\":{choice},\"delta\":{delta},\"logprobs\":null,\
         \"finish_reason\":{finish}}}]}}\n\n"
    )
}

fn word(text: &str) -> String {
    chunk(&format!("{{\"content\":{}}}", json::quote(text)))
}

fn role() -> String {
    chunk(r#"{"role":"assistant","content":""}"#)
}

fn stop() -> String {
    choice_chunk(0, "{}", r#""stop""#)
}

const DONE: &str = "data: [DONE]\n\n";

/// `The capital of France is Paris.`, a token an event.
fn paris() -> String {
    let words = ["The", " capital", " of", " France", " is", " Paris", "."]
        .map(word)
        .concat();
    format!("{}{words}{}{DONE}", role(), stop())
}

/// The same stream with token counts, as `include_usage` gives them.
fn counted(stream: &str) -> String {
    let usage = format!(
        "data: {{{HEAD},\"choices\":[],\"usage\":{{\"prompt_tokens\":10,\"completion_tokens\":7,\
         \"total_tokens\":17}}}}\n\n"
    );
    stream
        .replace("}]}\n\n", "}],\"usage\":null}\n\n")
        .replace(DONE, &(usage + DONE))
}

/// The steps for an answer that comes in one chunk, and why it stays unchanged.
fn run(editor: AnswerEditor, answer: &str) -> (Vec<Step>, Option<String>) {
    run_chunked(editor, answer.as_bytes(), usize::MAX)
}

/// [`run`] for an answer in chunks of `size` bytes.
fn run_chunked(editor: AnswerEditor, answer: &[u8], size: usize) -> (Vec<Step>, Option<String>) {
    match editor {
        AnswerEditor::Whole(edit) => match edit(answer) {
            Ok(edited) => (edited.steps, None),
            Err(why) => (vec![Step::Emit(Bytes::copy_from_slice(answer))], Some(why)),
        },
        AnswerEditor::Events(mut editor) => {
            let chunks = answer.chunks(size);
            let mut steps: Vec<_> = chunks.flat_map(|chunk| editor.push(chunk)).collect();
            steps.extend(editor.finish());
            let why = editor.untouched_because();
            assert_eq!(why.is_none(), editor.touched());
            (steps, why)
        }
    }
}

/// What the agent receives, and how it ends: `""`, `"finish"` or `"break"`.
fn received(steps: &[Step]) -> (String, &'static str) {
    let mut text = Vec::new();
    for step in steps {
        match step {
            Step::Emit(bytes) => text.extend_from_slice(bytes),
            Step::Wait(_) => {}
            Step::End(ending) => {
                assert_eq!(*ending, Ending::Close);
                assert_eq!(Some(step), steps.last());
                return (String::from_utf8(text).expect("UTF-8"), "break");
            }
            Step::Finish => {
                assert_eq!(Some(step), steps.last());
                return (String::from_utf8(text).expect("UTF-8"), "finish");
            }
        }
    }
    (String::from_utf8(text).expect("UTF-8"), "")
}

/// What the agent gets of an answer that the fault changes.
fn changed(fault: &StreamFault, form: AnswerForm, answer: &str) -> (String, &'static str) {
    let (steps, why) = run(editor(fault, form), answer);
    assert_eq!(why, None, "{fault:?}");
    received(&steps)
}

fn truncated(max_tokens: u64, form: AnswerForm, answer: &str) -> (String, &'static str) {
    changed(&StreamFault::Truncate { max_tokens }, form, answer)
}

fn cut(after_tokens: u64, form: AnswerForm, answer: &str) -> (String, &'static str) {
    changed(&StreamFault::Cut { after_tokens }, form, answer)
}

#[test]
fn a_truncated_stream_ends_as_the_provider_ends_one() {
    let expected = format!(
        "{}{}{}{}{DONE}",
        role(),
        word("The"),
        word(" capital"),
        choice_chunk(0, "{}", r#""length""#)
    );
    assert_eq!(truncated(2, SSE, &paris()), (expected, ""));
}

#[test]
fn nothing_is_left_of_a_stream_truncated_to_nothing_but_its_frame() {
    let expected = format!("{}{}{DONE}", role(), choice_chunk(0, "{}", r#""length""#));
    assert_eq!(truncated(0, SSE, &paris()), (expected.clone(), ""));
    // Some servers put the role and the first words into one event.
    let joined = format!(
        "{}{}{DONE}",
        chunk(r#"{"role":"assistant","content":"Hello"}"#),
        stop()
    );
    assert_eq!(truncated(0, SSE, &joined), (expected, ""));
}

#[test]
fn a_call_whose_id_comes_alone_keeps_it() {
    let call = |call: &str| chunk(&format!(r#"{{"tool_calls":[{{"index":0,{call}}}]}}"#));
    let id = call(r#""id":"call_1","type":"function""#);
    let name = call(r#""function":{"name":"weather","arguments":"{}"}"#);
    let stream = role() + &id + &name + &stop() + DONE;
    let fault = StreamFault::Truncate { max_tokens: 100 };
    let (text, _) = received(&run(editor(&fault, SSE), &stream).0);
    assert_eq!(text, stream);
}

#[test]
fn a_finish_in_the_event_that_is_cut_becomes_length() {
    let last = |text, reason| choice_chunk(0, &format!("{{\"content\":\"{text}\"}}"), reason);
    let stream = format!("{}{DONE}", last("One two three", r#""stop""#));
    let (text, _) = truncated(2, SSE, &stream);
    assert_eq!(text, format!("{}{DONE}", last("One two", r#""length""#)));
}

#[test]
fn token_counts_are_waited_for_and_say_what_was_kept() {
    let (text, ending) = truncated(2, SSE, &counted(&paris()));
    let without_counts = format!(
        "{}{}{}{}",
        role(),
        word("The"),
        word(" capital"),
        choice_chunk(0, "{}", r#""length""#)
    );
    let expected = counted(&(without_counts + DONE))
        .replace("s\":7,", "s\":2,")
        .replace(":17}", ":12}");
    assert_eq!((text, ending), (expected, ""));
}

#[test]
fn the_other_choices_of_a_stream_go_on() {
    let say = |choice, text| choice_chunk(choice, &format!("{{\"content\":\"{text}\"}}"), "null");
    let end = |choice, reason| choice_chunk(choice, "{}", reason);
    let stream = [
        say(0, "a"),
        say(1, "b"),
        say(0, " a"),
        say(0, " dropped"),
        end(1, "\"stop\""),
        end(0, "\"stop\""),
        DONE.to_owned(),
    ];
    let request = ModelRequest {
        choices: 2,
        ..ModelRequest::default()
    };
    let fault = StreamFault::Truncate { max_tokens: 1 };
    let editor = editor_for(&request, &fault, SSE);
    let (text, ending) = received(&run(editor, &stream.concat()).0);
    let expected = [
        say(0, "a"),
        say(1, "b"),
        end(1, "\"stop\""),
        end(0, "\"length\""),
        DONE.to_owned(),
    ];
    assert_eq!((text, ending), (expected.concat(), ""));
}

#[test]
fn tool_calls_count_and_are_cut_like_text() {
    let call = |index, name: &str| {
        chunk(&format!(
            r#"{{"tool_calls":[{{"index":{index},"id":"call_{index}","type":"function","function":{{"name":"{name}","arguments":""}}}}]}}"#
        ))
    };
    let arguments = |index, text: &str| {
        let text = json::quote(text);
        chunk(&format!(
            r#"{{"tool_calls":[{{"index":{index},"function":{{"arguments":{text}}}}}]}}"#
        ))
    };
    let stream = [
        role(),
        call(0, "search"),
        arguments(0, "{\"q\":"),
        arguments(0, "1}"),
        call(1, "fetch"),
        choice_chunk(0, "{}", "\"tool_calls\""),
        DONE.to_owned(),
    ];
    let length = choice_chunk(0, "{}", "\"length\"");
    // name 1 · `{"` 1 · `q` 1 · `":` 1 · `1` 1 · `}` 1
    let (text, _) = truncated(3, SSE, &stream.concat());
    let kept = [
        role(),
        call(0, "search"),
        arguments(0, "{\"q"),
        length.clone(),
        DONE.to_owned(),
    ];
    assert_eq!(text, kept.concat());
    let (text, _) = truncated(6, SSE, &stream.concat());
    let kept = stream[..4].concat() + &length + DONE;
    assert_eq!(text, kept);
}

#[test]
fn a_stream_breaks_off_behind_its_last_token() {
    for (after_tokens, words) in [(0, 0), (1, 1), (3, 3), (7, 7)] {
        let all = ["The", " capital", " of", " France", " is", " Paris", "."];
        let expected = role() + &all[..words].iter().copied().map(word).collect::<String>();
        assert_eq!(cut(after_tokens, SSE, &paris()), (expected, "break"));
    }
}

#[test]
fn a_slow_stream_waits_for_the_first_token_and_then_keeps_pace() {
    let fault = StreamFault::Slow {
        time_to_first_token: Duration::from_secs(2),
        tokens_per_second: Some(4.0),
    };
    let stream = [
        role(),
        word("One"),
        word(" two three"),
        stop(),
        DONE.to_owned(),
    ];
    let (steps, _) = run(editor(&fault, SSE), &stream.concat());
    let emit = |event: &String| Step::Emit(Bytes::copy_from_slice(event.as_bytes()));
    let expected = [
        emit(&stream[0]),
        Step::Wait(Duration::from_secs(2)),
        emit(&stream[1]),
        Step::Wait(Duration::from_millis(500)),
        emit(&stream[2]),
        emit(&stream[3]),
        emit(&stream[4]),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn events_go_on_as_soon_as_they_are_complete() {
    for fault in [
        StreamFault::Truncate { max_tokens: 5 },
        StreamFault::Cut { after_tokens: 5 },
        StreamFault::Slow {
            time_to_first_token: Duration::ZERO,
            tokens_per_second: None,
        },
    ] {
        let mut editor = events_editor(&fault);
        let event = word("One");
        let (head, last) = event.split_at(event.len() - 1);
        assert_eq!(editor.push(head.as_bytes()), []);
        assert_eq!(
            editor.push(last.as_bytes()),
            [Step::Emit(Bytes::from(event.clone()))]
        );
    }
}

const WHOLE: &str = r#"{ "id": "chatcmpl-1", "big": 12345678901234567890123,
  "choices": [ {"index": 0, "message": {"role": "assistant", "content": "One t\u0077o three", "refusal": null,
    "tool_calls": [ {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}} ]},
    "logprobs": {"content": [1]}, "finish_reason": "tool_calls"} ],
  "usage": {"prompt_tokens": 9, "completion_tokens": 60, "total_tokens": 69,
    "completion_tokens_details": {"reasoning_tokens": 50}} }"#;

#[test]
fn a_whole_answer_is_truncated_in_place() {
    let (text, ending) = truncated(2, AnswerForm::Json, WHOLE);
    let call = r#" {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}} "#;
    let expected = WHOLE
        .replace("o three", "o")
        .replace(&format!(",\n    \"tool_calls\": [{call}]"), "")
        .replace("\"logprobs\": {\"content\": [1]}", "\"logprobs\": null")
        .replace("\"tool_calls\"}", "\"length\"}")
        .replace(": 60,", ": 52,")
        .replace(": 69,", ": 61,");
    assert_eq!((text, ending), (expected, ""));
    // One token more than the text buys the tool's name, but no arguments.
    let (text, _) = truncated(4, AnswerForm::Json, WHOLE);
    assert!(
        text.contains(r#""function": {"name": "search", "arguments": ""}"#),
        "{text}"
    );
    assert!(
        text.contains(r#""content": "One t\u0077o three""#),
        "{text}"
    );
}

#[test]
fn a_whole_answer_breaks_off_behind_its_last_token() {
    for (after_tokens, last) in [
        (0, "\"content\": \""),
        (2, "\"One t\\u0077o"),
        (3, "o three"),
        (4, "\"search"),
        (5, "{}"),
    ] {
        let (text, ending) = cut(after_tokens, AnswerForm::Json, WHOLE);
        assert!(text.ends_with(last) && WHOLE.starts_with(&text), "{text}");
        assert_eq!(ending, "break");
    }
}

#[test]
fn a_whole_answer_comes_when_its_last_token_would() {
    let fault = StreamFault::Slow {
        time_to_first_token: Duration::from_secs(1),
        tokens_per_second: Some(60.0),
    };
    let (steps, _) = run(editor(&fault, AnswerForm::Json), WHOLE);
    let whole = Step::Emit(Bytes::from_static(WHOLE.as_bytes()));
    assert_eq!(steps, [Step::Wait(Duration::from_secs(2)), whole]);
}

#[test]
#[rustfmt::skip]
fn a_fault_that_finds_nothing_to_do_says_why_and_changes_nothing() {
    let fault = StreamFault::Truncate { max_tokens: 100 };
    let slow = StreamFault::Slow {
        time_to_first_token: Duration::ZERO,
        tokens_per_second: None,
    };
    let error = r#"{"error":{"message":"no","type":"server_error"}}"#;
    for (fault, form, answer, reason) in [
        (&fault, SSE, paris(), "the answer ended after 7 of 100 tokens"),
        (&fault, SSE, DONE.to_owned(), "the answer holds no model output"),
        (&fault, AnswerForm::Json, WHOLE.to_owned(), "the answer ended after 5 of 100 tokens"),
        (&fault, AnswerForm::Json, error.to_owned(), "the answer holds no model output"),
        (&fault, AnswerForm::Json, "<html>".to_owned(), "the answer is not JSON at byte 0: expected a value"),
        (&slow, SSE, paris(), "the pace asks for no wait"),
    ] {
        let (steps, why) = run(editor(fault, form), &answer);
        assert_eq!(received(&steps), (answer, ""));
        assert_eq!(why.as_deref(), Some(reason));
    }
}

#[test]
fn a_delta_with_the_finish_reason_is_repeated_whole() {
    let event = choice_chunk(0, "{\"content\":\"All of it\"}", "\"stop\"");
    let answer = [role(), event.clone(), "data: [DONE]\n\n".to_owned()].concat();
    let (text, _) = changed(&StreamFault::Repeat, SSE, &answer);
    assert_eq!(text.matches(&event).count(), 2);
}

#[test]
fn sequence_numbers_stay_if_nothing_is_changed() {
    let name = "response.output_text.delta";
    let event = |number: u64| {
        format!(
            "event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{number},\"item_id\":\"m\",\
             \"output_index\":0,\"content_index\":0,\"delta\":\"a\"}}\n\n"
        )
    };
    let stream: String = [0, 8, 3].map(event).concat();
    let call = AnsweredCall::new(by_name("openai-responses").expect("built in"));
    let fault = StreamFault::Truncate { max_tokens: 100 };
    let (steps, why) = run(super::editor(&fault, SSE, call), &stream);
    assert!(why.is_some());
    assert_eq!(received(&steps), (stream, ""));
}

#[test]
fn the_beginning_of_an_event_is_passed_on_when_the_upstream_breaks_off() {
    let sent = "data: {\"cho";
    let mut editor = events_editor(&StreamFault::Truncate { max_tokens: 1 });
    assert_eq!(editor.push(sent.as_bytes()), []);
    let rest = editor.broke_off();
    assert_eq!(rest, [Step::Emit(Bytes::from_static(sent.as_bytes()))]);
    assert!(!editor.touched());
}

fn any_fault() -> impl Strategy<Value = StreamFault> {
    prop_oneof![
        (0_u64..12).prop_map(|max_tokens| StreamFault::Truncate { max_tokens }),
        (0_u64..12).prop_map(|after_tokens| StreamFault::Cut { after_tokens }),
        (0_u64..3000, 0.5_f64..50.0).prop_map(|(millis, pace)| StreamFault::Slow {
            time_to_first_token: Duration::from_millis(millis),
            tokens_per_second: Some(pace),
        }),
        (0_u64..12, 1_u64..3000).prop_map(|(after_tokens, millis)| StreamFault::Stall {
            after_tokens,
            wait: Duration::from_millis(millis),
        }),
        (0_u64..12).prop_map(|after_tokens| StreamFault::Error {
            after_tokens,
            error: ModelError::Overloaded,
        }),
        Just(StreamFault::Repeat),
        Just(StreamFault::Unterminated),
        Just(StreamFault::WholeForStream),
        any_instead().prop_map(StreamFault::Instead),
        any_rewrite().prop_map(StreamFault::Rewrite),
    ]
}

fn any_instead() -> impl Strategy<Value = Instead> {
    prop_oneof![
        Just(Instead::Nothing),
        Just(Instead::Filtered),
        any::<u64>().prop_map(|choice| Instead::Refusal { choice }),
        any::<u64>().prop_map(|choice| Instead::Garbage { choice }),
    ]
}

fn any_rewrite() -> impl Strategy<Value = Rewrite> {
    let drift = |kind, choice| {
        Rewrite::Drift(ResponseDrift {
            kind,
            severity: Severity::Moderate,
            choice,
        })
    };
    prop_oneof![
        any::<u64>().prop_map(move |choice| drift(TextDrift::Tone, choice)),
        any::<u64>().prop_map(move |choice| drift(TextDrift::Format, choice)),
        any::<u64>().prop_map(|choice| Rewrite::Call(WrongCall::of_any_tool(
            CallError::UnknownTool,
            choice
        ))),
        any::<u64>().prop_map(|choice| Rewrite::Call(WrongCall::of_any_tool(
            CallError::MalformedArguments,
            choice
        ))),
        any::<u64>().prop_map(|choice| Rewrite::Call(WrongCall::of_any_tool(
            CallError::WrongArguments,
            choice
        ))),
    ]
}

/// Streams of texts, then of pieces of tool calls.
fn any_answer() -> impl Strategy<Value = (AnswerForm, String)> {
    let calls = proptest::collection::vec((0_u64..3, "[a-z\"{}:1 ]{0,6}"), 0..6);
    (any_words(), calls).prop_map(|(words, calls)| {
        let calls = calls
            .iter()
            .map(|(index, text)| answers::call_chunk(*index, text));
        (SSE, stream_of(&words, &calls.collect::<String>()))
    })
}

fn any_words() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[ a-zé😀\"\\\\\n]{0,12}", 0..8)
}

fn stream_of(words: &[String], calls: &str) -> String {
    let words: String = words.iter().map(|text| word(text)).collect();
    format!("{}: note\n\n{words}{calls}{}{DONE}", role(), stop())
}

/// What an answer says in all its events.
fn contents(text: &str) -> String {
    texts(text).concat()
}

/// What an answer says in each of its events.
fn texts(text: &str) -> Vec<String> {
    text.split("\"content\":")
        .skip(1)
        .filter_map(|rest| {
            serde_json::Deserializer::from_str(rest)
                .into_iter::<String>()
                .next()
        })
        .map(|said| said.expect("a string"))
        .collect()
}

/// A whole answer that says `text`.
fn whole_of(text: &str) -> String {
    let content = json::quote(text);
    format!(
        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":{content}}},"finish_reason":"stop"}}]}}"#
    )
}

#[test]
fn a_stream_is_cut_inside_the_delta_in_which_its_tokens_run_out() {
    let words = ["Kyoto", " has", " mild", " weather today"];
    let whole = whole_of(&words.concat());
    for (max_tokens, kept) in [
        (1, "Ky"),
        (2, "Kyoto"),
        (4, "Kyoto has mild"),
        (5, "Kyoto has mild weather"),
    ] {
        let fault = StreamFault::Truncate { max_tokens };
        let stream = stream_of(&words.map(str::to_owned), "");
        let request = ModelRequest {
            model: Some("gpt-4o".to_owned()),
            ..ModelRequest::default()
        };
        let streamed = run(editor_for(&request, &fault, SSE), &stream).0;
        let held = run(editor_for(&request, &fault, AnswerForm::Json), &whole).0;
        assert_eq!(contents(&received(&held).0), kept, "whole");
        assert_eq!(contents(&received(&streamed).0), kept, "streamed");
    }
}

#[test]
fn each_delta_is_counted_by_itself() {
    for (words, kept) in [
        (["Par", "is", " is"], "Paris"),
        // The space goes with the word after it.
        (["Paris ", "is ", "mild"], "Paris is "),
    ] {
        let fault = StreamFault::Truncate { max_tokens: 2 };
        let stream = stream_of(&words.map(str::to_owned), "");
        let (steps, _) = run(editor(&fault, SSE), &stream);
        assert_eq!(contents(&received(&steps).0), kept);
    }
}

proptest! {
    #[test]
    fn the_chunking_never_shows(
        fault in any_fault(),
        (form, answer) in prop_oneof![any_answer(), Just((AnswerForm::Json, WHOLE.to_owned()))],
        crlf: bool,
        size in 1_usize..200,
    ) {
        let answer = if crlf { answer.replace('\n', "\r\n") } else { answer };
        let at_once = run(editor(&fault, form), &answer).0;
        let chunked = run_chunked(editor(&fault, form), answer.as_bytes(), size).0;
        prop_assert_eq!(received(&at_once), received(&chunked));
        let waits = |steps: &[Step]| -> Vec<Step> {
            steps.iter().filter(|step| matches!(step, Step::Wait(_))).cloned().collect()
        };
        prop_assert_eq!(waits(&at_once), waits(&chunked));
    }

    #[test]
    fn an_answer_that_is_short_enough_passes_byte_for_byte(
        (form, answer) in any_answer(),
        size in 1_usize..200,
    ) {
        for fault in [
            StreamFault::Truncate { max_tokens: 1000 },
            StreamFault::Cut { after_tokens: 1000 },
        ] {
            let (steps, _) = run_chunked(editor(&fault, form), answer.as_bytes(), size);
            prop_assert_eq!(received(&steps), (answer.clone(), ""));
        }
    }

    #[test]
    fn the_tally_of_an_unchanged_stream_is_what_its_reader_finds(
        fault in any_fault(),
        (form, answer) in any_answer(),
        end in 0_usize..1500,
    ) {
        let AnswerEditor::Events(mut editor) = editor(&fault, form) else {
            return Ok(());
        };
        let (first, rest) = answer.as_bytes().split_at(end.min(answer.len()));
        let mut steps = [editor.push(first), editor.push(rest)].concat();
        steps.extend(editor.finish());
        let tally = editor.tally();
        prop_assert_eq!(tally.is_some(), !editor.touched());
        if let Some(mut tally) = tally {
            let mut reader = Reader::new(dialect(), Target::default(), None);
            reader.head(Some(form));
            reader.push(answer.as_bytes());
            reader.end();
            prop_assert_eq!(tally.tokens(|_| 7), reader.tokens(|_| 7));
            prop_assert_eq!(tally.call(None, true), reader.finish());
        }
    }

    #[test]
    fn no_more_tokens_pass_than_the_limit(
        max_tokens in 0_u64..10,
        words in any_words(),
    ) {
        let answer = stream_of(&words, "");
        let (steps, why) = run(editor(&StreamFault::Truncate { max_tokens }, SSE), &answer);
        let count = |text: &String| tokens::count_piece(Counting::Estimate, text);
        let said = texts(&received(&steps).0).iter().map(count).sum::<u64>();
        prop_assert!(said <= max_tokens || why.is_some(), "{} > {}", said, max_tokens);
        prop_assert!(said == max_tokens || why.is_some());
    }

    #[test]
    fn no_answer_makes_an_editor_panic(
        fault in any_fault(),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        stream: bool,
    ) {
        let form = if stream { SSE } else { AnswerForm::Json };
        let (steps, _) = run_chunked(editor(&fault, form), &noise, 64);
        let passed: Vec<u8> = steps.iter().flat_map(|step| match step {
            Step::Emit(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        }).collect();
        prop_assert_eq!(passed, noise);
    }
}
