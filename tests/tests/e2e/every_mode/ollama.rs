//! Ollama's clients.

use serde_json::json;
use squall_tests::upstream::chat::WORDS;

use super::{Client, NODE, PYTHON, Row, hears, raises};

fn client(script: &'static str) -> Client {
    Client {
        script,
        name: "ollama",
        base: "",
        dialect: "ollama",
        without: &["malformed_tool_call"],
    }
}

/// What the clients for Python and for Node both make of it.
fn shared() -> Vec<Row> {
    // Three tokens of thinking come before the words.
    let cut = WORDS[..2].concat();
    vec![
        raises("rate_limit", "ResponseError", Some(429), 1),
        raises("overloaded", "ResponseError", Some(503), 1),
        raises("server_error", "ResponseError", Some(500), 1),
        raises("quota_exhausted", "ResponseError", Some(429), 1).says("weekly usage limit"),
        raises("context_length_exceeded", "ResponseError", Some(400), 1).says("context length"),
        raises("auth_error", "ResponseError", Some(401), 1),
        raises("model_not_found", "ResponseError", Some(404), 1),
        hears(
            "truncated_response",
            json!({ "finish": "length", "text": cut }),
        )
        .under(json!({ "max_tokens": 5 })),
        hears("empty", json!({ "finish": "stop", "text": "" })),
        hears("garbage", json!({ "finish": "stop" })).changes(&["text"]),
        hears("response_drift", json!({ "finish": "stop" })).changes(&["text"]),
        hears("content_filter", json!({ "finish": "stop" })).changes(&["text"]),
        hears("refusal", json!({ "finish": "stop" })).changes(&["text"]),
        hears("unknown_tool_call", json!({}))
            .changes(&["names"])
            .keeps(&["inputs"]),
        hears("wrong_tool_arguments", json!({}))
            .changes(&["inputs"])
            .keeps(&["names"]),
        hears("slow_stream", json!({ "text": WORDS.concat() })),
        hears("duplicate_chunk", json!({ "finish": "stop" })).changes(&["pieces"]),
        hears("json_for_stream", json!({ "text": WORDS.concat() })).changes(&["pieces"]),
    ]
}

#[test]
fn ollamas_client_takes_each_mode() {
    let own = vec![
        raises("timeout", "RemoteProtocolError", None, 1),
        raises("stream_stall", "ReadTimeout", None, 1),
        raises("stream_cut", "RemoteProtocolError", None, 1),
        raises("stream_error", "ResponseError", None, 1),
        hears(
            "missing_terminator",
            json!({ "text": WORDS.concat(), "finish": null }),
        ),
    ];
    client(PYTHON).takes(shared(), own);
}

#[test]
fn ollamas_client_for_node_takes_each_mode() {
    let own = vec![
        raises("timeout", "TypeError", None, 1).says("fetch failed"),
        raises("stream_stall", "TypeError", None, 1).says("terminated"),
        raises("stream_cut", "TypeError", None, 1).says("terminated"),
        raises("stream_error", "Error", None, 1).says("server busy"),
        raises("missing_terminator", "Error", None, 1).says("Did not receive done"),
    ];
    client(NODE).takes(shared(), own);
}
