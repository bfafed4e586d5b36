//! Amazon's clients, by `Converse`.

use serde_json::json;
use squall_tests::upstream::chat::WORDS;

use super::{Client, NODE, PYTHON, Row, hears, raises};

fn client(script: &'static str) -> Client {
    Client {
        script,
        name: "bedrock",
        base: "",
        dialect: "bedrock",
        without: &[],
    }
}

/// What the clients for Python and for Node both make of it.
fn shared() -> Vec<Row> {
    let cut = WORDS[..2].concat();
    vec![
        raises("rate_limit", "ThrottlingException", Some(429), 3).waits(),
        raises("overloaded", "ServiceUnavailableException", Some(503), 3),
        raises("server_error", "InternalServerException", Some(500), 3),
        raises("quota_exhausted", "ThrottlingException", Some(429), 3)
            .says("Too many tokens per day"),
        raises(
            "context_length_exceeded",
            "ValidationException",
            Some(400),
            1,
        )
        .says("too long"),
        raises("model_not_found", "ResourceNotFoundException", Some(404), 1),
        hears(
            "truncated_response",
            json!({ "finish": "max_tokens", "text": cut }),
        ),
        hears("empty", json!({ "finish": "end_turn", "text": "" })),
        hears("garbage", json!({ "finish": "end_turn" })).changes(&["text"]),
        hears("response_drift", json!({ "finish": "end_turn" })).changes(&["text"]),
        hears("content_filter", json!({ "finish": "content_filtered" })),
        hears("refusal", json!({ "finish": "end_turn" })).changes(&["text"]),
        hears(
            "malformed_tool_call",
            json!({ "finish": "malformed_tool_use", "names": [] }),
        ),
        hears("unknown_tool_call", json!({}))
            .changes(&["names"])
            .keeps(&["inputs"]),
        hears("wrong_tool_arguments", json!({}))
            .changes(&["inputs"])
            .keeps(&["names"]),
        hears("slow_stream", json!({ "text": WORDS.concat() })),
        hears("duplicate_chunk", json!({ "finish": "end_turn" })).changes(&["pieces"]),
        hears("missing_terminator", json!({ "finish": "end_turn" })).changes(&["pieces"]),
    ]
}

#[test]
fn boto3_takes_each_mode() {
    let own = vec![
        raises("timeout", "ConnectionClosedError", None, 3),
        raises("auth_error", "ClientError", Some(403), 1),
        raises("stream_stall", "ReadTimeoutError", None, 1),
        raises("stream_cut", "ProtocolError", None, 1),
        raises("stream_error", "EventStreamError", None, 1),
        raises("json_for_stream", "ChecksumMismatch", None, 1),
    ];
    client(PYTHON).takes(shared(), own);
}

#[test]
fn amazons_client_for_node_takes_each_mode() {
    let own = vec![
        // It speaks HTTP/2, where it asks again only for a stream that was refused.
        raises("timeout", "Error", None, 1),
        raises("auth_error", "BedrockRuntimeServiceException", Some(403), 1),
        // Once it has a head, its time-out ends the stream as if that were all.
        hears(
            "stream_stall",
            json!({ "finish": null, "text": WORDS[..2].concat() }),
        ),
        raises("stream_cut", "Error", None, 1),
        raises("stream_error", "ServiceUnavailableException", None, 1),
        raises("json_for_stream", "Error", Some(200), 1).says("Truncated event message"),
    ];
    client(NODE).takes(shared(), own);
}
