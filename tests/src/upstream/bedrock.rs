//! Bedrock Runtime: the words of [`super::chat`] in Amazon's event stream.
//!
//! | path ends with | answer |
//! |---|---|
//! | `/converse` | one JSON document; where tools are offered, a call of one |
//! | `/converse-stream` | Amazon's event stream |
//! | `/invoke` | a chat completion |
//! | `/invoke-with-response-stream` | chunks of one, inside of Amazon's event stream |

use flate2::Crc;
use serde_json::{Value, json};

use super::chat::WORDS;
use super::standard::{base64, document, streamed};
use super::{Connection, Request};

/// Answers one of `PATHS`; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request, last: &str) -> bool {
    match last {
        "converse" => document(connection, &conversed(request)),
        "converse-stream" => streamed(connection, STREAM, events()),
        "invoke-with-response-stream" => streamed(connection, STREAM, chunks()),
        _ => document(connection, &completed()),
    }
}

/// The last part of every path.
pub const PATHS: [&str; 4] = [
    "converse",
    "converse-stream",
    "invoke",
    "invoke-with-response-stream",
];

const STREAM: &str = "application/vnd.amazon.eventstream";

fn usage() -> Value {
    json!({ "inputTokens": 9, "outputTokens": 5, "totalTokens": 14 })
}

fn conversed(request: &Request) -> Value {
    let (block, reason) = if request.json().get("toolConfig").is_some() {
        let input = json!({ "city": "Kiel" });
        let call = json!({ "toolUseId": "tooluse_1", "name": "weather", "input": input });
        (json!({ "toolUse": call }), "tool_use")
    } else {
        (json!({ "text": WORDS.concat() }), "end_turn")
    };
    json!({
        "metrics": { "latencyMs": 12 },
        "output": { "message": { "content": [block], "role": "assistant" } },
        "stopReason": reason,
        "usage": usage(),
    })
}

fn completed() -> Value {
    let message = json!({ "role": "assistant", "content": WORDS.concat() });
    json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })
}

/// The messages of `ConverseStream`.
pub fn events() -> Vec<Vec<u8>> {
    let mut events = vec![("messageStart", json!({ "p": "abcd", "role": "assistant" }))];
    events.extend(WORDS.iter().map(|word| {
        let piece = json!({ "contentBlockIndex": 0, "delta": { "text": word }, "p": "abcdefg" });
        ("contentBlockDelta", piece)
    }));
    events.extend([
        (
            "contentBlockStop",
            json!({ "contentBlockIndex": 0, "p": "ab" }),
        ),
        (
            "messageStop",
            json!({ "p": "abcdefghi", "stopReason": "end_turn" }),
        ),
        (
            "metadata",
            json!({ "metrics": { "latencyMs": 12 }, "p": "a", "usage": usage() }),
        ),
    ]);
    events
        .iter()
        .map(|(name, event)| message(name, &event.to_string()))
        .collect()
}

/// The messages of `InvokeModelWithResponseStream`.
pub fn chunks() -> Vec<Vec<u8>> {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        let payload = json!({ "bytes": base64(chunk.to_string().as_bytes()), "p": "abc" });
        message("chunk", &payload.to_string())
    };
    let mut chunks: Vec<_> = WORDS
        .iter()
        .map(|word| chunk(json!({ "content": word }), Value::Null))
        .collect();
    chunks.push(chunk(json!({}), json!("stop")));
    chunks
}

/// One event as Amazon's encoding lays it out.
fn message(name: &str, payload: &str) -> Vec<u8> {
    let mut headers = Vec::new();
    for (header, value) in [
        (":event-type", name),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ] {
        headers.push(u8::try_from(header.len()).expect("a short name"));
        headers.extend(header.as_bytes());
        headers.push(7);
        headers.extend(
            u16::try_from(value.len())
                .expect("a short value")
                .to_be_bytes(),
        );
        headers.extend(value.as_bytes());
    }
    let length = |length: usize| {
        u32::try_from(length)
            .expect("a small message")
            .to_be_bytes()
    };
    let mut message = Vec::new();
    message.extend(length(16 + headers.len() + payload.len()));
    message.extend(length(headers.len()));
    message.extend(checksum(&message));
    message.extend(headers);
    message.extend(payload.as_bytes());
    message.extend(checksum(&message));
    message
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_be_bytes()
}
