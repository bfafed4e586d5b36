//! OpenAI's Responses: the words of [`super::chat`], streamed or not; reasoning and two tool calls
//! where tools are offered.

use serde_json::{Value, json};

use super::chat::SSE;
use super::messages::named;
use super::standard::{document, lines, streamed};
use super::{Connection, Request};

/// Answers `POST /v1/responses`; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked = request.json();
    if asked["stream"] == true {
        streamed(connection, SSE, named(&events(&asked)))
    } else {
        let output = outputs(&items(&asked));
        document(connection, &response(&asked, "completed", &output))
    }
}

fn response(asked: &Value, status: &str, output: &[Value]) -> Value {
    let usage = json!({
        "input_tokens": 9, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": 14,
    });
    json!({
        "id": "resp_1", "object": "response", "created_at": 1_700_000_000, "status": status,
        "error": null, "incomplete_details": null, "model": asked["model"], "output": output,
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        "usage": if status == "completed" { usage } else { Value::Null },
    })
}

const MESSAGE: &str = r#"
{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
{"type":"response.content_part.added","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Squalls","logprobs":[]}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" pass","logprobs":[]}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" and","logprobs":[]}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" ships","logprobs":[]}
{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" remain.","logprobs":[]}
{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"Squalls pass and ships remain.","logprobs":[]}
{"type":"response.content_part.done","item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Squalls pass and ships remain.","annotations":[],"logprobs":[]}}
{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Squalls pass and ships remain.","annotations":[],"logprobs":[]}]}}"#;

const CALLS: &str = r#"
{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":""}]}}
{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Look outside."}]}}
{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"weather","arguments":""}}
{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{\"city\":"}
{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"\"Kiel\"}"}
{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":1,"arguments":"{\"city\":\"Kiel\"}"}
{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Kiel\"}"}}
{"type":"response.output_item.added","output_index":2,"item":{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"call_2","name":"shell","input":""}}
{"type":"response.custom_tool_call_input.delta","item_id":"ctc_1","output_index":2,"delta":"da"}
{"type":"response.custom_tool_call_input.delta","item_id":"ctc_1","output_index":2,"delta":"te"}
{"type":"response.custom_tool_call_input.done","item_id":"ctc_1","output_index":2,"input":"date"}
{"type":"response.output_item.done","output_index":2,"item":{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_2","name":"shell","input":"date"}}"#;

/// Data of the events about the items of the output.
fn items(asked: &Value) -> Vec<Value> {
    lines(if asked.get("tools").is_some() {
        CALLS
    } else {
        MESSAGE
    })
}

/// The complete items.
fn outputs(items: &[Value]) -> Vec<Value> {
    let done = items
        .iter()
        .filter(|event| event["type"] == "response.output_item.done");
    done.map(|event| event["item"].clone()).collect()
}

/// Data of the events of the streamed answer.
pub fn events(asked: &Value) -> Vec<Value> {
    let begun = response(asked, "in_progress", &[]);
    let items = items(asked);
    let ended = response(asked, "completed", &outputs(&items));
    let mut events = vec![
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.in_progress", "response": begun }),
    ];
    events.extend(items);
    events.push(json!({ "type": "response.completed", "response": ended }));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events
}
