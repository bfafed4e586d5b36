//! Personal data in texts, recognised by its shape and check digits, or by the preceding word if the shape is not
//! specific.
//!
//! Detectors are a table ([`table`]): a pattern finds candidates, and a check rejects false ones.
//! [`crate::redact`] detects secrets, such as keys and tokens.

mod checks;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use self::table::DETECTORS;
use crate::patterns::Patterns;

/// A piece of personal data in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonalData {
    /// Name of the detector.
    pub detector: &'static str,
    /// Position of the value in the text, bytes.
    pub place: Range<usize>,
}

static PATTERNS: LazyLock<Patterns> =
    LazyLock::new(|| Patterns::new(DETECTORS.iter().map(|(_, pattern, _)| pattern)));

/// Finds personal data in a text, in order; if detectors overlap, the first in the table wins.
pub fn find(text: &str) -> Vec<PersonalData> {
    // Sorted by start, so that overlaps are found quickly.
    let mut found: BTreeMap<usize, PersonalData> = BTreeMap::new();
    for (row, place) in PATTERNS.find(text) {
        let (detector, _, check) = DETECTORS[row];
        let before = found.range(..place.end).next_back();
        let is_free = before.is_none_or(|(_, other)| other.place.end <= place.start);
        if is_free && check.holds(&text[place.clone()]) {
            found.insert(place.start, PersonalData { detector, place });
        }
    }
    found.into_values().collect()
}
