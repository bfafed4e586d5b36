//! Official clients for Node, unmodified: what passes untouched, and what each fault looks like.
//!
//! What is OpenAI's chat is in [`crate::llm_faults`].

use serde_json::{Value, json};
use squall_tests::upstream::chat::WORDS;
use squall_tests::upstream::{bedrock, gemini, ollama};
use squall_tests::{Path, Stage};

use crate::official::{Case, Client};

const ANTHROPIC: Client = Client::new("anthropic_messages.mjs", "");
const RESPONSES: Client = Client::new("openai_responses.mjs", "/v1");
const GEMINI: Client = Client::new("gemini.mjs", "");
const OLLAMA: Client = Client::new("ollama_chat.mjs", "");
const BEDROCK: Client = Client::new("bedrock.mjs", "");

const GROQ: Client = Client {
    script: "compatible_chat.mjs",
    arguments: &["--client", "groq"],
    base: "",
};

const MISTRAL: Client = Client {
    script: "compatible_chat.mjs",
    arguments: &["--client", "mistralai"],
    base: "/mistral",
};

/// In clear and over HTTPS.
const PATHS: [Path; 2] = [Path::Reverse, Path::Intercepted];

const WHOLE: &[&str] = &[];
const STREAM: &[&str] = &["--stream"];
const TOOLS: &[&str] = &["--tools", "--stream"];

/// Groq's and Mistral's endpoints, and Bedrock's.
fn providers() -> Stage {
    let config = json!({
        "llm": [{ "match_url": "*://*/mistral/*", "dialect": "openai-chat/mistral" }],
    });
    Stage::with(&config, bedrock::serve)
}

/// The client hears every word, calls every tool, and notices nothing of Squall.
fn notices_nothing(client: Client, stage: &Stage, dialect: &str, ways: &[&[&str]]) {
    let told = client.notices_nothing(stage, dialect, ways, &PATHS).told;
    for (told, more) in told.iter().zip(ways) {
        if more.contains(&"--tools") {
            assert_eq!(told["calls"][0][0], "weather", "{told}");
        } else {
            assert_eq!(told["text"], WORDS.concat(), "{told}");
        }
    }
}

/// Any fault, told after one attempt.
fn case(arguments: &'static [&'static str], rule: Value, told: Value) -> Case {
    Case {
        arguments,
        rule,
        told,
        attempts: 1,
    }
}

/// An error status that is asked again for.
fn retried(
    arguments: &'static [&'static str],
    mode: &str,
    (error, status): (&str, u16),
    attempts: usize,
) -> Case {
    let mut rule = json!({ "mode": mode });
    if mode == "rate_limit" {
        rule["retry_after"] = json!(0);
    }
    Case {
        arguments,
        rule,
        told: json!({ "ok": false, "error": error, "status": status }),
        attempts,
    }
}

/// A stream that breaks behind the second word, as Node's fetch tells it.
fn cut(after_tokens: u64) -> Case {
    let told = json!({
        "ok": false, "error": "TypeError", "code": "UND_ERR_SOCKET", "text": WORDS[..2].concat(),
    });
    let rule = json!({ "mode": "stream_cut", "after_tokens": after_tokens });
    case(STREAM, rule, told)
}

/// A stream with an error behind the second word.
fn failed(after_tokens: u64, mut told: Value) -> Case {
    told["ok"] = json!(false);
    told["text"] = json!(WORDS[..2].concat());
    let rule = json!({ "mode": "stream_error", "after_tokens": after_tokens });
    case(STREAM, rule, told)
}

/// An answer of two words, whole and streamed.
fn truncated(max_tokens: u64, finish: &str) -> [Case; 2] {
    [WHOLE, STREAM].map(|arguments| {
        let told = json!({ "ok": true, "text": WORDS[..2].concat(), "finish": finish });
        let rule = json!({ "mode": "truncated_response", "max_tokens": max_tokens });
        case(arguments, rule, told)
    })
}

#[test]
fn anthropics_client_notices_nothing_of_squall() {
    let ways = [WHOLE, STREAM, TOOLS];
    notices_nothing(ANTHROPIC, &Stage::new(), "anthropic", &ways);
}

#[test]
fn anthropics_client_takes_each_fault_for_the_provider_s() {
    const RETRIES: &[&str] = &["--retries", "2", "--stream"];
    let raised = |rule, said: &str| {
        let told = json!({ "ok": false, "error": "AnthropicError", "said": said });
        case(STREAM, rule, told)
    };
    let cases = [
        retried(RETRIES, "rate_limit", ("RateLimitError", 429), 3),
        retried(RETRIES, "overloaded", ("OverloadedError", 529), 3),
        retried(WHOLE, "server_error", ("InternalServerError", 500), 1),
        failed(
            2,
            json!({ "error": "APIError", "status": null, "type": "overloaded_error" }),
        ),
        raised(
            json!({ "mode": "stream_cut", "after_tokens": 2 }),
            "terminated",
        ),
        raised(
            json!({ "mode": "json_for_stream" }),
            "request ended without sending any chunks",
        ),
        raised(
            json!({ "mode": "missing_terminator" }),
            "stream ended without producing a Message with role=assistant",
        ),
    ];
    let stage = Stage::new();
    ANTHROPIC.tells(&stage, Path::Reverse, &cases);
}

/// It reads arguments leniently: what is cut off it takes as far as it goes, all else it raises.
#[test]
fn anthropics_client_does_not_get_the_arguments_of_a_call_that_is_malformed() {
    let stage = Stage::new();
    let arguments = |told: &Value| -> String {
        let events = told["events"].as_array().cloned().unwrap_or_default();
        let pieces = events
            .iter()
            .filter_map(|event| event["delta"]["partial_json"].as_str());
        pieces.collect()
    };
    let clean = ANTHROPIC.ask(&stage, Path::Reverse, TOOLS);
    assert_eq!(clean["ok"], true, "{clean}");
    let sent: Value = serde_json::from_str(&arguments(&clean)).unwrap();
    assert_eq!(clean["calls"][0][1], sent);

    let rule = json!({ "mode": "malformed_tool_call" });
    stage.daemon.api.chaos(&json!({ "llm_faults": [rule] }));
    let told = ANTHROPIC.ask(&stage, Path::Reverse, TOOLS);
    let got = arguments(&told);
    assert!(serde_json::from_str::<Value>(&got).is_err(), "{told}");
    if told["ok"] == true {
        assert_ne!(told["calls"][0][1], sent, "{told}");
    } else {
        assert_eq!(told["error"], "AnthropicError", "{told}");
    }
}

#[test]
fn openais_client_notices_nothing_of_squall_where_it_asks_for_responses() {
    let ways = [WHOLE, STREAM, TOOLS];
    notices_nothing(RESPONSES, &Stage::new(), "openai-responses", &ways);
}

#[test]
fn openais_client_takes_each_fault_of_responses_for_the_provider_s() {
    const RETRIES: &[&str] = &["--retries", "2", "--stream"];
    let [whole, stream] = truncated(2, "incomplete");
    let cases = [
        retried(RETRIES, "rate_limit", ("RateLimitError", 429), 3),
        retried(WHOLE, "server_error", ("InternalServerError", 500), 1),
        cut(2),
        failed(
            2,
            json!({ "error": "APIError", "type": "service_unavailable_error", "code": "server_is_overloaded" }),
        ),
        whole,
        stream,
        // It takes what it heard for the answer, as far as it goes.
        case(
            STREAM,
            json!({ "mode": "missing_terminator" }),
            json!({ "ok": true, "text": WORDS.concat(), "finish": "in_progress" }),
        ),
    ];
    RESPONSES.tells(&Stage::new(), Path::Reverse, &cases);
}

#[test]
fn googles_client_notices_nothing_of_squall() {
    let stage = Stage::with(&json!({}), gemini::serve);
    notices_nothing(GEMINI, &stage, "gemini", &[WHOLE, STREAM, TOOLS]);
}

#[test]
fn googles_client_takes_each_fault_for_the_provider_s() {
    // Six tokens of thought come before the words.
    let [whole, stream] = truncated(8, "MAX_TOKENS");
    let cases = [
        retried(WHOLE, "rate_limit", ("ApiError", 429), 1),
        retried(&["--attempts", "3"], "rate_limit", ("ApiError", 429), 3),
        retried(STREAM, "server_error", ("ApiError", 500), 1),
        retried(STREAM, "overloaded", ("ApiError", 503), 1),
        cut(8),
        failed(8, json!({ "error": "ApiError", "status": 503 })),
        whole,
        stream,
        case(
            STREAM,
            json!({ "mode": "json_for_stream" }),
            json!({ "ok": false, "error": "Error", "said": "Incomplete JSON segment at the end" }),
        ),
    ];
    let stage = Stage::with(&json!({}), gemini::serve);
    GEMINI.tells(&stage, Path::Reverse, &cases);
}

#[test]
fn ollamas_client_notices_nothing_of_squall() {
    let stage = Stage::with(&json!({}), ollama::serve);
    let ways = [WHOLE, STREAM, &["--generate", "--stream"], TOOLS];
    notices_nothing(OLLAMA, &stage, "ollama", &ways);
}

#[test]
fn ollamas_client_takes_each_fault_for_the_server_s() {
    const BUSY: &str = "server busy, please try again.  maximum pending requests exceeded";
    // Three tokens of thinking come before the words.
    let [whole, stream] = truncated(5, "length");
    let cases = [
        retried(WHOLE, "rate_limit", ("ResponseError", 429), 1),
        retried(STREAM, "server_error", ("ResponseError", 500), 1),
        case(
            &["--generate", "--stream"],
            json!({ "mode": "overloaded" }),
            json!({ "error": "ResponseError", "status": 503, "said": BUSY }),
        ),
        cut(5),
        failed(5, json!({ "error": "Error", "said": BUSY })),
        whole,
        stream,
        case(
            STREAM,
            json!({ "mode": "missing_terminator" }),
            json!({ "error": "Error", "said": "Did not receive done or success response in stream." }),
        ),
    ];
    let stage = Stage::with(&json!({}), ollama::serve);
    OLLAMA.tells(&stage, Path::Reverse, &cases);
}

#[test]
fn amazons_client_notices_nothing_of_squall() {
    const INVOKE: &[&str] = &["--invoke"];
    const INVOKE_STREAM: &[&str] = &["--invoke", "--stream"];
    let over_http1 = Client {
        arguments: &["--http1"],
        ..BEDROCK
    };
    let ways = [WHOLE, STREAM, INVOKE, INVOKE_STREAM];
    notices_nothing(over_http1, &providers(), "bedrock", &ways);
}

#[test]
fn amazons_client_hears_the_same_over_http2_which_it_speaks_by_itself() {
    let stage = providers();
    for more in [WHOLE, STREAM] {
        let straight = BEDROCK.ask(&stage, Path::Direct, &[more, &["--http1"]].concat());
        assert_eq!(straight["text"], WORDS.concat(), "{straight}");
        assert_eq!(
            BEDROCK.ask(&stage, Path::Reverse, more),
            straight,
            "{more:?}"
        );
    }
}

#[test]
fn amazons_client_takes_each_fault_for_the_provider_s() {
    let [whole, stream] = truncated(2, "max_tokens");
    let broken = json!({
        "ok": false, "code": "ERR_HTTP2_STREAM_ERROR", "text": WORDS[..2].concat(),
    });
    let cases = [
        retried(WHOLE, "rate_limit", ("ThrottlingException", 429), 3),
        retried(STREAM, "server_error", ("InternalServerException", 500), 3),
        retried(WHOLE, "overloaded", ("ServiceUnavailableException", 503), 3),
        retried(
            STREAM,
            "model_not_found",
            ("ResourceNotFoundException", 404),
            1,
        ),
        failed(2, json!({ "error": "ServiceUnavailableException" })),
        case(
            STREAM,
            json!({ "mode": "stream_cut", "after_tokens": 2 }),
            broken,
        ),
        whole,
        stream,
    ];
    BEDROCK.tells(&providers(), Path::Reverse, &cases);
}

#[test]
fn groqs_client_notices_nothing_of_squall() {
    notices_nothing(GROQ, &providers(), "openai-chat", &[WHOLE, STREAM]);
}

#[test]
fn groqs_client_takes_each_fault_for_the_provider_s() {
    let [whole, stream] = truncated(2, "length");
    let cases = [
        retried(WHOLE, "rate_limit", ("RateLimitError", 429), 3),
        retried(STREAM, "server_error", ("InternalServerError", 500), 3),
        retried(WHOLE, "model_not_found", ("NotFoundError", 404), 1),
        cut(2),
        whole,
        stream,
    ];
    GROQ.tells(&providers(), Path::Reverse, &cases);
}

#[test]
fn mistrals_client_notices_nothing_of_squall() {
    notices_nothing(MISTRAL, &providers(), "openai-chat", &[WHOLE, STREAM]);
}

#[test]
fn mistrals_client_takes_each_fault_for_the_provider_s() {
    let [whole, stream] = truncated(2, "length");
    let cases = [
        retried(WHOLE, "rate_limit", ("SDKError", 429), 1),
        retried(STREAM, "server_error", ("SDKError", 500), 1),
        retried(WHOLE, "overloaded", ("SDKError", 503), 1),
        cut(2),
        whole,
        stream,
        // The one client that looks at the media type.
        case(
            STREAM,
            json!({ "mode": "json_for_stream" }),
            json!({ "ok": false, "error": "SDKError", "status": 200 }),
        ),
    ];
    MISTRAL.tells(&providers(), Path::Reverse, &cases);
}
