//! An OpenAI-compatible model: five words, streamed or not, or a tool call where tools are offered.

use serde_json::{Value, json};

use super::standard::{chunk, whole};
use super::{Connection, Request};

/// What the model says, word by word.
pub const WORDS: [&str; 5] = ["Squalls", " pass", " and", " ships", " remain."];

/// Answers `POST /v1/chat/completions`; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    // A model that has its tool's result says something; one that could ask for it does.
    let calls_tool = asked.get("tools").is_some()
        && !asked["messages"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["role"] == "tool"));
    if asked["stream"] == true {
        stream(connection, calls_tool)
    } else {
        let body = completion(calls_tool).to_string();
        connection.send(whole("200 OK", "application/json", body.as_bytes()))
    }
}

/// Answers with these words, an event for each where a stream is asked for, and counts no tokens;
/// false when the peer is gone.
pub fn say(connection: &mut Connection, request: &Request, words: &[&str]) -> bool {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    if asked["stream"] == true {
        let said = words.iter().map(|word| json!({ "content": word }));
        let begun = std::iter::once(json!({ "role": "assistant", "content": "" }));
        return send_events(connection, &framed(begun.chain(said), "stop"));
    }
    let mut body = completion(false);
    body["choices"][0]["message"]["content"] = json!(words.concat());
    body["usage"] = Value::Null;
    connection.send(whole(
        "200 OK",
        "application/json",
        body.to_string().as_bytes(),
    ))
}

/// The whole answer.
fn completion(calls_tool: bool) -> Value {
    let (message, finish) = if calls_tool {
        let call = json!({ "id": "call_1", "type": "function", "function": {
            "name": "weather", "arguments": "{\"city\":\"Kiel\"}" } });
        (
            json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
            "tool_calls",
        )
    } else {
        (
            json!({ "role": "assistant", "content": WORDS.concat() }),
            "stop",
        )
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

/// The events of the streamed answer, without framing, `[DONE]` included.
pub fn events(calls_tool: bool) -> Vec<String> {
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    if calls_tool {
        let call = |function: Value| json!([{ "index": 0, "function": function }]);
        let mut first = call(json!({ "name": "weather", "arguments": "" }));
        first[0]["id"] = json!("call_1");
        first[0]["type"] = json!("function");
        deltas.push(json!({ "tool_calls": first }));
        for piece in ["{\"city\":", "\"Kiel\"}"] {
            deltas.push(json!({ "tool_calls": call(json!({ "arguments": piece })) }));
        }
    } else {
        deltas.extend(WORDS.iter().map(|word| json!({ "content": word })));
    }
    framed(deltas, if calls_tool { "tool_calls" } else { "stop" })
}

/// Events that say so, why they end, and `[DONE]`.
pub(super) fn framed(deltas: impl IntoIterator<Item = Value>, finish: &str) -> Vec<String> {
    let event = |delta: Value, finish: Value| {
        json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "test-model",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        })
        .to_string()
    };
    let mut events: Vec<String> = deltas
        .into_iter()
        .map(|delta| event(delta, Value::Null))
        .collect();
    events.push(event(json!({}), json!(finish)));
    events.push("[DONE]".to_owned());
    events
        .into_iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

fn stream(connection: &mut Connection, calls_tool: bool) -> bool {
    send_events(connection, &events(calls_tool))
}

fn send_events(connection: &mut Connection, events: &[String]) -> bool {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        transfer-encoding: chunked\r\n\r\n";
    connection.send(head)
        && events.iter().all(|event| connection.send(chunk(event)))
        && connection.send("0\r\n\r\n")
}
