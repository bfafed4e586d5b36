//! Messages of MCP and A2A from anybody: what is asked is read, answers are changed in any chunks. Nothing
//! panics, no chunking shows, and what is not changed stays as it came.
//!
//! The first two bytes choose change, form and chunk size; then comes the request up to a line
//! break, and the answer.

#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use libfuzzer_sys::fuzz_target;
use squall_dialects::json::Document;
use squall_dialects::mcp::{Call, Head, RpcRequest, texts};
use squall_dialects::stream::{Frame, Framing, Splitter};
use squall_profiles::changes::Amount;
use squall_profiles::changes::{DriftKind, McpEdit, SchemaDrift};
use squall_profiles::faults::editing::{AnswerEditor, Step};
use squall_profiles::faults::rpc_answer::{RpcChange, RpcEditor, RpcForm};

fuzz_target!(|input: &[u8]| {
    let [choice, size, rest @ ..] = input else {
        return;
    };
    let at = rest
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(rest.len());
    let (request, answer) = rest.split_at(at);
    head(request);
    let asked = RpcRequest::read(request);
    let mut calls = asked.map(|asked| asked.calls).unwrap_or_default();
    // Most answers are to another call than a random one.
    for of_corpus in [
        &br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a"}}"#[..],
        br#"{"jsonrpc":"2.0","id":4,"method":"message/stream","params":{"message":{}}}"#,
    ] {
        let asked = RpcRequest::read(of_corpus).into_iter();
        calls.extend(asked.flat_map(|asked| asked.calls));
    }
    if let Ok(document) = Document::parse(answer) {
        for text in texts(&document) {
            assert!(document.value(text.place).as_str().is_some());
        }
    }
    let size = usize::from(*size).max(1);
    let change = change(*choice, &calls);
    let form = if choice & 1 == 0 {
        RpcForm::Json
    } else {
        RpcForm::Events
    };
    let (at_once, touched) = run(&change, &calls, form, answer, answer.len().max(1));
    let (chunked, touched_in_chunks) = run(&change, &calls, form, answer, size);
    match form {
        RpcForm::Json => assert_eq!(at_once, chunked),
        RpcForm::Events => assert_eq!(data(&at_once), data(&chunked)),
    }
    assert_eq!(touched, touched_in_chunks);
    assert!(touched || matches!(change, RpcChange::AnswerTo(_)) || at_once == answer);
});

/// What a client reads. Where a stream mixes its line breaks, the bytes of the last one may differ.
fn data(sent: &[u8]) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(Framing::Sse, usize::MAX);
    let mut frames = splitter.push(sent);
    frames.extend(splitter.finish());
    let data = frames.iter().filter_map(Frame::data);
    data.map(|data| data.into_owned()).collect()
}

fn head(request: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(request) else {
        return;
    };
    for name in ["mcp-name", "accept", "content-type"] {
        let headers = HeaderMap::from_iter([
            (
                HeaderName::from_static("mcp-method"),
                HeaderValue::from_static("tools/call"),
            ),
            (HeaderName::from_static(name), value.clone()),
        ]);
        let head = Head::of(&Method::POST, &headers);
        assert!(head.calls_a_tool());
    }
}

fn change(choice: u8, calls: &[Call]) -> RpcChange {
    let amount = u64::from(choice / 16);
    match (choice / 2) % 4 {
        0 => RpcChange::Truncate(Amount::Bytes(amount)),
        1 => RpcChange::Drift(SchemaDrift {
            kind: [
                DriftKind::Rename,
                DriftKind::Drop,
                DriftKind::Null,
                DriftKind::Retype,
            ][usize::from(choice / 64)],
            field: None,
            choice: amount,
        }),
        2 => match calls.iter().find_map(|call| call.id.clone()) {
            Some(id) => RpcChange::AnswerTo(id),
            None => RpcChange::Mcp(McpEdit::WrongId),
        },
        _ => RpcChange::Mcp(McpEdit::WrongId),
    }
}

fn run(
    change: &RpcChange,
    calls: &[Call],
    form: RpcForm,
    answer: &[u8],
    size: usize,
) -> (Vec<u8>, bool) {
    let editor = RpcEditor::new(change.clone(), calls.to_vec());
    let (steps, touched) = match editor.in_form(form, 1 << 20) {
        AnswerEditor::Whole(edit) => match edit(answer) {
            Ok(edited) => (edited.steps, true),
            Err(_) => return (answer.to_vec(), false),
        },
        AnswerEditor::Events(mut editor) => {
            let chunks = answer.chunks(size);
            let mut steps: Vec<_> = chunks.flat_map(|chunk| editor.push(chunk)).collect();
            steps.extend(editor.finish());
            assert_eq!(editor.touched(), editor.untouched_because().is_none());
            (steps, editor.touched())
        }
    };
    let sent = steps.iter().flat_map(|step| match step {
        Step::Emit(bytes) => bytes.to_vec(),
        other => panic!("{other:?}"),
    });
    (sent.collect(), touched)
}
