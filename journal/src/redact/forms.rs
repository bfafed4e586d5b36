//! Secrets recognised by the name beside them: parameters, header lines, form fields, elements, attributes.

use std::sync::LazyLock;

use regex::Regex;

use super::Secret;
use super::names::{ANY, is_secret_header, is_secret_member, is_secret_parameter};
use crate::patterns::Patterns;

/// Kind of the secret; pattern before the value, with the group `name`; pattern of the value, or its group `v`;
/// and whether the name marks a secret.
type ValueForm = (
    &'static str,
    &'static str,
    &'static str,
    fn(&str, &str) -> bool,
);

/// Row of the form for URLs and forms; the next row is for other texts.
const IN_URL: usize = 0;
const IN_TEXT: usize = 1;

// The scheme of a header stays readable. A `value` beside a `name` or `key` is an HTML field or a setting.
#[rustfmt::skip]
const FORMS: &[ValueForm] = &[
    ("parameter", "(?:^|[?&#;=])(?P<name>[^?&#;=]*)=", "[^?&#;]+", is_parameter),
    ("parameter", r"[?&#=](?:amp;)?(?P<name>[A-Za-z0-9_.%\[\]-]{1,64})=", r#"[^\s"'`<>\\;?&#]+"#, is_parameter),
    ("form field", r#"(?i)content-disposition:[ \t]*form-data[^\r\n]*?;[ \t]*name="?(?P<name>[^";\s]+)[^\r\n]*\r?\n(?:[^\r\n]+\r?\n)*\r?\n"#, r"(?P<v>(?s:.+?))(?:\r?\n--|\z)", is_parameter),
    ("header line", r"(?m)^[ \t>]*(?P<name>[A-Za-z][A-Za-z0-9_-]{2,63}):[ \t]*(?:(?i:bearer|basic|digest|token)[ \t]+)?", r"[^\r\n]+", is_header),
    ("header line", r#""(?P<name>[A-Za-z][A-Za-z0-9_-]{2,63}):[ \t]*(?:(?i:bearer|basic|digest|token)[ \t]+)?"#, r#"[^"\\\r\n]+"#, is_header),
    ("header line", r"'(?P<name>[A-Za-z][A-Za-z0-9_-]{2,63}):[ \t]*(?:(?i:bearer|basic|digest|token)[ \t]+)?", r#"[^'"\\\r\n]+"#, is_header),
    ("header line", r"`(?P<name>[A-Za-z][A-Za-z0-9_-]{2,63}):[ \t]*(?:(?i:bearer|basic|digest|token)[ \t]+)?", r#"[^`"\\\r\n]+"#, is_header),
    ("element", r"<(?P<name>[A-Za-z_][A-Za-z0-9_.:-]{0,63})(?:\s[^<>]*[^<>/])?>", r"(?P<v>(?:<!\[CDATA\[)?[^<]+)</", is_element),
    ("attribute", r#"(?:<[A-Za-z_][^<>"'=]*|["'])\s+(?P<name>[A-Za-z_][A-Za-z0-9_.:-]{0,63})\s*=\s*""#, r#"[^"<>]+"#, is_element),
    ("attribute", r#"(?:<[A-Za-z_][^<>"'=]*|["'])\s+(?P<name>[A-Za-z_][A-Za-z0-9_.:-]{0,63})\s*=\s*'"#, r"[^'<>]+", is_element),
    ("attribute", r#"\b(?:name|key)\s*=\s*["'](?P<name>[^"'<>]*)["'][^<>]*?\svalue\s*=\s*""#, r#"[^"<>]+"#, is_element),
    ("attribute", r#"\b(?:name|key)\s*=\s*["'](?P<name>[^"'<>]*)["'][^<>]*?\svalue\s*=\s*'"#, r"[^'<>]+", is_element),
];

fn is_parameter(name: &str, _: &str) -> bool {
    is_secret_parameter(name)
}

/// Secret headers without a hyphen are listed; any other single word before a colon is prose.
fn is_header(name: &str, _: &str) -> bool {
    let words = ["authorization", "cookie", "cookie2"];
    let is_header = name.contains('-') || words.contains(&&*name.to_ascii_lowercase());
    is_header && is_secret_header(name)
}

/// Whether the name of an element or attribute marks a secret; it may have a prefix (`soap:`).
fn is_element(name: &str, value: &str) -> bool {
    is_secret_member(name.rsplit(':').next().unwrap_or(name), value)
}

/// The patterns before values, and of the values.
static PATTERNS: LazyLock<(Patterns, Vec<Regex>)> = LazyLock::new(|| {
    let values = FORMS.iter().map(|(_, _, value, _)| {
        let value = Regex::new(&format!(r"\A(?:{value})"));
        value.expect("the pattern is a constant")
    });
    let heads = FORMS.iter().map(|(_, head, ..)| head);
    (Patterns::new(heads), values.collect())
});

/// Finds secrets in a text, without decoding.
pub(super) fn find(text: &str, in_url: bool, found: &mut Vec<Secret>) {
    let (heads, values) = &*PATTERNS;
    let left_out = if in_url { IN_TEXT } else { IN_URL };
    for (row, head) in heads.rows(text).filter(|(row, _)| *row != left_out) {
        let (form, _, _, is_secret) = FORMS[row];
        let mut at = 0;
        while let Some(captures) = head.captures_at(text, at) {
            at = captures.get_match().end();
            let name = &captures["name"];
            // Matches the value only if its name can mark a secret: values may be long.
            let value = is_secret(name, ANY).then(|| values[row].captures(&text[at..]));
            let value = value.flatten().and_then(|it| it.name("v").or(it.get(0)));
            let Some(value) = value else { continue };
            let secret = value.as_str().trim_end();
            if !secret.is_empty() && is_secret(name, secret) {
                let start = at + value.start();
                at = start + secret.len();
                found.push(Secret::new(start..at, form));
            }
        }
    }
}
