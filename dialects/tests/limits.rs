//! What headers say of two limits that are kept together.

use std::time::Duration;

use squall_dialects::model::{LimitFigures, LimitScope, ModelError, OtherLimit};
use squall_dialects::{ErrorContext, of_endpoint};

/// A limit that stops a request, and the one beside it.
fn over(scope: LimitScope) -> ModelError {
    ModelError::RateLimit {
        scope,
        retry_after: Some(Duration::from_secs(5)),
        figures: Some(LimitFigures {
            per_minute: 60,
            used: 59,
            requested: 30,
            beside: Some(OtherLimit {
                per_minute: 120,
                used: 20,
            }),
        }),
    }
}

#[test]
fn both_limits_of_a_rule_are_the_rule_s_own_in_headers() {
    let (requests, tokens) = (LimitScope::Requests, LimitScope::Tokens);
    for (dialect, scope, header, value) in [
        ("openai-chat", tokens, "x-ratelimit-limit-requests", "120"),
        (
            "openai-chat",
            tokens,
            "x-ratelimit-remaining-requests",
            "100",
        ),
        ("openai-chat", tokens, "x-ratelimit-reset-requests", "10s"),
        ("openai-chat", tokens, "x-ratelimit-limit-tokens", "60"),
        ("openai-chat", requests, "x-ratelimit-limit-requests", "60"),
        ("openai-chat", requests, "x-ratelimit-limit-tokens", "120"),
        (
            "openai-chat",
            requests,
            "x-ratelimit-remaining-tokens",
            "100",
        ),
        (
            "openai-responses",
            tokens,
            "x-ratelimit-limit-requests",
            "120",
        ),
        (
            "anthropic",
            tokens,
            "anthropic-ratelimit-requests-limit",
            "120",
        ),
        (
            "anthropic",
            tokens,
            "anthropic-ratelimit-requests-remaining",
            "100",
        ),
        (
            "anthropic",
            requests,
            "anthropic-ratelimit-input-tokens-limit",
            "120",
        ),
        (
            "openai-chat/groq",
            tokens,
            "x-ratelimit-limit-requests",
            "120",
        ),
        (
            "openai-chat/groq",
            tokens,
            "x-ratelimit-remaining-requests",
            "100",
        ),
        (
            "openai-chat/groq",
            requests,
            "x-ratelimit-limit-tokens",
            "120",
        ),
        (
            "openai-chat/mistral",
            tokens,
            "x-ratelimit-limit-req-minute",
            "120",
        ),
        (
            "openai-chat/mistral",
            tokens,
            "x-ratelimit-remaining-req-minute",
            "100",
        ),
    ] {
        let found = of_endpoint(dialect).unwrap_or_else(|| panic!("{dialect}"));
        let reply = found.error(&over(scope), &ErrorContext::default());
        let told = reply
            .headers
            .get(header)
            .map(|value| value.to_str().expect("ASCII"));
        assert_eq!(told, Some(value), "{dialect} {header}");
    }
}
