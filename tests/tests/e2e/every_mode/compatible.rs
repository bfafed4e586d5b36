//! The clients of Mistral and Groq, which speak OpenAI's format.

use serde_json::json;
use squall_tests::upstream::chat::WORDS;

use super::{Client, NODE, PYTHON, Row, hears, raises, waits_on};

fn mistral(script: &'static str) -> Client {
    Client {
        script,
        name: "mistralai",
        base: "/mistral",
        dialect: "openai-chat",
        without: &[],
    }
}

fn groq(script: &'static str) -> Client {
    Client {
        script,
        name: "groq",
        base: "",
        dialect: "openai-chat",
        // Groq checks the arguments that its models write.
        without: &["malformed_tool_call"],
    }
}

/// What the clients for Python and for Node both make of it.
fn of_mistral() -> Vec<Row> {
    let cut = WORDS[..2].concat();
    vec![
        raises("rate_limit", "SDKError", Some(429), 1),
        raises("overloaded", "SDKError", Some(503), 1),
        raises("server_error", "SDKError", Some(500), 1),
        raises("quota_exhausted", "SDKError", Some(402), 1).says("Payment required"),
        raises("context_length_exceeded", "SDKError", Some(400), 1).says("too large"),
        raises("auth_error", "SDKError", Some(401), 1),
        raises("model_not_found", "SDKError", Some(404), 1),
        hears(
            "truncated_response",
            json!({ "finish": "length", "text": cut }),
        ),
        hears("empty", json!({ "finish": "stop", "text": "" })),
        hears("garbage", json!({ "finish": "stop" })).changes(&["text"]),
        hears("response_drift", json!({ "finish": "stop" })).changes(&["text"]),
        hears("content_filter", json!({ "finish": "content_filter" })),
        hears("refusal", json!({ "finish": "stop" })).changes(&["text"]),
        hears("malformed_tool_call", json!({ "names": ["weather"] })).changes(&["inputs"]),
        hears("unknown_tool_call", json!({}))
            .changes(&["names"])
            .keeps(&["inputs"]),
        hears("wrong_tool_arguments", json!({ "names": ["weather"] })).changes(&["inputs"]),
        hears("slow_stream", json!({ "text": WORDS.concat() })),
        hears("duplicate_chunk", json!({ "finish": "stop" })).changes(&["pieces"]),
        hears("missing_terminator", json!({})).unnoticed(),
        raises("json_for_stream", "SDKError", Some(200), 1),
    ]
}

/// What the clients for Python and for Node both make of it.
fn of_groq() -> Vec<Row> {
    let cut = WORDS[..2].concat();
    vec![
        raises("timeout", "APIConnectionError", None, 3),
        raises("rate_limit", "RateLimitError", Some(429), 3).waits(),
        raises("overloaded", "InternalServerError", Some(503), 3),
        raises("server_error", "InternalServerError", Some(500), 3),
        raises("context_length_exceeded", "BadRequestError", Some(400), 1)
            .says("reduce the length"),
        raises("auth_error", "AuthenticationError", Some(401), 1),
        raises("model_not_found", "NotFoundError", Some(404), 1),
        raises("stream_error", "APIError", None, 1),
        hears(
            "truncated_response",
            json!({ "finish": "length", "text": cut }),
        ),
        hears("empty", json!({ "finish": "stop", "text": "" })),
        hears("garbage", json!({ "finish": "stop" })).changes(&["text"]),
        hears("response_drift", json!({ "finish": "stop" })).changes(&["text"]),
        hears("content_filter", json!({ "finish": "content_filter" })),
        hears("refusal", json!({ "finish": "stop" })).changes(&["text"]),
        hears("unknown_tool_call", json!({}))
            .changes(&["names"])
            .keeps(&["inputs"]),
        hears("wrong_tool_arguments", json!({ "names": ["weather"] })).changes(&["inputs"]),
        hears("slow_stream", json!({ "text": WORDS.concat() })),
        hears("duplicate_chunk", json!({ "finish": "stop" })).changes(&["pieces"]),
        hears("missing_terminator", json!({})).unnoticed(),
        hears("json_for_stream", json!({ "text": "", "finish": null })),
    ]
}

#[test]
fn mistrals_client_takes_each_mode() {
    let own = vec![
        raises("timeout", "RemoteProtocolError", None, 1),
        raises("stream_stall", "ReadTimeout", None, 1),
        raises("stream_cut", "RemoteProtocolError", None, 1),
        raises("stream_error", "ResponseValidationError", None, 1),
    ];
    mistral(PYTHON).takes(of_mistral(), own);
}

#[test]
fn mistrals_client_for_node_takes_each_mode() {
    let own = vec![
        raises("timeout", "ConnectionError", None, 1).says("fetch failed"),
        raises("stream_stall", "TypeError", None, 1).says("terminated"),
        raises("stream_cut", "TypeError", None, 1).says("terminated"),
        raises("stream_error", "ZodError", None, 1),
    ];
    mistral(NODE).takes(of_mistral(), own);
}

#[test]
fn groqs_client_takes_each_mode() {
    let own = vec![
        raises("quota_exhausted", "RateLimitError", Some(429), 3).says("tokens per day"),
        raises("stream_stall", "ReadTimeout", None, 1),
        raises("stream_cut", "RemoteProtocolError", None, 1),
    ];
    groq(PYTHON).takes(of_groq(), own);
}

#[test]
fn groqs_client_for_node_takes_each_mode() {
    let own = vec![
        // Told to come back in ten minutes, it waits them out; the one for Python heeds at most one.
        waits_on("quota_exhausted", 1),
        raises("stream_stall", "TypeError", None, 1).says("terminated"),
        raises("stream_cut", "TypeError", None, 1).says("terminated"),
    ];
    groq(NODE).takes(of_groq(), own);
}
