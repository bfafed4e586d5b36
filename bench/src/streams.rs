//! A streamed answer of each dialect, each [`EVENTS`] events that say a word, in the framing that the
//! provider sends it in.

use serde_json::{Value, json};

/// Events of one answer that say a word; what begins and ends it is not counted.
pub const EVENTS: usize = 200;

/// A streamed answer and what asks for it.
pub struct Stream {
    /// What its row calls it.
    pub name: &'static str,
    /// Where it is asked for; no other stream's path ends so.
    pub path: &'static str,
    /// The request's body.
    pub body: &'static str,
    /// The answer's media type.
    pub media_type: &'static str,
    /// Its events, framed, in order.
    pub events: fn() -> Vec<Vec<u8>>,
}

const SSE: &str = "text/event-stream";

/// One of each dialect and framing.
pub const STREAMS: [Stream; 7] = [
    Stream {
        name: "openai-chat",
        path: "/v1/chat/completions",
        body: r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Write."}]}"#,
        media_type: SSE,
        events: chat,
    },
    Stream {
        name: "openai-responses",
        path: "/v1/responses",
        body: r#"{"model":"m","stream":true,"input":"Write."}"#,
        media_type: SSE,
        events: responses,
    },
    Stream {
        name: "anthropic",
        path: "/v1/messages",
        body: r#"{"model":"m","max_tokens":999,"stream":true,"messages":[{"role":"user","content":"Write."}]}"#,
        media_type: SSE,
        events: anthropic,
    },
    Stream {
        name: "gemini",
        path: "/v1beta/models/m:streamGenerateContent?alt=sse",
        body: r#"{"contents":[{"role":"user","parts":[{"text":"Write."}]}]}"#,
        media_type: SSE,
        events: || {
            let events = gemini();
            events
                .iter()
                .map(|event| format!("data: {event}\r\n\r\n").into())
                .collect()
        },
    },
    Stream {
        name: "gemini, a list",
        path: "/v1beta/models/m:streamGenerateContent",
        body: r#"{"contents":[{"role":"user","parts":[{"text":"Write."}]}]}"#,
        media_type: "application/json",
        events: || {
            let events = gemini();
            let item = |(at, event): (usize, &Value)| {
                let before = if at == 0 { "[" } else { ",\r\n" };
                let after = if at + 1 == events.len() {
                    "\n]\n"
                } else {
                    "\n"
                };
                format!("{before}{event:#}{after}").into()
            };
            events.iter().enumerate().map(item).collect()
        },
    },
    Stream {
        name: "ollama",
        path: "/api/chat",
        body: r#"{"model":"m","messages":[{"role":"user","content":"Write."}]}"#,
        media_type: "application/x-ndjson",
        events: ollama,
    },
    Stream {
        name: "bedrock",
        path: "/model/m/converse-stream",
        body: r#"{"messages":[{"role":"user","content":[{"text":"Write."}]}]}"#,
        media_type: "application/vnd.amazon.eventstream",
        events: bedrock,
    },
];

fn words() -> impl Iterator<Item = String> {
    (0..EVENTS).map(|index| format!(" word{index}"))
}

fn chat() -> Vec<Vec<u8>> {
    let event = |word| {
        let event = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "m",
            "choices": [{ "index": 0, "delta": { "content": word }, "finish_reason": null }],
        });
        format!("data: {event}\n\n").into()
    };
    words()
        .map(event)
        .chain([b"data: [DONE]\n\n".to_vec()])
        .collect()
}

/// A server-sent event that is named by its type.
fn named(event: &Value) -> Vec<u8> {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n").into()
}

fn responses() -> Vec<Vec<u8>> {
    let text: String = words().collect();
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
    let item = |text: &str, status: &str| {
        json!({ "id": "msg_1", "type": "message", "status": status, "role": "assistant",
            "content": if text.is_empty() { json!([]) } else { json!([part(text)]) } })
    };
    let response = |status: &str, output: Value| {
        json!({ "id": "resp_1", "object": "response", "created_at": 1_700_000_000,
            "status": status, "model": "m", "output": output,
            "usage": { "input_tokens": 9, "output_tokens": EVENTS, "total_tokens": EVENTS + 9 } })
    };
    let of_item = |kind: &str, field: &str, value: Value| {
        json!({ "type": format!("response.{kind}"), "item_id": "msg_1", "output_index": 0,
            "content_index": 0, field: value })
    };
    let edge = |kind: &str, item: Value| json!({ "type": format!("response.output_item.{kind}"), "output_index": 0, "item": item });
    let begun = response("in_progress", json!([]));
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
        edge("added", item("", "in_progress")),
        of_item("content_part.added", "part", part("")),
    ];
    events.extend(words().map(|word| of_item("output_text.delta", "delta", json!(word))));
    events.extend([
        of_item("output_text.done", "text", json!(text)),
        of_item("content_part.done", "part", part(&text)),
        edge("done", item(&text, "completed")),
        json!({ "type": "response.completed",
            "response": response("completed", json!([item(&text, "completed")])) }),
    ]);
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events.iter().map(named).collect()
}

fn anthropic() -> Vec<Vec<u8>> {
    let delta = |word| {
        json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": word } })
    };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 9, "output_tokens": 1 },
    });
    let mut events = vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0,
            "content_block": { "type": "text", "text": "" } }),
    ];
    events.extend(words().map(delta));
    events.extend([
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta",
            "delta": { "stop_reason": "end_turn", "stop_sequence": null },
            "usage": { "output_tokens": EVENTS } }),
        json!({ "type": "message_stop" }),
    ]);
    events.iter().map(named).collect()
}

fn gemini() -> Vec<Value> {
    let mut events: Vec<Value> = (1..)
        .zip(words())
        .map(|(count, word)| {
            json!({
                "candidates": [{
                    "content": { "parts": [{ "text": word }], "role": "model" }, "index": 0,
                }],
                "usageMetadata": {
                    "promptTokenCount": 9, "candidatesTokenCount": count,
                    "totalTokenCount": count + 9,
                },
                "modelVersion": "m",
                "responseId": "AdVRaMmDCYekqtsPrb_-iA",
            })
        })
        .collect();
    if let Some(last) = events.last_mut() {
        last["candidates"][0]["finishReason"] = json!("STOP");
    }
    events
}

fn ollama() -> Vec<Vec<u8>> {
    let line = |word: &str, more: &[(&str, Value)]| {
        let mut line = json!({
            "model": "m", "created_at": "2026-10-26T17:21:21.196249Z",
            "message": { "role": "assistant", "content": word }, "done": false,
        });
        for (key, value) in more {
            line[key] = value.clone();
        }
        format!("{line}\n").into()
    };
    let end = [
        ("done", json!(true)),
        ("done_reason", json!("stop")),
        ("total_duration", json!(4_883_583_458_u64)),
        ("prompt_eval_count", json!(9)),
        ("eval_count", json!(EVENTS)),
    ];
    words()
        .map(|word| line(&word, &[]))
        .chain([line("", &end)])
        .collect()
}

fn bedrock() -> Vec<Vec<u8>> {
    let mut events = vec![("messageStart", json!({ "p": "abcd", "role": "assistant" }))];
    events.extend(words().map(|word| {
        let delta = json!({ "contentBlockIndex": 0, "delta": { "text": word }, "p": "abcdefgh" });
        ("contentBlockDelta", delta)
    }));
    events.extend([
        (
            "contentBlockStop",
            json!({ "contentBlockIndex": 0, "p": "ab" }),
        ),
        (
            "messageStop",
            json!({ "p": "abc", "stopReason": "end_turn" }),
        ),
        (
            "metadata",
            json!({ "metrics": { "latencyMs": 12 }, "p": "a", "usage": {
                "inputTokens": 9, "outputTokens": EVENTS, "totalTokens": EVENTS + 9 } }),
        ),
    ]);
    let framed = events
        .iter()
        .map(|(name, event)| message(name, &event.to_string()));
    framed.collect()
}

/// One message of Amazon's event stream.
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
        let length = u16::try_from(value.len()).expect("a short value");
        headers.extend(length.to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let length = |length: usize| {
        let length = u32::try_from(length).expect("a small message");
        length.to_be_bytes()
    };
    let mut message = Vec::new();
    message.extend(length(16 + headers.len() + payload.len()));
    message.extend(length(headers.len()));
    message.extend(checksum(&message).to_be_bytes());
    message.extend(headers);
    message.extend(payload.as_bytes());
    message.extend(checksum(&message).to_be_bytes());
    message
}

/// CRC-32, bit by bit: each stream is made but once.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32| match crc & 1 {
        0 => crc >> 1,
        _ => crc >> 1 ^ 0xedb8_8320,
    };
    !bytes.iter().fold(!0, |crc: u32, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_amazons() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn every_stream_says_every_word() {
        for stream in STREAMS {
            let events = (stream.events)();
            assert!(events.len() >= EVENTS, "{}", stream.name);
            for index in 0..EVENTS {
                let word = format!(" word{index}\"");
                let says = |event: &Vec<u8>| String::from_utf8_lossy(event).contains(&word);
                assert!(events.iter().any(says), "{}: {word}", stream.name);
            }
        }
    }
}
