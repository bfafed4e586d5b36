//! Lines of headers in texts: `X-Api-Key: …` in a captured message, and in the arguments of `curl -H`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::detect::Found;
use super::names::is_secret_header;

/// A header's name where a line begins, or a quotation.
static HEADS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)(?:^[ \t>]*|(?P<quote>["'`]))(?P<name>[A-Za-z][A-Za-z0-9_-]{2,63}):[ \t]*"#)
        .expect("the pattern is a constant and compiles")
});

/// A scheme before credentials.
static SCHEME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[A-Za-z][A-Za-z0-9-]{2,20}[ \t]+")
        .expect("the pattern is a constant and compiles")
});

/// Headers of one word: other words before a colon are prose.
const WORDS: [&str; 3] = ["authorization", "cookie", "cookie2"];

/// Values of headers that are secrets by their names.
pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    let heads = HEADS.captures_iter(text);
    let values = heads.filter_map(|head| value(text, &head));
    found.extend(values.map(|value| Found::new(value, "header line")));
}

fn value(text: &str, head: &Captures<'_>) -> Option<Range<usize>> {
    let name = head["name"].to_ascii_lowercase();
    let is_header = name.contains('-') || WORDS.contains(&name.as_str());
    if !is_header || !is_secret_header(&name) {
        return None;
    }
    let start = head.get(0)?.end();
    let rest = &text[start..];
    let ends = |letter: char| match head.name("quote") {
        Some(quote) => "\r\n\\\"".contains(letter) || quote.as_str().contains(letter),
        None => "\r\n".contains(letter),
    };
    let value = rest[..rest.find(ends).unwrap_or(rest.len())].trim_end();
    // The scheme stays, so that people see what was there.
    let scheme = SCHEME
        .find(value)
        .filter(|_| name.ends_with("authorization"));
    let begins = scheme.map_or(0, |scheme| scheme.end());
    (begins < value.len()).then(|| start + begins..start + value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_headers_that_are_secrets_are_found_and_no_prose() {
        for (text, expected) in [
            (
                "GET / HTTP/1.1\r\nX-Api-Key: a b\r\nHost: h\r\n",
                &["a b"][..],
            ),
            ("Authorization: tok", &["tok"]),
            (
                "> authorization: Digest u=\"x\", r=\"y\"\n",
                &["u=\"x\", r=\"y\""],
            ),
            ("Cookie: a=b; c=d\nSet-Cookie:e=f", &["a=b; c=d", "e=f"]),
            (
                "curl -H 'X-Api-Key: a' -H \"Cookie: b\" http://h",
                &["a", "b"],
            ),
            (r#"{"a":["x-auth-token: a"]}"#, &["a"]),
            ("X-Api-Key:\r\nHost: h", &[]),
            ("Idempotency-Key: a\nContent-Type: b", &[]),
            (
                "Password: at least 8 characters\nToken: a piece of text",
                &[],
            ),
            ("see x-api-key: there", &[]),
            ("", &[]),
        ] {
            let mut found = Vec::new();
            find(text, &mut found);
            let found: Vec<_> = found.into_iter().map(|one| &text[one.range]).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
