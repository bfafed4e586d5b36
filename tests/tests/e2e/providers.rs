//! Other providers as their official clients take them: what passes untouched, and what each fault
//! looks like from an agent.

use serde_json::{Value, json};
use squall_tests::upstream::bedrock;
use squall_tests::upstream::chat::WORDS;
use squall_tests::{Path, Stage};

const LLM: &str = "llm_faults";

/// A client, what it is told, and what is added to the URL.
struct Client {
    script: &'static str,
    arguments: &'static [&'static str],
    base: &'static str,
}

const BOTO3: Client = Client {
    script: "bedrock.py",
    arguments: &[],
    base: "",
};

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

/// A fault, and what the client tells of it after how many attempts.
struct Case {
    more: &'static [&'static str],
    rule: Value,
    told: Value,
    attempts: usize,
}

impl Client {
    fn ask(&self, stage: &Stage, path: Path, more: &[&str]) -> Value {
        let arguments = [self.arguments, more].concat();
        stage.way(path, self.base).ask(self.script, &arguments)
    }

    /// What the client gets through Squall is what it gets without, event for event.
    fn is_not_noticed(&self, ways: &[&[&str]], dialect: &str, paths: &[Path]) {
        let stage = stage();
        let mut number = 0;
        for more in ways {
            let straight = self.ask(&stage, Path::Direct, more);
            assert_eq!(straight["ok"], true, "{more:?}: {straight}");
            assert_eq!(straight["text"], WORDS.concat(), "{more:?}: {straight}");
            for &path in paths {
                let through = self.ask(&stage, path, more);
                assert_eq!(through, straight, "{path:?} {more:?}");
                number += 1;
                let seen = stage
                    .daemon
                    .api
                    .wait_for_exchanges(number)
                    .swap_remove(number - 1);
                assert_eq!(seen["dialect"], dialect, "{seen}");
            }
        }
    }

    /// Each fault is told as expected, and nothing like it without the fault.
    fn tells(&self, cases: &[Case], path: Path) {
        let stage = stage();
        let api = stage.daemon.api;
        for Case {
            more,
            rule,
            told,
            attempts,
        } in cases
        {
            api.calm();
            let clean = self.ask(&stage, path, more);
            assert!(!holds(&clean, told), "{rule} proves nothing: {clean}");
            let before = api.wait_for_exchanges(1).len();
            api.chaos(&json!({ LLM: [rule] }));
            let faulted = self.ask(&stage, path, more);
            assert!(
                holds(&faulted, told),
                "{path:?} {rule} {more:?}: {faulted}\n{told}"
            );
            let seen = api.wait_for_exchanges(before + attempts).len();
            assert_eq!(
                seen - before,
                *attempts,
                "{path:?} {rule} {more:?}: {faulted}"
            );
        }
    }
}

fn stage() -> Stage {
    let config = json!({
        "llm": [{ "match_url": "*://*/mistral/*", "dialect": "openai-chat/mistral" }],
    });
    Stage::with(&config, bedrock::serve)
}

/// Whether a client told all of this.
fn holds(told: &Value, expected: &Value) -> bool {
    let expected = expected.as_object().expect("members");
    expected
        .iter()
        .all(|(member, value)| told[member] == *value)
}

const CONVERSE: &[&str] = &[];
const CONVERSE_STREAM: &[&str] = &["--stream"];
const INVOKE: &[&str] = &["--invoke"];
const INVOKE_STREAM: &[&str] = &["--invoke", "--stream"];

#[test]
fn boto3_notices_nothing_of_squall() {
    let ways = [CONVERSE, CONVERSE_STREAM, INVOKE, INVOKE_STREAM];
    BOTO3.is_not_noticed(&ways, "bedrock", &[Path::Reverse, Path::Intercepted]);
}

#[test]
fn boto3_takes_errors_for_bedrocks_and_retries_them() {
    let cases = [CONVERSE, INVOKE_STREAM].map(|more| {
        [
            Case {
                more,
                rule: json!({ "mode": "rate_limit", "retry_after": 0 }),
                told: json!({
                    "error": "ThrottlingException", "status": 429, "code": "ThrottlingException",
                    "message": "Too many requests, please wait before trying again.", "retries": 2,
                }),
                attempts: 3,
            },
            Case {
                more,
                rule: json!({ "mode": "server_error" }),
                told: json!({ "error": "InternalServerException", "status": 500, "retries": 2 }),
                attempts: 3,
            },
            Case {
                more,
                rule: json!({ "mode": "overloaded" }),
                told: json!({ "error": "ServiceUnavailableException", "status": 503, "retries": 2 }),
                attempts: 3,
            },
        ]
    });
    BOTO3.tells(cases.as_flattened(), Path::Reverse);
}

#[test]
fn boto3_takes_a_truncated_answer_for_a_short_one() {
    let cases = [CONVERSE, CONVERSE_STREAM, INVOKE, INVOKE_STREAM].map(|more| Case {
        more,
        rule: json!({ "mode": "truncated_response", "max_tokens": 2 }),
        told: json!({
            "ok": true, "text": WORDS[..2].concat(),
            "finish": if more.contains(&"--invoke") { "length" } else { "max_tokens" },
        }),
        attempts: 1,
    });
    BOTO3.tells(&cases, Path::Reverse);
    BOTO3.tells(&cases[1..2], Path::Intercepted);
}

#[test]
fn boto3_sees_a_cut_stream_break() {
    let cases = [CONVERSE_STREAM, INVOKE_STREAM].map(|more| Case {
        more,
        rule: json!({ "mode": "stream_cut", "after_tokens": 2 }),
        told: json!({ "ok": false, "error": "ProtocolError", "after": WORDS[..2].concat() }),
        attempts: 1,
    });
    BOTO3.tells(&cases, Path::Reverse);
}

const WHOLE: &[&str] = &[];
const STREAM: &[&str] = &["--stream"];

#[test]
fn groqs_client_notices_nothing_of_squall() {
    let paths = [Path::Reverse, Path::Intercepted];
    GROQ.is_not_noticed(&[WHOLE, STREAM], "openai-chat", &paths);
}

#[test]
fn groqs_client_takes_each_fault_for_the_provider_s() {
    let error = |more, rule: Value, error: &str, status: u16| Case {
        more,
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
    ];
    GROQ.tells(&cases, Path::Reverse);
}

#[test]
fn mistrals_client_notices_nothing_of_squall() {
    let paths = [Path::Reverse, Path::Intercepted];
    MISTRAL.is_not_noticed(&[WHOLE, STREAM], "openai-chat", &paths);
}

/// Named by the configuration, the endpoint's errors are Mistral's.
const MISTRALS_LIMIT: &str = r#"{"object":"error","message":"Rate limit exceeded","type":"rate_limited","param":null,"code":"1300","raw_status_code":429}"#;

#[test]
fn mistrals_client_takes_each_fault_for_the_provider_s() {
    let error = |more, rule: Value, status: u16| Case {
        more,
        rule,
        told: json!({ "error": "SDKError", "status": status }),
        attempts: 1,
    };
    let cases = [
        Case {
            more: WHOLE,
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
    ];
    MISTRAL.tells(&cases, Path::Reverse);
}

fn truncated(more: &'static [&'static str]) -> Case {
    Case {
        more,
        rule: json!({ "mode": "truncated_response", "max_tokens": 2 }),
        told: json!({ "ok": true, "text": WORDS[..2].concat(), "finish": "length" }),
        attempts: 1,
    }
}

fn cut(error: &str) -> Case {
    Case {
        more: STREAM,
        rule: json!({ "mode": "stream_cut", "after_tokens": 2 }),
        told: json!({ "ok": false, "error": error, "after": WORDS[..2].concat() }),
        attempts: 1,
    }
}
