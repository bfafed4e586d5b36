//! How many invocations a run executes at once.

use std::iter::successors;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// The greatest number.
const MOST: usize = 100;

/// Concurrent invocations: one number, or a range of them for a load run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyRange {
    first: NonZeroUsize,
    last: NonZeroUsize,
}

impl ConcurrencyRange {
    /// What can be parsed.
    pub const EXPECTED: &str =
        "a whole number from 1 to 100, or for a load run a range such as `1..64`";

    /// One number.
    pub fn one(number: usize) -> Self {
        let number = NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN);
        Self {
            first: number,
            last: number,
        }
    }

    /// The range of a load run that names none.
    pub fn of_load() -> Self {
        Self {
            last: Self::one(64).last,
            ..Self::one(1)
        }
    }

    /// Whether it is one number.
    pub(super) fn is_one(self) -> bool {
        self.first == self.last
    }

    /// The greatest concurrency.
    pub(super) fn last(self) -> NonZeroUsize {
        self.last
    }

    /// The levels of a load run: doubled from the first to the last.
    pub(super) fn levels(self) -> Vec<usize> {
        let last = self.last.get();
        let next = |level: &usize| (*level < last).then(|| (level * 2).min(last));
        successors(Some(self.first.get()), next).collect()
    }
}

impl FromStr for ConcurrencyRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.trim().parse().ok();
        let range = number(first).zip(number(last));
        let range = range.map(|(first, last)| Self { first, last });
        range
            .filter(|range| range.first <= range.last && range.last.get() <= MOST)
            .ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_doubled_and_ends_with_its_last_number() {
        for (text, levels) in [
            ("1..64", &[1, 2, 4, 8, 16, 32, 64][..]),
            ("3..20", &[3, 6, 12, 20]),
            ("8", &[8]),
        ] {
            let range: ConcurrencyRange = text.parse().expect("a range");
            assert_eq!(range.levels(), levels, "{text}");
        }
        assert_eq!("1..64".parse(), Ok(ConcurrencyRange::of_load()));
        for wrong in [
            "", "0", "0..4", "4..1", "101", "1..", "..4", "1..101", "1...4", "-1", "1.5",
        ] {
            assert!(wrong.parse::<ConcurrencyRange>().is_err(), "{wrong}");
        }
    }
}
