//! Ollama: some thinking, then the words of [`super::chat`], streamed unless that is declined, or two
//! tool calls where tools are offered.

use serde_json::{Value, json};

use super::chat::WORDS;
use super::standard::{document, streamed};
use super::{Connection, Request};

/// Answers `/api/chat` and `/api/generate`; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked = request.json();
    let tools = asked["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    let chat = request.target.ends_with("/api/chat");
    if asked["stream"] != false {
        return streamed(connection, "application/x-ndjson", lines(chat, tools));
    }
    let (text, calls) = if tools {
        (String::new(), json!(calls()))
    } else {
        (WORDS.concat(), Value::Null)
    };
    let mut more = json!({ "thinking": "Short words." });
    if tools {
        more["tool_calls"] = calls;
    }
    document(connection, &ended(said(chat, &text, more)))
}

/// A response in whole or in part: in a message, or beside everything else.
fn said(chat: bool, text: &str, more: Value) -> Value {
    let mut said = json!({ if chat { "content" } else { "response" }: text });
    extend(&mut said, more);
    let mut answer = json!({ "model": "qwen3", "created_at": "2026-10-26T17:21:21.196249Z" });
    if chat {
        said["role"] = json!("assistant");
        answer["message"] = said;
    } else {
        extend(&mut answer, said);
    }
    answer
}

fn ended(mut answer: Value) -> Value {
    let end = json!({
        "done": true, "done_reason": "stop",
        "total_duration": 4_883_583_458_u64, "load_duration": 1_334_875,
        "prompt_eval_count": 26, "prompt_eval_duration": 342_546_000,
        "eval_count": 9, "eval_duration": 453_559_900,
    });
    extend(&mut answer, end);
    answer
}

fn extend(map: &mut Value, more: Value) {
    if let (Value::Object(map), Value::Object(more)) = (map, more) {
        map.extend(more);
    }
}

fn calls() -> [Value; 2] {
    let call = |index: u64, id: &str, name: &str, arguments: Value| {
        let function = json!({ "index": index, "name": name, "arguments": arguments });
        json!({ "id": id, "function": function })
    };
    [
        call(0, "call_8d1xw2kq", "weather", json!({ "city": "Kiel" })),
        call(1, "call_p0o4m7zt", "time", json!({})),
    ]
}

/// The lines of a streamed answer.
pub fn lines(chat: bool, tools: bool) -> Vec<String> {
    let mut lines: Vec<Value> = ["Short", " words."]
        .map(|text| said(chat, "", json!({ "thinking": text })))
        .into();
    if tools {
        lines.extend(calls().map(|call| said(chat, "", json!({ "tool_calls": [call] }))));
    } else {
        lines.extend(WORDS.map(|word| said(chat, word, json!({}))));
    }
    for line in &mut lines {
        line["done"] = json!(false);
    }
    lines.push(ended(said(chat, "", json!({}))));
    lines.iter().map(|line| format!("{line}\n")).collect()
}
