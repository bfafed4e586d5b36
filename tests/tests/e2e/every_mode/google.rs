//! Google's client.

use serde_json::json;
use squall_tests::Stage;
use squall_tests::upstream::gemini::{WORDS, serve};

use super::{Client, hears, raises};

#[test]
fn googles_client_takes_each_mode() {
    let client = Client {
        name: "google",
        base: "",
        // Its streams end without a mark.
        without: &["missing_terminator"],
    };
    // Six tokens of thought come before the words.
    let cut = WORDS[..3].concat();
    client.takes(
        &Stage::with(&json!({}), serve),
        &[
            raises("timeout", "RemoteProtocolError", None, 1),
            raises("rate_limit", "ClientError", Some(429), 1),
            raises("overloaded", "ServerError", Some(503), 1),
            raises("server_error", "ServerError", Some(500), 1),
            raises("quota_exhausted", "ClientError", Some(429), 1)
                .says("exceeded your current quota"),
            raises("context_length_exceeded", "ClientError", Some(400), 1)
                .says("input token count"),
            raises("auth_error", "ClientError", Some(400), 1),
            raises("model_not_found", "ClientError", Some(404), 1),
            raises("stream_stall", "ReadTimeout", None, 1),
            raises("stream_cut", "RemoteProtocolError", None, 1),
            raises("stream_error", "ServerError", Some(503), 1),
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
            hears("json_for_stream", json!({ "text": WORDS.concat() })).changes(&["pieces"]),
        ],
    );
}
