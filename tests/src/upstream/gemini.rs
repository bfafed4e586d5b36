//! Gemini: a thought, then the words of [`super::chat`], streamed or not, or two tool calls where
//! tools are offered.

use serde_json::{Value, json};

use super::chat::{SSE, WORDS};
use super::standard::{document, streamed};
use super::{Connection, Request};

const SIGNATURE: &str = "EjQKMgG+Pvb7sLr3H4wqQGx1bXBz";

/// Answers `…:generateContent` and `…:streamGenerateContent`; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request) -> bool {
    let calls_tools = request.json().get("tools").is_some();
    if request.target.contains("alt=sse") {
        streamed(connection, SSE, sse(&events(calls_tools)))
    } else if request.target.contains(":stream") {
        streamed(connection, "application/json", list(&events(calls_tools)))
    } else {
        document(connection, &whole_answer(calls_tools))
    }
}

fn thought() -> Value {
    json!({ "text": "**Looking out to sea**", "thought": true })
}

fn calls() -> [Value; 2] {
    let call = |id: &str, name: &str, arguments: Value| json!({ "functionCall": { "id": id, "name": name, "args": arguments } });
    let mut first = call("hk3w9v2q", "weather", json!({ "city": "Kiel" }));
    first["thoughtSignature"] = json!(SIGNATURE);
    [first, call("p7x0c4dd", "time", json!({}))]
}

fn response(parts: &[Value], written: u64, is_last: bool) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    if is_last {
        candidate["finishReason"] = json!("STOP");
    }
    let mut usage = json!({
        "promptTokenCount": 9, "totalTokenCount": 29 + written, "thoughtsTokenCount": 20,
    });
    if written > 0 {
        usage["candidatesTokenCount"] = json!(written);
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage,
        "modelVersion": "gemini-3-flash-preview", "responseId": "AdVRaMmDCYekqtsPrb_-iA",
    })
}

fn whole_answer(calls_tools: bool) -> Value {
    if calls_tools {
        let [first, second] = calls();
        return response(&[thought(), first, second], 20, true);
    }
    let text = json!({ "text": WORDS.concat(), "thoughtSignature": SIGNATURE });
    response(&[thought(), text], 5, true)
}

/// The events of a streamed answer, each a whole response.
pub fn events(calls_tools: bool) -> Vec<Value> {
    let mut events = vec![response(&[thought()], 0, false)];
    if calls_tools {
        let counted = calls().into_iter().zip([12, 20]);
        events.extend(counted.map(|(call, written)| response(&[call], written, false)));
        events.push(response(&[json!({ "text": "" })], 20, true));
    } else {
        let counted = (1..).zip(WORDS);
        events.extend(
            counted.map(|(written, word)| response(&[json!({ "text": word })], written, false)),
        );
        let signed = json!({ "text": "", "thoughtSignature": SIGNATURE });
        events.push(response(&[signed], 5, true));
    }
    events
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
