//! Anthropic's Messages: the words of [`super::chat`], streamed or not; thinking and a tool call
//! where tools are offered; an error in the middle of the stream of the model `overloaded`.

use serde_json::{Value, json};

use super::chat::WORDS;
use super::standard::{chunk, whole};
use super::{Connection, Request};

/// The model whose streams end with an error.
pub const OVERLOADED: &str = "overloaded";

/// Answers `POST /v1/messages`; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    if asked["stream"] == true {
        stream(connection, &events(&asked))
    } else {
        let body = message(&asked).to_string();
        connection.send(whole("200 OK", "application/json", body.as_bytes()))
    }
}

/// What the model thinks before it calls its tool, and what it is signed with.
const THOUGHTS: [&str; 2] = ["I should", " look outside."];
const SIGNATURE: &str = "EqkBCkYIBxgCKkDq8Zw1fVbT==";

fn calls_tool(asked: &Value) -> bool {
    asked.get("tools").is_some()
}

/// The whole answer.
fn message(asked: &Value) -> Value {
    let (content, reason) = if calls_tool(asked) {
        let content = json!([
            { "type": "thinking", "thinking": THOUGHTS.concat(), "signature": SIGNATURE },
            { "type": "tool_use", "id": "toolu_1", "name": "weather", "input": { "city": "Kiel" } },
        ]);
        (content, "tool_use")
    } else {
        let text = json!([{ "type": "text", "text": WORDS.concat() }]);
        (text, "end_turn")
    };
    let mut message = head(asked);
    message["content"] = content;
    message["stop_reason"] = json!(reason);
    message["usage"]["output_tokens"] = json!(5);
    message
}

/// The message before anything is said.
pub(super) fn head(asked: &Value) -> Value {
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": { "input_tokens": 9, "output_tokens": 1 },
    })
}

/// Data of the events of the streamed answer.
pub fn events(asked: &Value) -> Vec<Value> {
    let start = |index: u64, block: Value| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: u64, kind: &str, field: &str, text: &str| {
        json!({ "type": "content_block_delta", "index": index,
            "delta": { "type": kind, field: text } })
    };
    let stop = |index: u64| json!({ "type": "content_block_stop", "index": index });
    let ping = json!({ "type": "ping" });
    let mut events = vec![json!({ "type": "message_start", "message": head(asked) })];
    let reason = if calls_tool(asked) {
        let thinking = json!({ "type": "thinking", "thinking": "", "signature": "" });
        events.extend([start(0, thinking), ping]);
        events.extend(THOUGHTS.map(|text| delta(0, "thinking_delta", "thinking", text)));
        events.push(delta(0, "signature_delta", "signature", SIGNATURE));
        let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "weather", "input": {} });
        events.extend([stop(0), start(1, call)]);
        let pieces = ["", "{\"city\":", " \"Kiel\"}"];
        events.extend(pieces.map(|json| delta(1, "input_json_delta", "partial_json", json)));
        events.push(stop(1));
        "tool_use"
    } else {
        events.extend([start(0, json!({ "type": "text", "text": "" })), ping]);
        events.extend(WORDS.map(|word| delta(0, "text_delta", "text", word)));
        events.push(stop(0));
        "end_turn"
    };
    if asked["model"] == OVERLOADED {
        let half = events.len() / 2;
        events.truncate(half);
        events.push(json!({ "type": "error", "request_id": "req_1", "error": {
            "details": null, "type": "overloaded_error", "message": "Overloaded" } }));
        return events;
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": 5 },
    }));
    events.push(json!({ "type": "message_stop" }));
    events
}

/// Server-sent events that are named by their type.
pub fn named(events: &[Value]) -> Vec<String> {
    let framed = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    framed.collect()
}

/// Sends events that are named by their type.
pub(super) fn stream(connection: &mut Connection, events: &[Value]) -> bool {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
        transfer-encoding: chunked\r\n\r\n";
    connection.send(head)
        && named(events)
            .iter()
            .all(|event| connection.send(chunk(event)))
        && connection.send("0\r\n\r\n")
}
