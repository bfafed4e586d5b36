//! Tables of patterns, and payment cards, which are both secrets and personal data.

use std::ops::Range;

use regex::{Regex, RegexSet};

/// The patterns of a table: as a set, to find candidate rows quickly, and each by itself.
pub(crate) struct Patterns {
    set: RegexSet,
    each: Vec<Regex>,
}

impl Patterns {
    /// Compiles the patterns of a table, which are constants.
    pub(crate) fn new(patterns: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        // ASCII word boundaries need no Unicode tables.
        let ascii = |pattern: &str| pattern.replace(r"\b", r"(?-u:\b)");
        let patterns: Vec<String> = patterns.into_iter().map(|it| ascii(it.as_ref())).collect();
        let compile = |pattern: &String| Regex::new(pattern).expect("the patterns are constants");
        Self {
            set: RegexSet::new(&patterns).expect("the patterns are constants"),
            each: patterns.iter().map(compile).collect(),
        }
    }

    /// The rows that match somewhere in a text.
    pub(crate) fn rows<'p>(
        &'p self,
        text: &str,
    ) -> impl Iterator<Item = (usize, &'p Regex)> + use<'p> {
        let rows = self.set.matches(text).into_iter();
        rows.map(|row| (row, &self.each[row]))
    }

    /// Rows, and what they match: the group `v`, or else everything.
    pub(crate) fn find<'p>(&'p self, text: &'p str) -> impl Iterator<Item = (usize, Range<usize>)> {
        self.rows(text).flat_map(move |(row, pattern)| {
            let values = pattern.captures_iter(text);
            values.filter_map(move |it| Some((row, it.name("v").or(it.get(0))?.range())))
        })
    }
}

/// Rows of digits that may be a payment card: [`is_card`] decides.
pub(crate) const CARD: &str = r"(?:^|[^0-9A-Za-z_.-])(?P<v>[0-9]+(?:[ -][0-9]+)*)\b";

/// Whether a row of digits has the groups of a payment card, a network's prefix and length, and Luhn's digit.
pub(crate) fn is_card(row: &str) -> bool {
    let groups: Vec<usize> = row.split([' ', '-']).map(str::len).collect();
    let is_grouped = matches!(groups[..], [14..=16] | [4, 4, 4, 4] | [4, 6, 4 | 5]);
    let digits = digits(row);
    let first = |count: usize| digits.iter().take(count).fold(0, |n, digit| n * 10 + digit);
    let has_prefix = match digits.len() {
        14 => matches!(first(3), 300..=305 | 309) || matches!(first(2), 36 | 38 | 39),
        15 => matches!(first(2), 34 | 37),
        _ => {
            matches!(first(2), 40..=49 | 51..=55 | 62 | 65)
                || matches!(first(3), 644..=649)
                || matches!(first(4), 2221..=2720 | 3528..=3589 | 6011)
        }
    };
    is_grouped && !(row.contains(' ') && row.contains('-')) && has_prefix && has_luhn(&digits)
}

/// The digits of a text, in order.
pub(crate) fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// Whether the last digit is Luhn's (ISO/IEC 7812-1).
pub(crate) fn has_luhn(digits: &[u32]) -> bool {
    let sum: u32 = (digits.iter().rev().enumerate())
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) => double / 10 + double % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}
