//! Google's clients.

use serde_json::json;
use squall_tests::upstream::chat::WORDS;

use super::{Client, NODE, PYTHON, Row, hears, raises};

fn client(script: &'static str) -> Client {
    Client {
        script,
        name: "google",
        base: "",
        dialect: "gemini",
        // Its streams end without a mark.
        without: &["missing_terminator"],
    }
}

/// What the clients for Python and for Node both make of it.
fn shared() -> Vec<Row> {
    // Six tokens of thought come before the words.
    let cut = WORDS[..3].concat();
    vec![
        hears(
            "truncated_response",
            json!({ "finish": "MAX_TOKENS", "text": cut }),
        )
        .under(json!({ "max_tokens": 9 })),
        hears("empty", json!({ "finish": "STOP", "text": "" })),
        hears("garbage", json!({ "finish": "STOP" })).changes(&["text"]),
        hears("response_drift", json!({ "finish": "STOP" })).changes(&["text"]),
        hears("content_filter", json!({ "finish": "SAFETY" })),
        hears("refusal", json!({ "finish": "STOP" })).changes(&["text"]),
        hears(
            "malformed_tool_call",
            json!({ "finish": "MALFORMED_FUNCTION_CALL", "names": [] }),
        ),
        hears("unknown_tool_call", json!({}))
            .changes(&["names"])
            .keeps(&["inputs"]),
        hears("wrong_tool_arguments", json!({}))
            .changes(&["inputs"])
            .keeps(&["names"]),
        hears("slow_stream", json!({ "text": WORDS.concat() })),
        hears("duplicate_chunk", json!({ "finish": "STOP" })).changes(&["pieces"]),
    ]
}

#[test]
fn googles_client_takes_each_mode() {
    let own = vec![
        raises("timeout", "RemoteProtocolError", None, 1),
        raises("rate_limit", "ClientError", Some(429), 1),
        raises("overloaded", "ServerError", Some(503), 1),
        raises("server_error", "ServerError", Some(500), 1),
        raises("quota_exhausted", "ClientError", Some(429), 1).says("exceeded your current quota"),
        raises("context_length_exceeded", "ClientError", Some(400), 1).says("input token count"),
        raises("auth_error", "ClientError", Some(400), 1),
        raises("model_not_found", "ClientError", Some(404), 1),
        raises("stream_stall", "ReadTimeout", None, 1),
        raises("stream_cut", "RemoteProtocolError", None, 1),
        raises("stream_error", "ServerError", Some(503), 1),
        hears("json_for_stream", json!({ "text": WORDS.concat() })).changes(&["pieces"]),
    ];
    client(PYTHON).takes(shared(), own);
}

#[test]
fn googles_client_for_node_takes_each_mode() {
    let own = vec![
        raises("timeout", "TypeError", None, 1).says("fetch failed"),
        raises("rate_limit", "ApiError", Some(429), 1),
        raises("overloaded", "ApiError", Some(503), 1),
        raises("server_error", "ApiError", Some(500), 1),
        raises("quota_exhausted", "ApiError", Some(429), 1).says("exceeded your current quota"),
        raises("context_length_exceeded", "ApiError", Some(400), 1).says("input token count"),
        raises("auth_error", "ApiError", Some(400), 1),
        raises("model_not_found", "ApiError", Some(404), 1),
        raises("stream_stall", "DOMException", None, 1).says("aborted"),
        raises("stream_cut", "TypeError", None, 1).says("terminated"),
        raises("stream_error", "ApiError", Some(503), 1),
        raises("json_for_stream", "Error", None, 1).says("Incomplete JSON segment"),
    ];
    client(NODE).takes(shared(), own);
}
