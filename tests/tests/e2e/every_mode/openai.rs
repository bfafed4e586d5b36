//! OpenAI's clients asking for chat completions and for responses.

use serde_json::json;
use squall_tests::upstream::chat::WORDS;

use super::{Client, NODE, PYTHON, Row, hears, raises};

fn asking_for(name: &'static str, script: &'static str) -> Client {
    let dialect = match name {
        "responses" => "openai-responses",
        _ => "openai-chat",
    };
    Client {
        script,
        name,
        base: "/v1",
        dialect,
        without: &[],
    }
}

/// What the clients for Python and for Node both make of it.
fn of_a_chat() -> Vec<Row> {
    let cut = WORDS[..2].concat();
    vec![
        raises("timeout", "APIConnectionError", None, 3),
        raises("rate_limit", "RateLimitError", Some(429), 3).waits(),
        raises("overloaded", "InternalServerError", Some(503), 3),
        raises("server_error", "InternalServerError", Some(500), 3),
        raises("quota_exhausted", "RateLimitError", Some(429), 3)
            .says("exceeded your current quota"),
        raises("context_length_exceeded", "BadRequestError", Some(400), 1)
            .says("maximum context length"),
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
        hears("refusal", json!({ "finish": "stop", "refusal": true })),
        hears("malformed_tool_call", json!({ "names": ["weather"] })).changes(&["inputs"]),
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

/// What the clients for Python and for Node both make of it.
fn of_a_response() -> Vec<Row> {
    let cut = WORDS[..2].concat();
    vec![
        raises("timeout", "APIConnectionError", None, 3),
        raises("rate_limit", "RateLimitError", Some(429), 3).waits(),
        raises("overloaded", "InternalServerError", Some(503), 3),
        raises("server_error", "InternalServerError", Some(500), 3),
        raises("quota_exhausted", "RateLimitError", Some(429), 3)
            .says("exceeded your current quota"),
        raises("context_length_exceeded", "BadRequestError", Some(400), 1).says("context window"),
        raises("auth_error", "AuthenticationError", Some(401), 1),
        raises("model_not_found", "NotFoundError", Some(404), 1),
        raises("stream_error", "APIError", None, 1),
        hears(
            "truncated_response",
            json!({ "finish": "incomplete", "text": cut }),
        ),
        hears("empty", json!({ "finish": "completed", "text": "" })),
        hears("garbage", json!({ "finish": "completed" })).changes(&["text"]),
        hears("response_drift", json!({ "finish": "completed" })).changes(&["text"]),
        hears("content_filter", json!({ "finish": "incomplete" })),
        hears("refusal", json!({ "finish": "completed", "refusal": true })),
        hears("malformed_tool_call", json!({ "names": ["weather"] })).changes(&["inputs"]),
        hears("unknown_tool_call", json!({}))
            .changes(&["names"])
            .keeps(&["inputs"]),
        hears("wrong_tool_arguments", json!({ "names": ["weather"] })).changes(&["inputs"]),
        hears("slow_stream", json!({ "text": WORDS.concat() })),
        hears("duplicate_chunk", json!({ "finish": "completed" })).changes(&["pieces"]),
        hears(
            "missing_terminator",
            json!({ "text": WORDS.concat(), "finish": "in_progress" }),
        ),
        hears("json_for_stream", json!({ "text": "", "finish": null })),
    ]
}

#[test]
fn the_openai_client_takes_each_mode_of_a_chat() {
    let own = vec![
        raises("stream_stall", "APITimeoutError", None, 1),
        raises("stream_cut", "APIConnectionError", None, 1),
    ];
    asking_for("openai", PYTHON).takes(of_a_chat(), own);
}

#[test]
fn the_openai_client_for_node_takes_each_mode_of_a_chat() {
    let own = vec![
        raises("stream_stall", "TypeError", None, 1).says("terminated"),
        raises("stream_cut", "TypeError", None, 1).says("terminated"),
    ];
    asking_for("openai", NODE).takes(of_a_chat(), own);
}

#[test]
fn the_openai_client_takes_each_mode_of_a_response() {
    let own = vec![
        raises("stream_stall", "APITimeoutError", None, 1),
        raises("stream_cut", "APIConnectionError", None, 1),
    ];
    asking_for("responses", PYTHON).takes(of_a_response(), own);
}

#[test]
fn the_openai_client_for_node_takes_each_mode_of_a_response() {
    let own = vec![
        raises("stream_stall", "TypeError", None, 1).says("terminated"),
        raises("stream_cut", "TypeError", None, 1).says("terminated"),
    ];
    asking_for("responses", NODE).takes(of_a_response(), own);
}
