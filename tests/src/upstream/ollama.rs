//! A server that speaks `ollama`: some thinking, then five words, streamed or not, or two tool
//! calls where tools are offered. What is not asked to be whole is streamed.
//!
//! A request with the header `x-step` gets each line of a stream only after a step of the test's.

use serde_json::{Value, json};

use super::standard::{chunk, whole};
use super::{Connection, Request};

/// What the model says, word by word.
pub const WORDS: [&str; 5] = ["Squalls", " pass", " and", " ships", " remain."];

/// Serves one connection until it ends.
pub fn serve(mut connection: Connection) {
    while let Some(request) = connection.request() {
        if !answer(&mut connection, &request) {
            return;
        }
    }
}

/// Answers `/api/chat` and `/api/generate`; false when the peer is gone.
fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let tools = asked["tools"]
        .as_array()
        .is_some_and(|tools| !tools.is_empty());
    let chat = request.target.ends_with("/api/chat");
    if asked["stream"] == false {
        let answer = whole_answer(chat, tools).to_string();
        let json = "application/json; charset=utf-8";
        return connection.send(whole("200 OK", json, answer.as_bytes()));
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\
        transfer-encoding: chunked\r\n\r\n";
    let stepped = request.header("x-step").is_some();
    connection.send(head)
        && lines(chat, tools)
            .iter()
            .all(|line| (!stepped || connection.wait_for_step()) && connection.send(chunk(line)))
        && connection.send("0\r\n\r\n")
}

/// What is said of an answer, whole or in part: in a message, or beside everything else.
fn said(chat: bool, text: &str, more: Value) -> Value {
    let mut said = json!({ if chat { "content" } else { "response" }: text });
    if let (Value::Object(said), Value::Object(more)) = (&mut said, more) {
        said.extend(more);
    }
    let mut answer = json!({ "model": "qwen3", "created_at": "2026-10-26T17:21:21.196249Z" });
    if chat {
        said["role"] = json!("assistant");
        answer["message"] = said;
    } else if let (Value::Object(answer), Value::Object(said)) = (&mut answer, said) {
        answer.extend(said);
    }
    answer
}

fn ended(mut answer: Value) -> Value {
    for (key, value) in [
        ("done", json!(true)),
        ("done_reason", json!("stop")),
        ("total_duration", json!(4_883_583_458_u64)),
        ("load_duration", json!(1_334_875)),
        ("prompt_eval_count", json!(26)),
        ("prompt_eval_duration", json!(342_546_000)),
        ("eval_count", json!(9)),
        ("eval_duration", json!(453_559_900)),
    ] {
        answer[key] = value;
    }
    answer
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

fn whole_answer(chat: bool, tools: bool) -> Value {
    let thinking = "Short words.";
    ended(if tools {
        said(
            chat,
            "",
            json!({ "thinking": thinking, "tool_calls": calls() }),
        )
    } else {
        said(chat, &WORDS.concat(), json!({ "thinking": thinking }))
    })
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
