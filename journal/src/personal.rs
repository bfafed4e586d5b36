//! Personal data in texts: known by its shape, by a check digit where it has one, and by the word
//! before it where the shape says too little.
//!
//! Detectors are a table ([`table`]); a pattern finds candidates, a check throws out those that only
//! look like one. Secrets, such as keys and tokens, are the redactor's ([`crate::redact`]).

mod checks;
mod table;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// What personal data is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Where a person is reached.
    Contact,
    /// Who a person is to the state.
    Identity,
    /// Who a person is to the tax office.
    Tax,
    /// What a person pays with.
    Payment,
    /// How a person is.
    Health,
    /// What a person travels and drives with.
    Travel,
    /// What a person's machines are called.
    Device,
    /// Where a person is, lives or drives.
    Place,
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 8] = [
        Self::Contact,
        Self::Identity,
        Self::Tax,
        Self::Payment,
        Self::Health,
        Self::Travel,
        Self::Device,
        Self::Place,
    ];

    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Contact => "contact",
            Self::Identity => "identity",
            Self::Tax => "tax",
            Self::Payment => "payment",
            Self::Health => "health",
            Self::Travel => "travel",
            Self::Device => "device",
            Self::Place => "place",
        }
    }
}

/// A piece of personal data in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Name of the detector.
    pub detector: &'static str,
    /// What it is about.
    pub category: Category,
    /// Where in the text the value stands, bytes.
    pub place: Range<usize>,
}

/// A row of the table.
struct Detector {
    name: &'static str,
    category: Category,
    /// The group `v` is the value; without one the whole match is.
    pattern: &'static str,
    /// Whether a candidate is one.
    holds: fn(&str) -> bool,
}

/// All patterns at once, to know which are worth a look, and each by itself.
struct Compiled {
    set: RegexSet,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let patterns: Vec<String> = table::DETECTORS
        .iter()
        // A word ends where a letter of English does, which spares tables of all others.
        .map(|detector| detector.pattern.replace(r"\b", r"(?-u:\b)"))
        .collect();
    Compiled {
        set: RegexSet::new(&patterns).expect("the patterns are constants and compile"),
        each: patterns
            .iter()
            .map(|pattern| Regex::new(pattern).expect("the patterns are constants and compile"))
            .collect(),
    }
});

/// Names of all detectors, with their categories.
pub fn detectors() -> impl Iterator<Item = (&'static str, Category)> {
    table::DETECTORS
        .iter()
        .map(|detector| (detector.name, detector.category))
}

/// Finds personal data in a text, in order; of several detectors for one place the first counts.
pub fn find(text: &str) -> Vec<Found> {
    let compiled = &*COMPILED;
    // By where it begins: what overlaps is found without looking at all of it.
    let mut found: BTreeMap<usize, Found> = BTreeMap::new();
    for number in compiled.set.matches(text) {
        let detector = &table::DETECTORS[number];
        for captures in compiled.each[number].captures_iter(text) {
            let whole = captures.get(0).map(|whole| whole.range());
            let value = captures.name("v").map(|value| value.range()).or(whole);
            let Some(place) = value.filter(|place| (detector.holds)(&text[place.clone()])) else {
                continue;
            };
            let before = found.range(..place.end).next_back();
            if before.is_none_or(|(_, other)| other.place.end <= place.start) {
                let one = Found {
                    detector: detector.name,
                    category: detector.category,
                    place,
                };
                found.insert(one.place.start, one);
            }
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests;
