//! JSON members whose names mark secrets, in documents and in fragments of documents.

use std::sync::LazyLock;

use regex::Regex;
use squall_dialects::json::{Document, JsonKind, Value};

use super::Secret;
use super::names::{ANY, is_secret_member, is_secret_number};

/// A member's name, and the beginning of its value.
static HEADS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""(?P<name>[A-Za-z0-9_.-]{2,64})(?P<quote>")[ \t\r\n]*:[ \t\r\n]*["\[{0-9-]"#)
        .expect("the pattern is a constant")
});

/// Tokens of a value. A truncated text extends to the end.
static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r#""(?P<text>(?s:[^"\\]|\\.)*)(?:"(?P<is_name>[ \t\r\n]*:)?)?|(?P<number>-?[0-9][0-9.eE+-]*)"#,
        r"|(?P<open>[\[{])|(?P<close>[\]}])",
    ))
    .expect("the pattern is a constant")
});

/// Kind of such a secret.
const MEMBER: &str = "JSON";

/// Finds the texts and numbers of members with such names, nested ones included.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let mut seen = 0;
    for head in HEADS.captures_iter(text) {
        let (name, quote, whole) = (&head["name"], head.name("quote"), head.get_match());
        let start = whole.end() - 1;
        let is_secret = whole.start() >= seen && is_secret_member(name, ANY);
        if !is_secret || is_schema(&text[start..]) {
            continue;
        }
        let mut depth = 0_usize;
        for token in TOKENS.captures_iter(&text[start..]) {
            let place = |range: std::ops::Range<usize>| start + range.start..start + range.end;
            seen = place(token.get_match().range()).end;
            if token.name("open").is_some() {
                depth += 1;
            } else if token.name("close").is_some() {
                depth = depth.saturating_sub(1);
            } else if let (Some(value), None) = (token.name("text"), token.name("is_name"))
                && is_secret_member(name, value.as_str())
            {
                found.push(Secret::new(place(value.range()), MEMBER));
            } else if let (Some(number), Some(quote)) = (token.name("number"), quote)
                && is_secret_number(name)
            {
                found.push(Secret {
                    quote: quote.range(),
                    ..Secret::new(place(number.range()), MEMBER)
                });
            }
            if depth == 0 {
                break;
            }
        }
    }
}

/// How far into an object its kind is searched, bytes.
const LOOK: usize = 1 << 10;

/// Whether an object is a JSON Schema, as the parameters of tools are.
fn is_schema(text: &str) -> bool {
    let begins = text.as_bytes().get(..LOOK).unwrap_or(text.as_bytes());
    if !text.starts_with('{') {
        return false;
    }
    let Some(document) = Document::parse_prefix(begins) else {
        return false;
    };
    let says_type = |value: Value<'_>| match value.kind() {
        JsonKind::Array => value.items().any(|item| is_type(item)),
        _ => is_type(value),
    };
    let mut members = document
        .root()
        .members()
        .map(|it| (it.key().unwrap_or_default(), it));
    let mut says = false;
    members.all(|(key, value)| {
        says |= ["$ref", "allOf", "anyOf", "oneOf"].contains(&&*key);
        says |= key == "type" && says_type(value);
        SCHEMA.contains(&&*key)
    }) && says
}

fn is_type(value: Value<'_>) -> bool {
    value.as_str().is_some_and(|it| TYPES.contains(&&*it))
}

/// Values of `type` in a schema.
#[rustfmt::skip]
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Members of a schema.
#[rustfmt::skip]
const SCHEMA: [&str; 33] = [
    "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "deprecated", "description", "enum",
    "example", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maxLength",
    "maximum", "minItems", "minLength", "minimum", "nullable", "oneOf", "pattern", "patternProperties",
    "prefixItems", "properties", "readOnly", "required", "title", "type", "uniqueItems", "writeOnly",
];
