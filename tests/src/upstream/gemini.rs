//! A model that speaks `gemini`: a thought, then five words, streamed or not, or two tool calls
//! where tools are offered.
//!
//! A request with the header `x-step` gets each event of a stream only after a step of the test's.

use serde_json::{Value, json};

use super::standard::{chunk, whole};
use super::{Connection, Request};

/// What the model says, word by word.
pub const WORDS: [&str; 5] = ["Squalls", " pass", " and", " ships", " remain."];

/// What it signs with, in base64.
pub const SIGNATURE: &str = "EjQKMgG+Pvb7sLr3H4wqQGx1bXBz";

const MODEL: &str = "gemini-3-flash-preview";

/// Serves one connection until it ends.
pub fn serve(mut connection: Connection) {
    while let Some(request) = connection.request() {
        if !answer(&mut connection, &request) {
            return;
        }
    }
}

/// Answers `…:generateContent` and `…:streamGenerateContent`; false when the peer is gone.
fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let calls_tools = asked.get("tools").is_some();
    let events = events(calls_tools);
    let (path, query) = request
        .target
        .split_once('?')
        .unwrap_or((&request.target, ""));
    if path.ends_with(":streamGenerateContent") {
        let framed = if query.contains("alt=sse") {
            sse(&events)
        } else {
            list(&events)
        };
        stream(connection, request, query.contains("alt=sse"), &framed)
    } else if path.ends_with(":generateContent") {
        let answer = format!("{:#}\n", whole_answer(&events));
        let json = "application/json; charset=UTF-8";
        connection.send(whole("200 OK", json, answer.as_bytes()))
    } else {
        let json = "application/json; charset=UTF-8";
        connection.send(whole(
            "404 Not Found",
            json,
            b"{\"error\": {\"code\": 404}}",
        ))
    }
}

/// The events of an answer, each a whole response.
pub fn events(calls_tools: bool) -> Vec<Value> {
    let thought = json!({ "text": "**Looking out to sea**", "thought": true });
    let mut parts = vec![(thought, 0)];
    if calls_tools {
        let call = |id: &str, name: &str, arguments: Value| json!({ "functionCall": { "id": id, "name": name, "args": arguments } });
        let mut first = call("hk3w9v2q", "weather", json!({ "city": "Kiel" }));
        first["thoughtSignature"] = json!(SIGNATURE);
        parts.push((first, 12));
        parts.push((call("p7x0c4dd", "time", json!({})), 20));
        parts.push((json!({ "text": "" }), 20));
    } else {
        parts.extend(
            (1..)
                .zip(WORDS)
                .map(|(count, word)| (json!({ "text": word }), count)),
        );
        parts.push((json!({ "text": "", "thoughtSignature": SIGNATURE }), 5));
    }
    let last = parts.len() - 1;
    let event = |(at, (part, written)): (usize, (Value, u64))| {
        let mut candidate = json!({
            "content": { "parts": [part], "role": "model" }, "index": 0,
        });
        if at == last {
            candidate["finishReason"] = json!("STOP");
        }
        let mut usage = json!({
            "promptTokenCount": 9,
            "totalTokenCount": 29 + written,
            "thoughtsTokenCount": 20,
        });
        if written > 0 {
            usage["candidatesTokenCount"] = json!(written);
        }
        json!({
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": MODEL,
            "responseId": "AdVRaMmDCYekqtsPrb_-iA",
        })
    };
    parts.into_iter().enumerate().map(event).collect()
}

/// All events in one: their parts in order, neighbouring words as one.
fn whole_answer(events: &[Value]) -> Value {
    let mut parts: Vec<Value> = Vec::new();
    for event in events {
        let part = &event["candidates"][0]["content"]["parts"][0];
        let is_words = |part: &Value| part["text"].is_string() && part["thought"] != true;
        match parts.last_mut() {
            Some(last) if is_words(last) && is_words(part) => {
                let text = [&last["text"], &part["text"]].map(|text| text.as_str().unwrap_or(""));
                last["text"] = json!(text.concat());
                if let Some(signature) = part.get("thoughtSignature") {
                    last["thoughtSignature"] = signature.clone();
                }
            }
            _ if part["text"] == "" => {}
            _ => parts.push(part.clone()),
        }
    }
    let mut answer = events.last().cloned().unwrap_or_default();
    answer["candidates"][0]["content"]["parts"] = json!(parts);
    answer
}

/// Server-sent events, as with `alt=sse`.
pub fn sse(events: &[Value]) -> Vec<String> {
    let events = events.iter();
    events
        .map(|event| format!("data: {event}\r\n\r\n"))
        .collect()
}

/// One list, as without it.
pub fn list(events: &[Value]) -> Vec<String> {
    let last = events.len() - 1;
    let piece = |(at, event): (usize, &Value)| {
        let before = if at == 0 { "[" } else { ",\r\n" };
        let after = if at == last { "\n]\n" } else { "\n" };
        format!("{before}{event:#}{after}")
    };
    events.iter().enumerate().map(piece).collect()
}

fn stream(connection: &mut Connection, request: &Request, sse: bool, pieces: &[String]) -> bool {
    let media_type = if sse {
        "text/event-stream"
    } else {
        "application/json; charset=UTF-8"
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    let stepped = request.header("x-step").is_some();
    connection.send(head)
        && pieces
            .iter()
            .all(|piece| (!stepped || connection.wait_for_step()) && connection.send(chunk(piece)))
        && connection.send("0\r\n\r\n")
}
