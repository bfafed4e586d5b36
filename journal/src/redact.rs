//! Secrets taken out before anything is kept, logged or streamed.
//!
//! Three ways to know one: the name of the header or query parameter it is in, its place in a URL
//! (user information), and its shape (`sk-…`, `Bearer …`, the digits of a payment card). A secret becomes [`REDACTED`]; what
//! holds none is left as it is, without a copy. Texts are cut to a bound first, with enough behind
//! it that a key on the edge is still seen whole.

mod checks;
mod detect;
mod names;
mod shapes;

use std::borrow::Cow;
use std::ops::Range;

use percent_encoding::percent_decode_str;
use regex::Regex;

pub use self::detect::Found;
pub use self::names::is_secret_header;
pub(crate) use self::names::{is_secret_member, is_secret_number, is_secret_parameter};

/// What stands where a secret was.
pub const REDACTED: &str = "REDACTED";

/// How far behind the bound a text is looked at: longer than any key is, so that none is cut in
/// two and kept in half.
const SLACK: usize = 512;

/// Knows secrets: the built-in shapes and those of the config's `redact:`.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    own: Vec<Regex>,
}

/// A pattern of the config's `redact:` that is no regular expression.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("redact: `{pattern}` is not a regular expression: {source}")]
pub struct BadPattern {
    pattern: String,
    source: regex::Error,
}

impl Redactor {
    /// The built-in detectors and `patterns`, regular expressions whose whole match is a secret.
    pub fn with_patterns<S: AsRef<str>>(
        patterns: impl IntoIterator<Item = S>,
    ) -> Result<Self, BadPattern> {
        let compile = |pattern: S| {
            Regex::new(pattern.as_ref()).map_err(|source| BadPattern {
                pattern: pattern.as_ref().to_owned(),
                source,
            })
        };
        let own = patterns
            .into_iter()
            .map(compile)
            .collect::<Result<_, _>>()?;
        Ok(Self { own })
    }

    /// Takes secrets out of a text and cuts it to `most` bytes.
    pub fn text(&self, text: &mut String, most: usize) {
        cut(text, most.saturating_add(SLACK));
        self.shaped(text);
        shorten(text, most);
    }

    /// Takes secrets out of a URL (user information, parameters named like a key, key-shaped
    /// strings anywhere) and cuts it to `most` bytes.
    pub fn url(&self, url: &mut String, most: usize) {
        cut(url, most.saturating_add(SLACK));
        if let Some(info) = user_info(url) {
            url.replace_range(info, REDACTED);
        }
        if let Some(redacted) = url.find('?').and_then(|at| parameters(url, at + 1)) {
            *url = redacted;
        }
        self.shaped(url);
        shorten(url, most);
    }

    /// A header's value, or [`REDACTED`] for a header that holds a secret by its name.
    pub fn header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if is_secret_header(name) {
            return Cow::Borrowed(REDACTED);
        }
        let mut text = Cow::Borrowed(value);
        if let Some(redacted) = without(value, &detect::secrets(value)) {
            text = Cow::Owned(redacted);
        }
        for pattern in &self.own {
            if pattern.is_match(&text) {
                text = Cow::Owned(pattern.replace_all(&text, REDACTED).into_owned());
            }
        }
        text
    }

    /// Secrets of the built-in shapes in a text, in their order, for whoever judges where they go.
    pub fn secrets(&self, text: &str) -> Vec<Found> {
        detect::secrets(text)
    }

    /// Where secrets of any shape stand in a text, the config's own included: in order, none overlaps
    /// another.
    pub fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places: Vec<_> = detect::secrets(text)
            .into_iter()
            .map(|found| found.range)
            .collect();
        for pattern in &self.own {
            places.extend(pattern.find_iter(text).map(|found| found.range()));
        }
        joined(places)
    }

    /// Whether one of the config's own patterns finds something in a text.
    pub fn finds_own(&self, text: &str) -> bool {
        self.own.iter().any(|pattern| pattern.is_match(text))
    }

    fn shaped(&self, text: &mut String) {
        if let Some(redacted) = without(text, &detect::secrets(text)) {
            *text = redacted;
        }
        for pattern in &self.own {
            if let Cow::Owned(redacted) = pattern.replace_all(text, REDACTED) {
                *text = redacted;
            }
        }
    }
}

/// The same places in order, those that overlap as one.
pub(crate) fn joined(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.retain(|place| !place.is_empty());
    places.sort_by_key(|place| place.start);
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(places.len());
    for place in places {
        match apart.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => apart.push(place),
        }
    }
    apart
}

/// The text without what was found in it; `None` for nothing.
fn without(text: &str, found: &[Found]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let mut redacted = String::with_capacity(text.len());
    let mut copied = 0;
    for secret in found {
        redacted.push_str(&text[copied..secret.range.start]);
        redacted.push_str(REDACTED);
        copied = secret.range.end;
    }
    redacted.push_str(&text[copied..]);
    Some(redacted)
}

/// Where the user information of a URL is, without its `@`.
fn user_info(url: &str) -> Option<Range<usize>> {
    if !url.contains('@') {
        return None;
    }
    let start = url.find("://").map_or(0, |at| at + 3);
    let rest = &url[start..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    rest[..end].rfind('@').map(|at| start..start + at)
}

/// The URL with the values of secret parameters replaced, if there are any from `query` on.
fn parameters(url: &str, query: usize) -> Option<String> {
    let mut redacted = String::new();
    // Everything before this is in `redacted`.
    let mut copied = 0;
    let mut start = query;
    for pair in url[query..].split(['&', ';', '#', '?']) {
        if let Some((name, value)) = pair.split_once('=')
            && !value.is_empty()
            && is_secret_pair(name, value)
        {
            let value_at = start + name.len() + 1;
            redacted.push_str(&url[copied..value_at]);
            redacted.push_str(REDACTED);
            copied = value_at + value.len();
        }
        start += pair.len() + 1;
    }
    if copied == 0 {
        return None;
    }
    redacted.push_str(&url[copied..]);
    Some(redacted)
}

/// How often a parameter's value may be percent-encoded and is still looked into.
const ENCODED: usize = 3;

/// Whether a query parameter in a text is a secret: by its name, or because its value is a URL or a form with
/// such a one.
pub(crate) fn is_secret_pair(name: &str, value: &str) -> bool {
    is_secret_parameter(name) || holds_a_secret(value, ENCODED)
}

/// Whether a parameter's value is, percent-encoded at most so often, a URL or a form with a secret
/// parameter.
fn holds_a_secret(value: &str, times: usize) -> bool {
    if times == 0 || !value.contains('%') {
        return false;
    }
    let decoded = percent_decode_str(value).decode_utf8_lossy();
    let mut pairs = decoded.split(['&', ';', '#', '?']);
    pairs.any(|pair| match pair.split_once('=') {
        Some((name, value)) => {
            let is_secret = !value.is_empty() && names::is_secret_parameter(name);
            is_secret || holds_a_secret(value, times - 1)
        }
        None => holds_a_secret(pair, times - 1),
    })
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
    }
}

/// Cuts with a sign that something is missing.
fn shorten(text: &mut String, most: usize) {
    const ELLIPSIS: &str = "…";
    if text.len() > most {
        cut(text, most.saturating_sub(ELLIPSIS.len()));
        text.push_str(ELLIPSIS);
    }
}

#[cfg(test)]
mod tests {
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
                "https://h/?x=REDACTED&y=2",
            ),
            (
                "https://h/?x=https%253A%252F%252Fh%252F%253Fapi_key%253Done",
                "https://h/?x=REDACTED",
            ),
            (
                "https://h/?x=https%3A%2F%2Fh%2F%3Fq%3D100%25",
                "https://h/?x=https%3A%2F%2Fh%2F%3Fq%3D100%25",
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
        let docs = include_str!("../../docs/redaction.md");
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
}
