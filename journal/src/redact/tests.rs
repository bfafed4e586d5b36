//! What is taken out, and what is not.

mod bodies;
mod values;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

use super::*;

fn url(given: &str) -> String {
    let mut url = given.to_owned();
    Redactor::default().url(&mut url, 4096);
    url
}

#[test]
fn secrets_in_urls_are_taken_out_and_nothing_else_is() {
    for (given, expected) in [
        (
            "https://h/v1?key=abc&alt=sse",
            "https://h/v1?key=REDACTED&alt=sse",
        ),
        (
            "https://h/v1?a=1&api_key=x&b=2",
            "https://h/v1?a=1&api_key=REDACTED&b=2",
        ),
        ("https://h/?API-Key=x", "https://h/?API-Key=REDACTED"),
        (
            "https://h/?access%5Ftoken=x",
            "https://h/?access%5Ftoken=REDACTED",
        ),
        ("https://h/?sig=a=b&x", "https://h/?sig=REDACTED&x"),
        (
            "https://h/?X-Amz-Signature=0f&X-Amz-Date=1",
            "https://h/?X-Amz-Signature=REDACTED&X-Amz-Date=1",
        ),
        ("https://h/?a=1?token=x", "https://h/?a=1?token=REDACTED"),
        (
            "https://h/?x=https%3A%2F%2Fh%2F%3Fapi_key%3Done&y=2",
            "https://h/?x=https%3A%2F%2Fh%2F%3Fapi_key%3DREDACTED&y=2",
        ),
        (
            "https://h/?x=https%253A%252F%252Fh%252F%253Fapi_key%253Done",
            "https://h/?x=https%253A%252F%252Fh%252F%253Fapi_key%253DREDACTED",
        ),
        (
            "https://h/?x=https%3A%2F%2Fh%2F%3Fq%3D100%25",
            "https://h/?x=https%3A%2F%2Fh%2F%3Fq%3D100%25",
        ),
        (
            "https://h/cb#access_token=abc&token_type=x",
            "https://h/cb#access_token=REDACTED&token_type=x",
        ),
        (
            "https://h/?q=see%20sk%2Dabcdefgh12&x=%7B%22pwd%22%3A12%7D",
            "https://h/?q=see%20REDACTED&x=%7B%22pwd%22%3A%22REDACTED%22%7D",
        ),
        ("https://h/?key=", "https://h/?key="),
        ("https://h/?key", "https://h/?key"),
        (
            "https://h/?max_tokens=5&pageToken=abc&monkey=2",
            "https://h/?max_tokens=5&pageToken=abc&monkey=2",
        ),
        ("https://u:p@h/x", "https://REDACTED@h/x"),
        ("https://u@h?x", "https://REDACTED@h?x"),
        ("https://a@b:c@h/x", "https://REDACTED@h/x"),
        ("u:p@h:443", "REDACTED@h:443"),
        ("https://h/users/a@b.example", "https://h/users/a@b.example"),
        ("https://h/?mail=a@b.example", "https://h/?mail=a@b.example"),
        ("https://h/sk-ant-api03-abcdefgh/x", "https://h/REDACTED/x"),
        (
            "https://h/bot123456789:AAF-abcdefghijklmnopqrstuvwxyz01234/send",
            "https://h/REDACTED/send",
        ),
        (
            "http://127.0.0.1:80/plain?q=cats",
            "http://127.0.0.1:80/plain?q=cats",
        ),
    ] {
        assert_eq!(url(given), expected);
    }
}

#[test]
fn the_users_own_patterns_are_taken_out_too() {
    let redactor = Redactor::with_patterns(["acct_[0-9]{4}"]).expect("a pattern");
    let mut text = "charge acct_1234 with sk-abcdefgh12".to_owned();
    redactor.text(&mut text, 100);
    assert_eq!(text, "charge REDACTED with REDACTED");
    assert_eq!(redactor.header("x-note", "acct_1234"), "REDACTED");
    let bad = Redactor::with_patterns(["a("]).expect_err("no pattern");
    assert!(
        bad.to_string()
            .starts_with("redact: `a(` is not a regular expression"),
        "{bad}"
    );
}

#[test]
fn headers_are_judged_by_name_and_by_shape() {
    let redactor = Redactor::default();
    for (name, value, expected) in [
        ("Authorization", "anything", "REDACTED"),
        ("x-note", "Bearer abcdefgh123456789", "Bearer REDACTED"),
        ("accept", "text/event-stream", "text/event-stream"),
    ] {
        assert_eq!(redactor.header(name, value), expected, "{name}");
    }
}

#[test]
fn keys_are_known_by_their_shape() {
    for (given, expected) in [
        (
            "Incorrect API key provided: sk-proj-abc_DEF-123456.",
            "Incorrect API key provided: REDACTED.",
        ),
        (
            "cannot dial http://u:p@h:8080 for https://h/x?api_key=abc#sig=d refused",
            "cannot dial http://REDACTED@h:8080 for https://h/x?api_key=REDACTED#sig=REDACTED refused",
        ),
        (
            "https_proxy=http://k3y-of-nobody-here@h:8080",
            "https_proxy=http://REDACTED@h:8080",
        ),
        ("dial pg://postgres@h/x", "dial pg://postgres@h/x"),
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
        let mut text = given.to_owned();
        Redactor::default().text(&mut text, 4096);
        assert_eq!(text, expected);
    }
}

#[test]
fn a_key_on_the_edge_of_what_is_kept_is_not_kept_in_half() {
    let redactor = Redactor::default();
    let mut text = format!("{} sk-abcdefghijklmnop", "x".repeat(95));
    redactor.text(&mut text, 100);
    assert_eq!(text, format!("{} R…", "x".repeat(95)));
}

proptest! {
    #[test]
    fn whatever_the_text_it_is_bounded_and_holds_no_key(
        before in "\\PC{0,80}",
        key in "sk-[A-Za-z0-9]{20,40}",
        after in "[ \\PC]{0,80}",
        most in 0_usize..120,
    ) {
        let redactor = Redactor::default();
        for redact in [Redactor::text, Redactor::url] {
            let mut text = format!("{before} {key} {after}");
            redact(&redactor, &mut text, most);
            prop_assert!(text.len() <= most.max("…".len()));
            prop_assert!(!text.contains(&key[..12]), "{}", text);
        }
    }
}

#[test]
fn the_docs_list_every_shape() {
    let docs = include_str!("../../../docs/redaction.md");
    let listed: Vec<&str> = docs
        .lines()
        .skip_while(|line| *line != "| whose | begins with | then at least |")
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let shapes = shapes::SHAPES.iter();
    let written: Vec<String> = shapes
        .map(|shape| {
            let shapes::Shape { name, prefix, .. } = shape;
            let sum = if shape.check.is_some() {
                ", CRC-32"
            } else {
                ""
            };
            let of = match shape.of {
                shapes::Of::Alnum => "`A-Za-z0-9`",
                shapes::Of::Word => "`A-Za-z0-9_`",
                shapes::Of::Key => "`A-Za-z0-9_-`",
                shapes::Of::Upper => "`A-Z0-9`",
                shapes::Of::Hex => "hex digits",
                shapes::Of::Base64 => "base64",
                shapes::Of::Dotted => "`A-Za-z0-9_.-`",
                shapes::Of::Path => "`A-Za-z0-9_/-`",
                shapes::Of::Bearer => "`A-Za-z0-9._~+/=-`",
            };
            format!("| {name} | `{prefix}` | {} {of}{sum} |", shape.least)
        })
        .collect();
    assert_eq!(listed, written, "{}", written.join("\n"));
}
