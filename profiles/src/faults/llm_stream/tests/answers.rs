//! Faults that make an answer say something else, or come in another way.

use super::calls::{WHOLE_CALLS, call_head, calls};
use super::*;

/// An event that carries a piece of a tool call.
pub(super) fn call_chunk(index: u64, arguments: &str) -> String {
    chunk(&format!(
        r#"{{"tool_calls":[{{"index":{index},"function":{{"arguments":{}}}}}]}}"#,
        json::quote(arguments)
    ))
}

/// Why a fault leaves an answer as it is.
fn left_alone(fault: &StreamFault, form: AnswerForm, answer: &str) -> String {
    let (steps, why) = run(editor(fault, form), answer);
    assert_eq!(received(&steps), (answer.to_owned(), ""));
    why.expect("a reason")
}

#[test]
fn a_stream_says_something_else_and_ends_as_the_provider_ends_one() {
    for (instead, delta, finish) in [
        (Instead::Nothing, r#"{"content":""}"#, "\"stop\""),
        (Instead::Filtered, r#"{"content":""}"#, "\"content_filter\""),
        (
            Instead::Refusal { choice: 0 },
            r#"{"content":null,"refusal":"I'm sorry, but I can't help with that."}"#,
            "\"stop\"",
        ),
    ] {
        let expected = [
            role(),
            chunk(delta),
            choice_chunk(0, "{}", finish),
            DONE.into(),
        ];
        for answer in [paris(), calls()] {
            let got = changed(&StreamFault::Instead(instead), SSE, &answer);
            assert_eq!(got, (expected.concat(), ""));
        }
    }
}

#[test]
fn a_whole_answer_says_something_else() {
    let refusal = StreamFault::Instead(Instead::Refusal { choice: 1 });
    for answer in [WHOLE, WHOLE_CALLS] {
        let (text, ending) = changed(&refusal, AnswerForm::Json, answer);
        assert_eq!(ending, "");
        let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let choice = &answer["choices"][0];
        assert_eq!(choice["finish_reason"], "stop");
        assert_eq!(choice["message"]["content"], serde_json::Value::Null);
        let refusal = "I'm not able to assist with that request.";
        assert_eq!(choice["message"]["refusal"], refusal);
        assert!(choice["message"].get("tool_calls").is_none());
        let usage = &answer["usage"];
        let hidden = &usage["completion_tokens_details"]["reasoning_tokens"];
        let said = tokens::count(Counting::Estimate, refusal) + hidden.as_u64().unwrap_or_default();
        assert_eq!(usage["completion_tokens"], said);
        let asked = usage["prompt_tokens"].as_u64().expect("counted");
        assert_eq!(usage["total_tokens"], asked + said);
    }
}

#[test]
fn token_counts_follow_what_is_said_instead() {
    let fault = StreamFault::Instead(Instead::Nothing);
    let (text, ending) = changed(&fault, SSE, &counted(&paris()));
    let usage = r#""usage":{"prompt_tokens":10,"completion_tokens":0,"total_tokens":10}"#;
    assert!(text.contains(usage), "{text}");
    assert!(text.ends_with(DONE));
    assert_eq!(ending, "");
}

#[test]
fn a_choice_that_says_nothing_gets_other_words_all_the_same() {
    let nothing = [role(), stop(), DONE.to_owned()].concat();
    let refusal = StreamFault::Instead(Instead::Refusal { choice: 4 });
    let (text, _) = changed(&refusal, SSE, &nothing);
    let words = r#"{"content":null,"refusal":"Sorry, that isn't something I can do."}"#;
    let expected = [role(), chunk(words), stop(), DONE.to_owned()];
    assert_eq!(text, expected.concat());
    assert_eq!(
        left_alone(&StreamFault::Instead(Instead::Nothing), SSE, &nothing),
        "the answer is empty already"
    );
}

#[test]
fn every_choice_says_something_else() {
    let stream = [
        choice_chunk(0, r#"{"role":"assistant","content":""}"#, "null"),
        choice_chunk(1, r#"{"role":"assistant","content":""}"#, "null"),
        choice_chunk(1, r#"{"content":"b"}"#, "null"),
        choice_chunk(0, r#"{"content":"a"}"#, "null"),
        choice_chunk(1, "{}", "\"stop\""),
        choice_chunk(0, "{}", "\"stop\""),
        DONE.to_owned(),
    ];
    let request = ModelRequest {
        choices: 2,
        ..ModelRequest::default()
    };
    let fault = StreamFault::Instead(Instead::Filtered);
    let (steps, _) = run(editor_for(&request, &fault, SSE), &stream.concat());
    let words = |choice| choice_chunk(choice, r#"{"content":""}"#, "null");
    let end = |choice| choice_chunk(choice, "{}", "\"content_filter\"");
    let expected = [
        &stream[..2].concat(),
        &words(1),
        &words(0),
        &end(1),
        &end(0),
        DONE,
    ];
    assert_eq!(received(&steps), (expected.concat(), ""));
}

pub(super) fn rewrite(rewrite: Rewrite) -> StreamFault {
    StreamFault::Rewrite(rewrite)
}

#[test]
#[rustfmt::skip]
fn what_a_fault_does_not_find_it_leaves_alone() {
    let no_call = "the answer holds no tool call";
    for (fault, answer, reason) in [
        (Rewrite::Call(WrongCall::of_any_tool(CallError::UnknownTool, 0)), paris(), no_call),
        (Rewrite::Call(WrongCall::of_any_tool(CallError::MalformedArguments, 0)), paris(), no_call),
        (Rewrite::Call(WrongCall::of_any_tool(CallError::WrongArguments, 0)), paris(), no_call),
        (
            Rewrite::Call(WrongCall::of_any_tool(CallError::WrongArguments, 0)),
            [role(), call_head(0, "run"), call_chunk(0, "ls -l"), stop()].concat(),
            "the tool call's arguments are no JSON",
        ),
        (drift(TextDrift::Tone), calls(), "the answer holds no text"),
        (drift(TextDrift::FieldNames), paris(), "the answer's text holds no JSON object"),
    ] {
        assert_eq!(left_alone(&rewrite(fault), SSE, &answer), reason);
    }
    for fault in [
        StreamFault::Repeat,
        StreamFault::Unterminated,
        StreamFault::WholeForStream,
        StreamFault::Error {
            after_tokens: 0,
            error: ModelError::Overloaded,
        },
    ] {
        let reason = left_alone(&fault, AnswerForm::Json, WHOLE);
        assert_eq!(reason, "the answer is no stream");
    }
}

fn drift(kind: TextDrift) -> Rewrite {
    Rewrite::Drift(ResponseDrift {
        kind,
        severity: Severity::Moderate,
        choice: 0,
    })
}

#[test]
fn a_text_that_drifts_is_spread_over_the_events_it_came_in() {
    let (text, _) = changed(&rewrite(drift(TextDrift::Tone)), SSE, &paris());
    let said = |stream: &str| -> Vec<String> {
        let contents = stream.split("\"content\":").skip(1);
        let texts = contents.map(|rest| {
            let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            texts.next().expect("a text").expect("a string")
        });
        texts.collect()
    };
    let texts = said(&text);
    assert_eq!(texts.concat(), "Hey! The capital of France is Paris.");
    assert_eq!(texts.len(), said(&paris()).len());
    assert!(texts[1..].iter().all(|text| !text.is_empty()), "{texts:?}");
    assert!(text.ends_with(&(stop() + DONE)));
}

/// The texts of a stream, one behind the other.
fn contents(stream: &str) -> String {
    let pieces = stream.split("\"content\":\"").skip(1);
    pieces.filter_map(|piece| piece.split('"').next()).collect()
}

#[test]
fn a_text_that_drifts_is_held_until_the_answer_ends() {
    let mut editor = events_editor(&rewrite(drift(TextDrift::Tone)));
    let mut push = |event: String| received(&editor.push(event.as_bytes())).0;
    for piece in ["One", " it", " is", " two"] {
        assert_eq!(push(word(piece)), "");
    }
    assert_eq!(push(": alive\n\n".to_owned()), ": alive\n\n");
    let rest = call_head(0, "search") + &call_chunk(0, "{}") + &stop();
    assert_eq!(push(rest.clone()), "");
    let said = push(DONE.to_owned());
    assert!(said.ends_with(&(rest + DONE)), "{said}");
    assert_eq!(contents(&said), "Hey! One it's two");
}

#[test]
fn a_text_that_does_not_drift_passes_as_it_came() {
    let mut editor = events_editor(&rewrite(drift(TextDrift::FieldNames)));
    let events = ["One", " two", " three."].map(word).concat() + &stop() + DONE;
    let steps = editor.push(events.as_bytes());
    assert_eq!(received(&steps).0, events);
    assert!(!editor.touched());
}

#[test]
fn a_stream_halts_once_and_goes_on() {
    let wait = Duration::from_secs(9);
    for after_tokens in [0, 3] {
        let fault = StreamFault::Stall { after_tokens, wait };
        let (steps, _) = run(editor(&fault, SSE), &paris());
        let at = steps.iter().position(|step| *step == Step::Wait(wait));
        // The role comes first.
        assert_eq!(at, usize::try_from(after_tokens + 1).ok());
        assert_eq!(received(&steps), (paris(), ""));
    }
    let fault = StreamFault::Stall {
        after_tokens: 7,
        wait,
    };
    assert_eq!(
        left_alone(&fault, SSE, &paris()),
        "the answer ended after 7 of 8 tokens"
    );
    let fault = StreamFault::Stall {
        after_tokens: 2,
        wait,
    };
    let (steps, _) = run(editor(&fault, AnswerForm::Json), WHOLE);
    assert!(matches!(
        steps[..],
        [Step::Emit(_), Step::Wait(_), Step::Emit(_)]
    ));
    assert_eq!(received(&steps), (WHOLE.to_owned(), ""));
}

#[test]
fn an_error_is_reported_after_the_last_token_that_fits() {
    for (after_tokens, words) in [(0, 0), (3, 3)] {
        let fault = StreamFault::Error {
            after_tokens,
            error: ModelError::Overloaded,
        };
        let (text, ending) = changed(&fault, SSE, &paris());
        let all = ["The", " capital", " of"];
        let before = role() + &all[..words].iter().copied().map(word).collect::<String>();
        let error = text.strip_prefix(&before).expect("what came before");
        assert!(
            error.starts_with("data: {\"error\":{\"message\":"),
            "{error}"
        );
        assert_eq!(error.matches("data: ").count(), 1);
        assert_eq!(ending, "finish");
    }
}

#[test]
fn one_event_that_carries_tokens_comes_twice() {
    let (text, _) = changed(&StreamFault::Repeat, SSE, &paris());
    assert_eq!(text, paris().replace(&word("The"), &word("The").repeat(2)));
    let fault = StreamFault::Repeat;
    let none = [role(), stop()].concat();
    assert_eq!(
        left_alone(&fault, SSE, &none),
        "the answer holds no event to repeat"
    );
}

#[test]
fn the_end_mark_is_all_that_is_missing() {
    let (text, ending) = changed(&StreamFault::Unterminated, SSE, &paris());
    assert_eq!((text + DONE, ending), (paris(), ""));
    let unmarked = [role(), stop()].concat();
    assert_eq!(
        left_alone(&StreamFault::Unterminated, SSE, &unmarked),
        "the stream has no end mark"
    );
}

#[test]
fn a_stream_becomes_the_answer_that_would_have_come_without_one() {
    let answer = counted(&(role() + &word("Hi") + &word("!") + &calls()));
    let edited = editor(&StreamFault::WholeForStream, SSE).edit(answer.as_bytes());
    let edited = edited.expect("a whole answer");
    assert_eq!(edited.media_type, Some("application/json"));
    let (text, _) = received(&edited.steps);
    let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let expected = serde_json::json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant", "content": "Hi!", "refusal": null,
                "tool_calls": [
                    {"id": "call_0", "type": "function",
                     "function": {"name": "search", "arguments": "{\"q\":\"a\",\"n\":1}"}},
                    {"id": "call_1", "type": "function",
                     "function": {"name": "fetch", "arguments": "{\"u\":2}"}},
                ],
            },
            "logprobs": null, "finish_reason": "tool_calls",
        }],
        "usage": {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17},
    });
    assert_eq!(answer, expected);
}
