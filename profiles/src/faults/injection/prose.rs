//! The field of a tool's JSON that looks most like prose.
//!
//! Nobody tells what the fields of a tool's JSON mean, so the one that looks most like prose is
//! taken: words with spaces between them, the more the better; no ids, URLs, dates or single words
//! while there is anything else.

use std::collections::HashSet;

use squall_dialects::json::{Kind, Value};

/// The likeness from which on a string is prose beyond doubt.
pub(super) const PROSE: u64 = 3 << 32;

/// The string below a value that looks most like prose; the first of equals.
pub(super) fn prose(root: Value<'_>) -> Option<Value<'_>> {
    let mut best: Option<(u64, Value<'_>)> = None;
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        if let Some(text) = value.as_str() {
            let likeness = likeness(value.key().as_deref().unwrap_or_default(), &text);
            if likeness > best.map_or(0, |(best, _)| best) {
                best = Some((likeness, value));
            }
        }
        let first = open.len();
        open.extend(value.members());
        open.extend(value.items());
        open[first..].reverse();
        // Of members with one key readers take the last.
        if value.kind() == Kind::Object {
            let mut keys = HashSet::new();
            let mut number = 0;
            open.retain(|member| {
                number += 1;
                number <= first || keys.insert(member.key())
            });
        }
    }
    best.map(|(_, value)| value)
}

/// Names of fields that hold prose as a rule.
const OF_PROSE: [&str; 22] = [
    "abstract",
    "answer",
    "body",
    "comment",
    "content",
    "description",
    "detail",
    "details",
    "excerpt",
    "message",
    "note",
    "notes",
    "output",
    "reason",
    "result",
    "review",
    "snippet",
    "summary",
    "text",
    "title",
    "subject",
    "caption",
];

/// Names of fields whose values are looked up, not read.
const OF_KEYS: [&str; 16] = [
    "id", "uuid", "key", "token", "type", "kind", "status", "state", "code", "currency", "locale",
    "language", "format", "version", "role", "etag",
];

/// How much a field looks like prose; 0 for what a program is to understand.
pub(super) fn likeness(key: &str, text: &str) -> u64 {
    let words = text.split_whitespace().filter(|word| is_word(word)).count();
    let is_url = text.contains("://") && !text.contains(' ');
    if words == 0 || is_url || is_encoded(text) {
        return 0;
    }
    let key = key.to_ascii_lowercase();
    let is_key = OF_KEYS.contains(&&*key) || key.ends_with("_id") || key.ends_with("_at");
    let named = OF_PROSE.contains(&&*key);
    let length = u64::try_from(text.chars().count())
        .unwrap_or(u64::MAX)
        .min(1 << 20);
    // Prose before single words, and those before what has the name of a key.
    let class = match (words, named, is_key) {
        (3.., _, false) => 4,
        (_, true, _) | (2, false, false) => 3,
        (_, false, false) => 2,
        (_, false, true) => 1,
    };
    let named = if named { length } else { 0 };
    (class << 32) + length + named
}

/// Letters, maybe with a mark behind them.
fn is_word(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    letters > 0 && letters * 2 > word.chars().count()
}

/// Ids, hashes and Base64: long, in one piece, and not of letters alone.
fn is_encoded(text: &str) -> bool {
    let one = !text.contains(char::is_whitespace);
    one && text.len() > 8
        && text.is_ascii()
        && (text.bytes().any(|byte| byte.is_ascii_digit()) || text.len() > 40)
}
