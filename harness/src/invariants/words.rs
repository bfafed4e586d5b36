//! Helpers for the words of answers: case folding, quotes, similarity.

use std::collections::HashMap;
use std::hash::Hash;

/// A text in lower case.
pub(super) fn fold(text: &str) -> String {
    text.to_lowercase()
}

/// Longest quote of a text in a reason, in characters.
const QUOTED: usize = 80;

/// A text in quotes, shortened to one line.
pub(crate) fn quoted(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().take(QUOTED).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    format!("“{shown}”")
}

/// The similarity of two texts, 0 to 1: the greater of the cosines of their words and of their letter trigrams.
/// Case, order and punctuation are ignored, and meanings too.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let (one, other) = (fold(one), fold(other));
    let (first, second) = (words(&one), words(&other));
    if first.is_empty() || second.is_empty() {
        return if first == second { 1.0 } else { 0.0 };
    }
    let by_words = cosine(&counts(first.iter()), &counts(second.iter()));
    let by_letters = cosine(&counts(trigrams(&first)), &counts(trigrams(&second)));
    by_words.max(by_letters).min(1.0)
}

fn words(folded: &str) -> Vec<&str> {
    folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect()
}

fn trigrams(words: &[&str]) -> impl Iterator<Item = [char; 3]> {
    words.iter().flat_map(|word| {
        let padded: Vec<char> = std::iter::once(' ')
            .chain(word.chars())
            .chain(std::iter::once(' '))
            .collect();
        let runs = padded.windows(3).map(|run| [run[0], run[1], run[2]]);
        runs.collect::<Vec<_>>()
    })
}

fn counts<T: Hash + Eq>(items: impl Iterator<Item = T>) -> HashMap<T, u32> {
    let mut counts = HashMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

fn cosine<T: Hash + Eq>(one: &HashMap<T, u32>, other: &HashMap<T, u32>) -> f64 {
    let dot: f64 = one
        .iter()
        .filter_map(|(item, count)| Some(f64::from(*count) * f64::from(*other.get(item)?)))
        .sum();
    let length = |counts: &HashMap<T, u32>| {
        let squares: f64 = counts.values().map(|count| f64::from(*count).powi(2)).sum();
        squares.sqrt()
    };
    let lengths = length(one) * length(other);
    if lengths == 0.0 { 0.0 } else { dot / lengths }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quote_is_short_and_on_one_line() {
        assert_eq!(quoted("a\n  b"), "“a b”");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 83);
    }

    #[test]
    fn nothing_is_like_nothing_and_like_nothing_else() {
        for (one, other, expected) in [("", "", 1.0), ("", "x", 0.0), ("!", "?", 1.0)] {
            let found = likeness(one, other);
            assert!((found - expected).abs() < 1e-9, "{one} {other} {found}");
        }
    }

    proptest! {
        #[test]
        fn likeness_is_a_share_and_has_no_direction(one: String, other: String) {
            let there = likeness(&one, &other);
            prop_assert!((0.0..=1.0).contains(&there));
            prop_assert!((there - likeness(&other, &one)).abs() < 1e-9);
            prop_assert!(likeness(&one, &one) > 0.999_999);
        }
    }
}
