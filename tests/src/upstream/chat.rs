//! An OpenAI-compatible model: five words, streamed or not, or a tool call where tools are offered.

use serde_json::{Value, json};

use super::standard::{document, streamed};
use super::{Connection, Request};

/// What every simulated model says, word by word.
pub const WORDS: [&str; 5] = ["Squalls", " pass", " and", " ships", " remain."];

pub(super) const SSE: &str = "text/event-stream";

/// Answers a chat completion; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked = request.json();
    // A model that has its tool's result answers with words.
    let has_result = asked["messages"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one["role"] == "tool"));
    let calls_tool = asked.get("tools").is_some() && !has_result;
    if asked["stream"] == true {
        streamed(connection, SSE, events(calls_tool))
    } else {
        document(connection, &completion(calls_tool))
    }
}

/// Answers with these words, an event for each where a stream is asked for, and no token counts;
/// false when the peer is gone.
pub fn say(connection: &mut Connection, request: &Request, words: &[&str]) -> bool {
    if request.json()["stream"] == true {
        let words = words.iter().map(|word| json!({ "content": word }));
        return streamed(connection, SSE, framed(words, "stop"));
    }
    let mut body = completion(false);
    body["choices"][0]["message"]["content"] = json!(words.concat());
    body["usage"] = Value::Null;
    document(connection, &body)
}

fn completion(calls_tool: bool) -> Value {
    let (message, finish) = if calls_tool {
        let function = json!({ "name": "weather", "arguments": "{\"city\":\"Kiel\"}" });
        let call = json!({ "id": "call_1", "type": "function", "function": function });
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        (message, "tool_calls")
    } else {
        let message = json!({ "role": "assistant", "content": WORDS.concat() });
        (message, "stop")
    };
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "test-model",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14 },
    })
}

/// The events of the streamed answer, `[DONE]` included.
pub fn events(calls_tool: bool) -> Vec<String> {
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    if calls_tool {
        let function = json!({ "name": "weather", "arguments": "" });
        let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
        deltas.push(json!({ "tool_calls": [call] }));
        deltas.extend(["{\"city\":", "\"Kiel\"}"].map(|piece| {
            let piece = json!({ "index": 0, "function": { "arguments": piece } });
            json!({ "tool_calls": [piece] })
        }));
        framed(deltas, "tool_calls")
    } else {
        deltas.extend(WORDS.map(|word| json!({ "content": word })));
        framed(deltas, "stop")
    }
}

/// An event for each delta, one with the finish reason, and `[DONE]`.
pub(super) fn framed(deltas: impl IntoIterator<Item = Value>, finish: &str) -> Vec<String> {
    let event = |delta: Value, finish: Value| {
        let event = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "test-model",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        });
        format!("data: {event}\n\n")
    };
    let deltas = deltas.into_iter().map(|delta| event(delta, Value::Null));
    let mut events: Vec<String> = deltas.collect();
    events.push(event(json!({}), json!(finish)));
    events.push("data: [DONE]\n\n".to_owned());
    events
}
