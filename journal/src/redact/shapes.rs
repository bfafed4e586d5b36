//! Secrets that are known by how they look.

use std::sync::LazyLock;

use regex::Regex;

/// What a secret was for, if that was matched with it, and the mark.
pub(super) const REPLACEMENT: &str = "${header}${scheme}REDACTED";

/// One pattern a line; each ends with as much of the secret as there is. Source: the providers'
/// documented prefixes.
const SHAPES: &[&str] = &[
    r"(?P<header>\b(?i:authorization)[ :=\x22\x27]{1,4}(?i:bearer|basic|token) +)[A-Za-z0-9._~+/=-]{4,}",
    r"(?P<scheme>\b(?i:bearer)(?: +|%20))[A-Za-z0-9._~+/=-]{16,}",
    r"\bsquall_[0-9a-f]{64}", // this API's own
    r"\b[Bb]asic [A-Za-z0-9+/]{6,}={1,2}",
    r"\bsk-[A-Za-z0-9_-]{8,}", // OpenAI, Anthropic, OpenRouter, DeepSeek
    r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{8,}", // Stripe
    r"\bAIza[A-Za-z0-9_-]{20,}", // Google
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}", // AWS
    r"\bgh[pousr]_[A-Za-z0-9]{20,}", // GitHub
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",       // GitLab
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", // Slack
    r"\bhooks\.slack\.com/services/[A-Za-z0-9/_-]{8,}",
    r"\bbot[0-9]{6,12}:[A-Za-z0-9_-]{30,}",  // Telegram
    r"\b(?:gsk|hf|r8|npm)_[A-Za-z0-9]{20,}", // Groq, Hugging Face, Replicate, npm
    r"\b(?:xai|pplx|tvly|pypi|fw|nvapi)-[A-Za-z0-9_-]{16,}", // xAI, Perplexity, Tavily, PyPI, Fireworks, NVIDIA
    r"\blsv2_(?:pt|sk)_[A-Za-z0-9_]{16,}",                   // LangSmith
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", // JSON Web Token
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?us:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
];

/// All shapes in one, without Unicode classes, which would make it many times as big. Compiled when
/// the first text is looked at: that is on the journal's thread, not on the way to the first request.
pub(super) static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    let shapes = format!("(?-u){}", SHAPES.join("|"));
    Regex::new(&shapes).expect("the shapes are constants and compile")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_shape() {
        for (given, expected) in [
            (
                "Incorrect API key provided: sk-proj-abc_DEF-123456.",
                "Incorrect API key provided: REDACTED.",
            ),
            ("sk-ant-api03-abcdefghijk", "REDACTED"),
            (
                "token=squall_00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff;",
                "token=REDACTED;",
            ),
            ("squall_events_dropped_total", "squall_events_dropped_total"),
            (
                "authorization: Bearer abc.def-ghi_123",
                "authorization: Bearer REDACTED",
            ),
            ("bearer%20abcdefgh12345678", "bearer%20REDACTED"),
            ("Basic dXNlcjpwYXNzdw==", "REDACTED"),
            ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "REDACTED"),
            ("id=AKIAIOSFODNN7EXAMPLE", "id=REDACTED"),
            ("ghp_abcdefghijklmnopqrst1234", "REDACTED"),
            ("github_pat_11ABCDEFG0abcdefghijkl", "REDACTED"),
            ("glpat-abcdefghij123456", "REDACTED"),
            ("xoxb-123456789012-abcdef", "REDACTED"),
            (
                "https://hooks.slack.com/services/T00/B00/XXXX",
                "https://REDACTED",
            ),
            ("sk_live_abcdefgh1234", "REDACTED"),
            ("gsk_abcdefghijklmnopqrst", "REDACTED"),
            ("hf_abcdefghijklmnopqrstuv", "REDACTED"),
            ("tvly-dev-abcdefghijklmnop", "REDACTED"),
            ("lsv2_pt_abcdefghijklmnop_12", "REDACTED"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "REDACTED"),
            (
                "a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b",
                "a REDACTED b",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMII", "REDACTED"),
            // Not keys.
            ("task-management-system", "task-management-system"),
            ("the bearer of bad news", "the bearer of bad news"),
            (
                "basic understanding of bearer authentication",
                "basic understanding of bearer authentication",
            ),
            ("sk-short", "sk-short"),
            ("/v1/chat/completions", "/v1/chat/completions"),
            ("0193a1b2c3d400000001beef", "0193a1b2c3d400000001beef"),
        ] {
            assert_eq!(SECRET.replace_all(given, REPLACEMENT), expected);
        }
    }
}
