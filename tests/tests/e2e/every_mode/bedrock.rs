//! Amazon's client, by `Converse`.

use serde_json::json;
use squall_tests::Stage;
use squall_tests::upstream::bedrock::serve;
use squall_tests::upstream::chat::WORDS;

use super::{Client, hears, raises};

#[test]
fn boto3_takes_each_mode() {
    let client = Client {
        name: "bedrock",
        base: "",
        without: &[],
    };
    let cut = WORDS[..2].concat();
    client.takes(
        &Stage::with(&json!({}), serve),
        &[
            raises("timeout", "ConnectionClosedError", None, 3),
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
            raises("auth_error", "ClientError", Some(403), 1),
            raises("model_not_found", "ResourceNotFoundException", Some(404), 1),
            raises("stream_stall", "ReadTimeoutError", None, 1),
            raises("stream_cut", "ProtocolError", None, 1),
            raises("stream_error", "EventStreamError", None, 1),
            raises("json_for_stream", "ChecksumMismatch", None, 1),
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
        ],
    );
}
