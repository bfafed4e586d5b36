//! Tool calls that go wrong: which, and how.

use std::collections::BTreeSet;

use squall_dialects::ALL;
use squall_dialects::model::DeltaKind;

use super::answers::{call_chunk, rewrite};
use super::dialects::{Sample, bytes, edited, read, samples};
use super::*;
use crate::changes::Tools;
use crate::glob::Glob;

/// The event that begins a tool call.
pub(super) fn call_head(index: u64, name: &str) -> String {
    chunk(&format!(
        r#"{{"tool_calls":[{{"index":{index},"id":"call_{index}","type":"function","function":{{"name":"{name}","arguments":""}}}}]}}"#
    ))
}

/// Two calls, the first with arguments in three pieces.
pub(super) fn calls() -> String {
    [
        role(),
        call_head(0, "search"),
        call_chunk(0, "{\"q\":"),
        call_chunk(0, "\"a\",\"n\":"),
        call_chunk(0, "1}"),
        call_head(1, "fetch"),
        call_chunk(1, "{\"u\":2}"),
        choice_chunk(0, "{}", "\"tool_calls\""),
        DONE.to_owned(),
    ]
    .concat()
}

pub(super) const WHOLE_CALLS: &str = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"search","arguments":"{\"q\":\"a\",\"n\":1}"}},{"id":"call_1","type":"function","function":{"name":"fetch","arguments":"{\"u\":2}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}}"#;

#[test]
fn the_first_tool_call_of_a_stream_goes_wrong() {
    let (head, tail) = ([role(), call_head(0, "search")].concat(), {
        let tail = [
            call_head(1, "fetch"),
            call_chunk(1, "{\"u\":2}"),
            choice_chunk(0, "{}", "\"tool_calls\""),
            DONE.to_owned(),
        ];
        tail.concat()
    });
    let arguments = |pieces: [&str; 3]| pieces.map(|piece| call_chunk(0, piece)).concat();
    for (fault, expected) in [
        (
            Rewrite::Call(WrongCall::of_any_tool(CallError::UnknownTool, 0)),
            calls().replace("\"search\"", "\"search_v2\""),
        ),
        (
            Rewrite::Call(WrongCall::of_any_tool(CallError::MalformedArguments, 1)),
            head.clone() + &arguments(["{\"q\":\"", "a\",\"n", "\":1,}"]) + &tail,
        ),
        (
            Rewrite::Call(WrongCall::of_any_tool(CallError::WrongArguments, 4)),
            head.clone() + &arguments(["{\"q\":\"", "a\",\"n", "\":\"1\"}"]) + &tail,
        ),
    ] {
        assert_eq!(
            changed(&rewrite(fault.clone()), SSE, &calls()).0,
            expected,
            "{fault:?}"
        );
    }
}

#[test]
fn an_unknown_tool_is_none_of_those_that_were_offered() {
    let request = ModelRequest {
        choices: 1,
        tools: vec!["search".into(), "search_v2".into()],
        ..ModelRequest::default()
    };
    let fault = rewrite(Rewrite::Call(WrongCall::of_any_tool(
        CallError::UnknownTool,
        0,
    )));
    let (steps, _) = run(editor_for(&request, &fault, SSE), &calls());
    assert!(received(&steps).0.contains("\"searchs\""));
}

/// A call of one tool that is wrong.
fn wrong_call(error: CallError, tool: &str, choice: u64) -> StreamFault {
    rewrite(Rewrite::Call(WrongCall {
        error,
        tools: Tools(Some(Glob::new(tool).expect("a glob"))),
        choice,
    }))
}

#[test]
fn calls_whose_pieces_are_mixed_are_told_apart() {
    let stream = |fetched: &str| {
        [
            role(),
            call_head(0, "search"),
            call_head(1, "fetch"),
            call_chunk(0, "{\"q\":"),
            call_chunk(1, fetched),
            call_chunk(0, "1}"),
            choice_chunk(0, "{}", "\"tool_calls\""),
            DONE.to_owned(),
        ]
        .concat()
    };
    let fault = wrong_call(CallError::WrongArguments, "fetch", 1);
    let (text, _) = changed(&fault, SSE, &stream("{\"u\":2}"));
    assert_eq!(text, stream("{\"u\":\"2\"}"));
}

#[test]
fn without_a_call_of_the_tool_the_reason_names_those_that_there_are() {
    for (tool, calls, reason) in [
        (
            "mail",
            calls(),
            "the answer calls `search`, `fetch`, and the rule's `tool` is `mail`",
        ),
        ("mail", paris(), "the answer holds no tool call"),
        (
            "mail",
            many(["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
            "the answer calls `a`, `b`, `c`, `d`, `e`, `f`, `g`, `h` …, and the rule's `tool` is \
             `mail`",
        ),
    ] {
        for error in [
            CallError::UnknownTool,
            CallError::MalformedArguments,
            CallError::WrongArguments,
        ] {
            let (steps, why) = run(editor(&wrong_call(error, tool, 0), SSE), &calls);
            assert_eq!(why.as_deref(), Some(reason));
            assert_eq!(received(&steps).0, calls);
        }
    }
}

/// Calls of many tools.
fn many<const N: usize>(names: [&str; N]) -> String {
    let heads = (0..).zip(names).map(|(index, name)| call_head(index, name));
    let end = [choice_chunk(0, "{}", "\"tool_calls\""), DONE.to_owned()];
    heads.chain(end).collect()
}

/// The names of the tools that an answer calls, in order.
fn names(sample: &Sample, answer: &[u8]) -> Vec<String> {
    let texts = read(sample, answer).texts.into_iter();
    let names = texts.filter(|((.., kind), _)| *kind == DeltaKind::ToolName);
    names.map(|(_, name)| name).collect()
}

#[test]
fn a_tool_is_known_by_name_in_every_dialect() {
    let mut seen = BTreeSet::new();
    for sample in samples() {
        let called = names(&sample, &sample.bytes);
        for name in &called {
            let fault = wrong_call(CallError::UnknownTool, name, 0);
            let (steps, why) = edited(&sample, &fault, 7);
            assert_eq!(why, None, "{}: {name}", sample.name);
            let first = called.iter().position(|other| other == name);
            let expected = called.iter().enumerate().map(|(at, name)| match first {
                Some(first) if first == at => format!("{name}_v2"),
                Some(_) | None => name.clone(),
            });
            let expected: Vec<_> = expected.collect();
            assert_eq!(names(&sample, &bytes(&steps)), expected, "{}", sample.name);
            seen.insert((sample.dialect.name(), sample.form == AnswerForm::Json));
        }
        let fault = wrong_call(CallError::WrongArguments, "no_such_tool", 0);
        let (_, why) = edited(&sample, &fault, 7);
        let reason = if called.is_empty() {
            "no tool call"
        } else {
            "`no_such_tool`"
        };
        let why = why.unwrap_or_default();
        assert!(why.contains(reason), "{}: {why}", sample.name);
    }
    // `openai-realtime` and `gemini-live` have streams only.
    assert_eq!(seen.len(), 2 * ALL.len() - 2, "{seen:?}");
}
