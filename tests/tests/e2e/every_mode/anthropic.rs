//! Anthropic's clients.

use serde_json::json;
use squall_tests::upstream::chat::WORDS;

use super::{Ask, Client, NODE, PYTHON, Row, hears, raises};

fn client(script: &'static str) -> Client {
    Client {
        script,
        name: "anthropic",
        base: "",
        dialect: "anthropic",
        without: &[],
    }
}

/// What the clients for Python and for Node both make of it.
fn shared() -> Vec<Row> {
    let cut = WORDS[..2].concat();
    vec![
        raises("timeout", "APIConnectionError", None, 3),
        raises("rate_limit", "RateLimitError", Some(429), 3).waits(),
        raises("overloaded", "OverloadedError", Some(529), 3),
        raises("server_error", "InternalServerError", Some(500), 3),
        raises("quota_exhausted", "BadRequestError", Some(400), 1)
            .says("credit balance is too low"),
        raises("context_length_exceeded", "BadRequestError", Some(400), 1)
            .says("prompt is too long"),
        raises("auth_error", "AuthenticationError", Some(401), 1),
        raises("model_not_found", "NotFoundError", Some(404), 1),
        hears(
            "truncated_response",
            json!({ "finish": "max_tokens", "text": cut }),
        ),
        hears("empty", json!({ "finish": "end_turn", "text": "" })),
        hears("garbage", json!({ "finish": "end_turn" })).changes(&["text"]),
        hears("response_drift", json!({ "finish": "end_turn" })).changes(&["text"]),
        hears("content_filter", json!({ "finish": "refusal" })),
        hears("refusal", json!({ "finish": "refusal" })).changes(&["text"]),
        // Of a whole answer the arguments are JSON, never text that may be none.
        hears("malformed_tool_call", json!({ "names": ["weather"] }))
            .asked(Ask::StreamedTools)
            .changes(&["inputs"]),
        hears("unknown_tool_call", json!({}))
            .changes(&["names"])
            .keeps(&["inputs"]),
        hears("wrong_tool_arguments", json!({ "names": ["weather"] })).changes(&["inputs"]),
        hears("slow_stream", json!({ "text": WORDS.concat() })),
        hears("duplicate_chunk", json!({ "finish": "end_turn" })).changes(&["pieces"]),
        hears("missing_terminator", json!({}))
            .changes(&["pieces"])
            .keeps(&["text", "finish"]),
        hears("json_for_stream", json!({ "text": "", "finish": null })),
    ]
}

#[test]
fn the_anthropic_client_takes_each_mode() {
    let own = vec![
        raises("stream_stall", "ReadTimeout", None, 1),
        raises("stream_cut", "RemoteProtocolError", None, 1),
        raises("stream_error", "APIStatusError", Some(200), 1),
    ];
    client(PYTHON).takes(shared(), own);
}

#[test]
fn the_anthropic_client_for_node_takes_each_mode() {
    let own = vec![
        raises("stream_stall", "TypeError", None, 1).says("terminated"),
        raises("stream_cut", "TypeError", None, 1).says("terminated"),
        raises("stream_error", "APIError", None, 1).says("Overloaded"),
    ];
    client(NODE).takes(shared(), own);
}
