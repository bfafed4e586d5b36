//! What is read of requests, and where.

use std::fmt::Write as _;

use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{PlacedText, ResultSaying};
use squall_dialects::{Target, by_name};

use crate::samples::{Is, samples};

/// The path that the samples of a dialect are sent to, where model and stream are in it.
fn target(dialect: &str) -> Target<'static> {
    Target::new(match dialect {
        "bedrock" => "/model/eu.anthropic.claude-sonnet-4-6-v1%3A0/converse-stream",
        "gemini" => "/v1beta/models/gemini-3-flash-preview:streamGenerateContent",
        _ => "",
    })
}

/// The snapshot shows model, choices, tools, the texts by role, and results of tools with the call
/// that they answer.
#[test]
fn requests_and_conversations_are_read() {
    let mut told = String::new();
    for sample in samples().iter().filter(|it| it.is == Is::Request) {
        let (name, dialect) = (&sample.name, sample.dialect);
        let document = Document::parse(&sample.bytes).expect(name);
        assert!(dialect.confirms(document.root()), "{name}");
        let request = dialect.request(target(dialect.name()), document.root());
        let conversation = dialect.conversation(&document);
        let texts = |said: &[PlacedText<'_>]| -> Vec<String> {
            said.iter().map(|said| said.text.to_string()).collect()
        };
        writeln!(told, "{name}\n  {request:?}").expect("text");
        writeln!(told, "  system {:?}", texts(&conversation.system)).expect("text");
        for message in &conversation.messages {
            writeln!(told, "  {:?} {:?}", message.role, texts(&message.texts)).expect("text");
        }
        for result in &conversation.tool_results {
            let (call, tool) = (result.call.as_deref(), result.tool.as_deref());
            let content = document.value(result.content).raw();
            let texts = texts(&result.texts);
            writeln!(
                told,
                "  result {call:?} {tool:?} in {}: {texts:?}\n    {content}",
                result.message
            )
            .expect("text");
        }
        // Each text is where it is said to be, and the places can be written to.
        let mut edits = Edits::new(&document);
        let messages = conversation.messages.iter().flat_map(|it| &it.texts);
        let results = conversation.tool_results.iter();
        let said = messages.chain(&conversation.system);
        for said in said.chain(results.clone().flat_map(|it| &it.texts)) {
            let there = document.value(said.place);
            assert_eq!(there.as_str().as_ref(), Some(&said.text), "{name}");
            edits.replace(said.place, there.raw());
        }
        for result in results {
            edits.replace(result.content, document.value(result.content).raw());
        }
        assert_eq!(edits.apply(), sample.bytes, "{name}");
    }
    insta::assert_snapshot!(told);
}

#[test]
fn a_tools_result_is_replaced_with_what_marks_a_failure() {
    for (dialect, before, saying, after) in [
        (
            "anthropic",
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}"#,
            ResultSaying::Output("x"),
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}"#,
        ),
        (
            "anthropic",
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","content":[]}]}]}"#,
            ResultSaying::Failure("x"),
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","content":"x","is_error":true}]}]}"#,
        ),
        (
            "anthropic",
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","is_error":false}]}]}"#,
            ResultSaying::Failure("x"),
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","is_error":true,"content":"x"}]}]}"#,
        ),
        (
            "bedrock",
            r#"{"messages":[{"role":"user","content":[{"toolResult":{"content":[{"json":{}}],"status":"success"}}]}]}"#,
            ResultSaying::Failure("x"),
            r#"{"messages":[{"role":"user","content":[{"toolResult":{"content":[{"text":"x"}],"status":"error"}}]}]}"#,
        ),
        (
            "bedrock",
            r#"{"messages":[{"role":"user","content":[{"toolResult":{"content":[{"json":{}}]}}]}]}"#,
            ResultSaying::Output(""),
            r#"{"messages":[{"role":"user","content":[{"toolResult":{"content":[]}}]}]}"#,
        ),
        (
            "gemini",
            r#"{"contents":{"parts":{"functionResponse":{"name":"t","response":{"output":1}}}}}"#,
            ResultSaying::Failure("x"),
            r#"{"contents":{"parts":{"functionResponse":{"name":"t","response":{"error":"x"}}}}}"#,
        ),
        (
            "openai-chat",
            r#"{"messages":[{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"y"}]}]}"#,
            ResultSaying::Failure("x"),
            r#"{"messages":[{"role":"tool","tool_call_id":"a","content":"x"}]}"#,
        ),
    ] {
        let dialect = by_name(dialect).expect("a dialect");
        let document = Document::parse(before.as_bytes()).expect("JSON");
        let conversation = dialect.conversation(&document);
        let mut edits = Edits::new(&document);
        dialect.say_result(&mut edits, &document, &conversation.tool_results[0], saying);
        let edited = edits.apply();
        assert_eq!(String::from_utf8_lossy(&edited), after, "{before}");
    }
}

/// Ollama's older clients name neither the tool nor the call: the order tells.
#[test]
fn a_result_without_a_name_is_of_the_only_call_before() {
    let call = |name: &str| format!(r#"{{"function":{{"name":"{name}","arguments":{{}}}}}}"#);
    let calls = |calls: &str| format!(r#"{{"role":"assistant","tool_calls":[{calls}]}}"#);
    let result = |members: &str| format!(r#"{{"role":"tool",{members}"content":"7"}}"#);
    let (one, two) = (calls(&call("a")), calls(&(call("a") + "," + &call("b"))));
    let (named, nameless) = (result(r#""name":"old","#), result(""));
    for (messages, expected) in [
        (format!("{one},{named}"), &[Some("old")][..]),
        (format!("{one},{nameless}"), &[Some("a")]),
        // Two calls, or something between: it cannot be told.
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
        let dialect = by_name("ollama").expect("a dialect");
        let results = dialect.conversation(&document).tool_results;
        let tools: Vec<_> = results.iter().map(|it| it.tool.as_deref()).collect();
        assert_eq!(tools, expected, "{messages}");
    }
}
