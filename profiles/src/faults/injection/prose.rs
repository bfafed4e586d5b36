//! The string of a tool's JSON that looks most like prose: the one with the most words.

use squall_dialects::json::Value;

/// Words from which on a string is prose, and neither a key nor one of a few words.
pub(super) const PROSE: usize = 3;

/// The string below a value that looks most like prose; the first of equals.
pub(super) fn prose(root: Value<'_>) -> Option<Value<'_>> {
    let all = std::iter::once(root).chain(root.descendants());
    best(all).filter(|best| likeness(*best) > (0, 0))
}

/// The value that looks most like prose; the first of equals.
pub(super) fn best<'d>(values: impl Iterator<Item = Value<'d>>) -> Option<Value<'d>> {
    values.reduce(|best, value| {
        if likeness(value) > likeness(best) {
            value
        } else {
            best
        }
    })
}

/// How much a value looks like prose: its number of words, then its length.
pub(super) fn likeness(value: Value<'_>) -> (usize, usize) {
    let Some(text) = value.as_str() else {
        return (0, 0);
    };
    let words = text.split_whitespace().filter(|word| is_word(word)).count();
    let is_url = text.contains("://") && !text.contains(' ');
    if is_url || words == 0 {
        return (0, 0);
    }
    (words, text.len())
}

/// Mostly letters, unlike ids, dates and numbers.
fn is_word(word: &str) -> bool {
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    letters * 2 > word.chars().count()
}
