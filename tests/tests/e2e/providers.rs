//! Other providers as their official clients take them: what passes untouched, and what each fault
//! looks like from an agent.

use serde_json::{Value, json};
use squall_tests::upstream::chat::WORDS;
use squall_tests::upstream::{Upstream, bedrock};
use squall_tests::{Path, Stage};

use crate::official::{Case, Client};

const BOTO3: Client = Client::new("bedrock.py", "");

const GROQ: Client = Client {
    script: "compatible_chat.py",
    arguments: &["--client", "groq"],
    base: "",
};

const MISTRAL: Client = Client {
    script: "compatible_chat.py",
    arguments: &["--client", "mistralai"],
    base: "/mistral",
};

const AZURE: Client = Client {
    script: "openai_chat.py",
    arguments: &["--azure", "--retries", "2"],
    base: "",
};

const OPENROUTER: Client = Client {
    script: "openai_chat.py",
    arguments: &["--model", "meta/llama", "--retries", "2"],
    base: "/api/v1",
};

/// In clear and over HTTPS.
const PATHS: [Path; 2] = [Path::Reverse, Path::Intercepted];

fn stage() -> Stage {
    let config = json!({
        "llm": [{ "match_url": "*://*/mistral/*", "dialect": "openai-chat/mistral" }],
    });
    Stage::with(&config, bedrock::serve)
}

/// The client hears every word and notices nothing of Squall.
fn notices_nothing(client: Client, dialect: &str, ways: &[&[&str]]) {
    for told in client.notices_nothing(&stage(), dialect, ways, &PATHS).told {
        assert_eq!(told["text"], WORDS.concat(), "{told}");
    }
}

const CONVERSE: &[&str] = &[];
const CONVERSE_STREAM: &[&str] = &["--stream"];
const INVOKE: &[&str] = &["--invoke"];
const INVOKE_STREAM: &[&str] = &["--invoke", "--stream"];

#[test]
fn boto3_notices_nothing_of_squall() {
    let ways = [CONVERSE, CONVERSE_STREAM, INVOKE, INVOKE_STREAM];
    notices_nothing(BOTO3, "bedrock", &ways);
}

#[test]
fn boto3_takes_errors_for_bedrocks_and_retries_them() {
    let cases = [CONVERSE, INVOKE_STREAM].map(|arguments| {
        [
            Case {
                arguments,
                rule: json!({ "mode": "rate_limit", "retry_after": 0 }),
                told: json!({
                    "error": "ThrottlingException", "status": 429, "code": "ThrottlingException",
                    "message": "Too many requests, please wait before trying again.", "retries": 2,
                }),
                attempts: 3,
            },
            Case {
                arguments,
                rule: json!({ "mode": "server_error" }),
                told: json!({ "error": "InternalServerException", "status": 500, "retries": 2 }),
                attempts: 3,
            },
            Case {
                arguments,
                rule: json!({ "mode": "overloaded" }),
                told: json!({ "error": "ServiceUnavailableException", "status": 503, "retries": 2 }),
                attempts: 3,
            },
        ]
    });
    BOTO3.tells(&stage(), Path::Reverse, cases.as_flattened());
}

#[test]
fn boto3_takes_a_truncated_answer_for_a_short_one() {
    let cases = [CONVERSE, CONVERSE_STREAM, INVOKE, INVOKE_STREAM].map(|arguments| Case {
        arguments,
        rule: json!({ "mode": "truncated_response", "max_tokens": 2 }),
        told: json!({
            "ok": true, "text": WORDS[..2].concat(),
            "finish": if arguments.contains(&"--invoke") { "length" } else { "max_tokens" },
        }),
        attempts: 1,
    });
    BOTO3.tells(&stage(), Path::Reverse, &cases);
    BOTO3.tells(&stage(), Path::Intercepted, &cases[1..2]);
}

#[test]
fn boto3_sees_a_cut_stream_break() {
    let cases = [CONVERSE_STREAM, INVOKE_STREAM].map(|arguments| Case {
        arguments,
        rule: json!({ "mode": "stream_cut", "after_tokens": 2 }),
        told: json!({ "ok": false, "error": "ProtocolError", "after": WORDS[..2].concat() }),
        attempts: 1,
    });
    BOTO3.tells(&stage(), Path::Reverse, &cases);
}

const WHOLE: &[&str] = &[];
const STREAM: &[&str] = &["--stream"];

#[test]
fn groqs_client_notices_nothing_of_squall() {
    notices_nothing(GROQ, "openai-chat", &[WHOLE, STREAM]);
}

#[test]
fn groqs_client_takes_each_fault_for_the_provider_s() {
    let error = |arguments, rule: Value, error: &str, status: u16| Case {
        arguments,
        rule,
        told: json!({ "error": error, "status": status }),
        attempts: 3,
    };
    let limit = json!({ "mode": "rate_limit", "retry_after": 0 });
    let cases = [
        error(WHOLE, limit.clone(), "RateLimitError", 429),
        error(STREAM, limit, "RateLimitError", 429),
        error(
            WHOLE,
            json!({ "mode": "server_error" }),
            "InternalServerError",
            500,
        ),
        error(
            WHOLE,
            json!({ "mode": "overloaded" }),
            "InternalServerError",
            503,
        ),
        truncated(WHOLE),
        truncated(STREAM),
        cut("RemoteProtocolError"),
        refused(WHOLE),
        refused(STREAM),
    ];
    GROQ.tells(&stage(), Path::Reverse, &cases);
}

#[test]
fn mistrals_client_notices_nothing_of_squall() {
    notices_nothing(MISTRAL, "openai-chat", &[WHOLE, STREAM]);
}

/// Named by the configuration, the endpoint's errors are Mistral's.
const MISTRALS_LIMIT: &str = r#"{"object":"error","message":"Rate limit exceeded","type":"rate_limited","param":null,"code":"1300","raw_status_code":429}"#;

#[test]
fn mistrals_client_takes_each_fault_for_the_provider_s() {
    let error = |arguments, rule: Value, status: u16| Case {
        arguments,
        rule,
        told: json!({ "error": "SDKError", "status": status }),
        attempts: 1,
    };
    let cases = [
        Case {
            arguments: WHOLE,
            rule: json!({ "mode": "rate_limit" }),
            told: json!({ "error": "SDKError", "status": 429, "body": MISTRALS_LIMIT }),
            attempts: 1,
        },
        error(STREAM, json!({ "mode": "rate_limit" }), 429),
        error(WHOLE, json!({ "mode": "server_error" }), 500),
        error(WHOLE, json!({ "mode": "overloaded" }), 503),
        truncated(WHOLE),
        truncated(STREAM),
        cut("RemoteProtocolError"),
        refused(WHOLE),
        refused(STREAM),
    ];
    MISTRAL.tells(&stage(), Path::Reverse, &cases);
}

#[test]
fn mistral_s_own_endpoint_needs_no_name() {
    let upstream = Upstream::start(None, bedrock::serve);
    let config = json!({ "proxy": { "connect_to": {
        "api.mistral.ai:80": upstream.address.to_string(),
        "api.example.test:80": upstream.address.to_string(),
    } } });
    let stage = Stage::with(&config, bedrock::serve);
    stage
        .daemon
        .api
        .chaos(&json!({ "llm_faults": [{ "mode": "rate_limit" }] }));
    let body = r#"{"model":"mistral-small-latest","messages":[]}"#;
    for (host, is_mistrals) in [("api.mistral.ai", true), ("api.example.test", false)] {
        let mut wire = stage.daemon.connect();
        wire.prefix = format!("http://{host}");
        wire.host = host.to_owned();
        let answer = wire.post("/v1/chat/completions", body);
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(answer.text() == MISTRALS_LIMIT, is_mistrals, "{answer:?}");
    }
}

#[test]
fn openais_client_notices_nothing_of_squall_before_azure_or_openrouter() {
    for client in [AZURE, OPENROUTER] {
        notices_nothing(client, "openai-chat", &[WHOLE, STREAM]);
    }
}

#[test]
fn openais_client_takes_each_fault_for_azures() {
    let cases = [
        Case {
            arguments: WHOLE,
            rule: json!({ "mode": "rate_limit", "retry_after": 0 }),
            told: json!({ "error": "RateLimitError", "status": 429, "code": "429", "retry_after": "0" }),
            attempts: 3,
        },
        Case {
            arguments: WHOLE,
            rule: json!({ "mode": "server_error" }),
            told: json!({ "error": "InternalServerError", "status": 500 }),
            attempts: 3,
        },
        truncated(WHOLE),
        truncated(STREAM),
        cut("APIConnectionError"),
    ];
    AZURE.tells(&stage(), Path::Reverse, &cases);
}

#[test]
fn openais_client_takes_each_fault_for_openrouters() {
    let error = |arguments, rule, error: &str, status: u16, attempts| Case {
        arguments,
        rule,
        told: json!({ "error": error, "status": status, "code": status.to_string(), "type": null }),
        attempts,
    };
    let limit = json!({ "mode": "rate_limit", "retry_after": 0 });
    let cases = [
        error(WHOLE, limit, "RateLimitError", 429, 3),
        error(
            WHOLE,
            json!({ "mode": "server_error" }),
            "InternalServerError",
            500,
            3,
        ),
        error(
            WHOLE,
            json!({ "mode": "overloaded" }),
            "InternalServerError",
            503,
            3,
        ),
        error(
            WHOLE,
            json!({ "mode": "quota_exhausted" }),
            "APIStatusError",
            402,
            1,
        ),
        truncated(WHOLE),
        truncated(STREAM),
        cut("APIConnectionError"),
        Case {
            arguments: STREAM,
            rule: json!({ "mode": "stream_error", "after_tokens": 2 }),
            told: json!({ "error": "APIError", "after": WORDS[..2].concat() }),
            attempts: 1,
        },
    ];
    OPENROUTER.tells(&stage(), Path::Reverse, &cases);
}

/// These clients show no field for refusals: they are said as text.
fn refused(arguments: &'static [&'static str]) -> Case {
    Case {
        arguments,
        rule: json!({ "mode": "refusal" }),
        told: json!({ "ok": true, "refuses": true, "finish": "stop" }),
        attempts: 1,
    }
}

fn truncated(arguments: &'static [&'static str]) -> Case {
    Case {
        arguments,
        rule: json!({ "mode": "truncated_response", "max_tokens": 2 }),
        told: json!({ "ok": true, "text": WORDS[..2].concat(), "finish": "length" }),
        attempts: 1,
    }
}

fn cut(error: &str) -> Case {
    Case {
        arguments: STREAM,
        rule: json!({ "mode": "stream_cut", "after_tokens": 2 }),
        told: json!({ "ok": false, "error": error, "after": WORDS[..2].concat() }),
        attempts: 1,
    }
}
