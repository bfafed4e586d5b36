//! Anthropic's Messages: the words of [`super::chat`], streamed or not; thinking and a tool call
//! where tools are offered.

use serde_json::{Value, json};

use super::chat::{SSE, WORDS};
use super::standard::{document, lines, streamed};
use super::{Connection, Request};

/// Answers `POST /v1/messages`; false when the peer is gone.
pub fn answer(connection: &mut Connection, request: &Request) -> bool {
    let asked = request.json();
    if asked["stream"] == true {
        return streamed(connection, SSE, named(&events(&asked)));
    }
    let mut message = head(&asked);
    let (content, reason) = if asked.get("tools").is_some() {
        let content = r#"[
            {"type":"thinking","thinking":"I should look outside.","signature":"EqkBCkYIBxgCKkDq8Zw1fVbT=="},
            {"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Kiel"}}
        ]"#;
        (serde_json::from_str(content).expect("JSON"), "tool_use")
    } else {
        let text = json!([{ "type": "text", "text": WORDS.concat() }]);
        (text, "end_turn")
    };
    message["content"] = content;
    message["stop_reason"] = json!(reason);
    message["usage"]["output_tokens"] = json!(5);
    document(connection, &message)
}

/// The message before its content.
pub(super) fn head(asked: &Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 9, "output_tokens": 1 },
    })
}

const TEXT: &str = r#"
{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"ping"}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Squalls"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" pass"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" and"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" ships"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" remain."}}
{"type":"content_block_stop","index":0}
{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}
{"type":"message_stop"}"#;

const TOOL: &str = r#"
{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
{"type":"ping"}
{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I should"}}
{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" look outside."}}
{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqkBCkYIBxgCKkDq8Zw1fVbT=="}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"city\":"}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":" \"Kiel\"}"}}
{"type":"content_block_stop","index":1}
{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5}}
{"type":"message_stop"}"#;

/// Data of the events of the streamed answer.
pub fn events(asked: &Value) -> Vec<Value> {
    let start = json!({ "type": "message_start", "message": head(asked) });
    let rest = if asked.get("tools").is_some() {
        TOOL
    } else {
        TEXT
    };
    [vec![start], lines(rest)].concat()
}

/// Server-sent events that are named by their type.
pub fn named(events: &[Value]) -> Vec<String> {
    let framed = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    framed.collect()
}
