//! OpenAI's Responses: the words of [`super::chat`], streamed or not; reasoning and two tool calls
//! where tools are offered; a failure in the stream of the model `failing`.

use serde_json::{Value, json};

use super::chat::WORDS;
use super::messages::stream;
use super::standard::whole;
use super::{Connection, Request};

/// The model whose streams fail.
pub const FAILING: &str = "failing";

/// Answers `POST /v1/responses`; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    if asked["stream"] == true {
        stream(connection, &events(&asked))
    } else {
        let body = response(&asked, "completed", &outputs(&asked)).to_string();
        connection.send(whole("200 OK", "application/json", body.as_bytes()))
    }
}

fn response(asked: &Value, status: &str, output: &[Value]) -> Value {
    let usage = json!({
        "input_tokens": 9, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": 14,
    });
    json!({
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": asked["model"],
        "output": output,
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
        "usage": if status == "completed" { usage } else { Value::Null },
    })
}

/// The items of the output, complete.
fn outputs(asked: &Value) -> Vec<Value> {
    if asked.get("tools").is_some() {
        vec![
            reasoning("Look outside."),
            function_call("{\"city\":\"Kiel\"}", "completed"),
            custom_call("date", "completed"),
        ]
    } else {
        vec![message(&WORDS.concat(), "completed")]
    }
}

fn reasoning(text: &str) -> Value {
    let summary = json!([{ "type": "summary_text", "text": text }]);
    json!({ "id": "rs_1", "type": "reasoning", "summary": summary })
}

fn function_call(arguments: &str, status: &str) -> Value {
    json!({ "id": "fc_1", "type": "function_call", "status": status, "call_id": "call_1",
        "name": "weather", "arguments": arguments })
}

fn custom_call(input: &str, status: &str) -> Value {
    json!({ "id": "ctc_1", "type": "custom_tool_call", "status": status, "call_id": "call_2",
        "name": "shell", "input": input })
}

fn message(text: &str, status: &str) -> Value {
    let content = match status {
        "completed" => json!([part(text)]),
        _ => json!([]),
    };
    json!({ "id": "msg_1", "type": "message", "status": status, "role": "assistant",
        "content": content })
}

fn part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// Data of the events of the streamed answer.
pub fn events(asked: &Value) -> Vec<Value> {
    let begun = response(asked, "in_progress", &[]);
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
    ];
    if asked["model"] == FAILING {
        let mut failed = response(asked, "failed", &[]);
        failed["error"] = json!({ "code": "server_error", "message": "The model failed." });
        events.push(json!({ "type": "response.failed", "response": failed }));
        return numbered(events);
    }
    let output = outputs(asked);
    for (index, item) in output.iter().enumerate() {
        let of_item = |kind: &str, more: Value| with(kind, index, item, more);
        let (begun, between) = match item["type"].as_str() {
            Some("message") => {
                let text = WORDS.concat();
                let mut all = vec![of_item("content_part.added", json!({ "part": part("") }))];
                all.extend(WORDS.map(|word| {
                    of_item(
                        "output_text.delta",
                        json!({ "delta": word, "logprobs": [] }),
                    )
                }));
                all.push(of_item(
                    "output_text.done",
                    json!({ "text": text, "logprobs": [] }),
                ));
                all.push(of_item("content_part.done", json!({ "part": part(&text) })));
                (message("", "in_progress"), all)
            }
            Some("function_call") => {
                let pieces = ["{\"city\":", "\"Kiel\"}"];
                (
                    function_call("", "in_progress"),
                    called("function_call_arguments", "arguments", &pieces, &of_item),
                )
            }
            Some("custom_tool_call") => (
                custom_call("", "in_progress"),
                called("custom_tool_call_input", "input", &["da", "te"], &of_item),
            ),
            _ => (reasoning(""), Vec::new()),
        };
        let edge = |kind: &str, item: &Value| {
            json!({ "type": format!("response.output_item.{kind}"), "output_index": index,
                "item": item })
        };
        events.push(edge("added", &begun));
        events.extend(between);
        events.push(edge("done", item));
    }
    let ended = response(asked, "completed", &output);
    events.push(json!({ "type": "response.completed", "response": ended }));
    numbered(events)
}

/// The pieces of a call's arguments, and all of them once more.
fn called(
    kind: &str,
    field: &str,
    pieces: &[&str],
    of_item: &impl Fn(&str, Value) -> Value,
) -> Vec<Value> {
    let deltas = pieces
        .iter()
        .map(|piece| of_item(&format!("{kind}.delta"), json!({ "delta": piece })));
    let done = of_item(&format!("{kind}.done"), json!({ field: pieces.concat() }));
    deltas.chain([done]).collect()
}

/// An event about an item.
fn with(kind: &str, index: usize, item: &Value, more: Value) -> Value {
    let mut event = json!({
        "type": format!("response.{kind}"),
        "item_id": item["id"],
        "output_index": index,
    });
    if item["type"] == "message" {
        event["content_index"] = json!(0);
    }
    if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
        event.extend(more);
    }
    event
}

fn numbered(mut events: Vec<Value>) -> Vec<Value> {
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events
}
