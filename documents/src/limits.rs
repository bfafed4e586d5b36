//! Limits for the cost of one document.
//!
//! A short text can be expensive. Braces in globs multiply, patterns compile to automata, and a `JSONPath` or a
//! schema visits values repeatedly. Code that reads such a part first takes its cost from these limits.

use std::cell::Cell;
use std::rc::Rc;

/// A limited quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Bytes of texts with variables, after expansion.
    ExpandedBytes,
    /// Globs, after brace expansion.
    Globs,
    /// Bytes of those globs.
    GlobBytes,
    /// Regular expressions.
    Patterns,
    /// Bytes of compiled regular expressions.
    PatternBytes,
    /// Bytes of `JSONPath`s, where alternative selectors count separately, and a fixed cost for each path.
    PathBytes,
    /// Parts of JSON Schemas; referenced parts count for each reference.
    SchemaParts,
    /// Rules of profiles and scenarios, scenarios, and invariants.
    Rules,
    /// Verdicts of a run: invariants × scenarios × prompts × repeats.
    Verdicts,
}

/// The limit of each quantity, and its name in messages.
const ALL: [(Limited, usize, &str); 9] = [
    (
        Limited::ExpandedBytes,
        4 << 20,
        "bytes of texts with their variables expanded",
    ),
    (
        Limited::Globs,
        25_000,
        "globs with their braces spelled out",
    ),
    (
        Limited::GlobBytes,
        2 << 20,
        "bytes of globs with their braces spelled out",
    ),
    (Limited::Patterns, 300, "regular expressions"),
    (
        Limited::PatternBytes,
        10 << 20,
        "bytes of compiled regular expressions",
    ),
    (
        Limited::PathBytes,
        20_000,
        "bytes of JSONPaths, each with 200 more, or with 1,000 where it has `..`, `*`, a slice or a filter",
    ),
    (
        Limited::SchemaParts,
        20_000,
        "parts of JSON Schemas, each reference counted as what it refers to",
    ),
    (Limited::Rules, 10_000, "rules, scenarios and invariants"),
    (
        Limited::Verdicts,
        14_000,
        "verdicts to reach: invariants × scenarios × prompts × repeats",
    ),
];

/// The remaining limits of one document. Clones share them.
#[derive(Debug, Clone)]
pub struct DocumentLimits(Rc<[Cell<usize>; ALL.len()]>);

/// A limit is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("with this the document has more than {} {}", ALL[self.0 as usize].1, ALL[self.0 as usize].2)]
pub struct OverLimit(pub Limited);

impl Default for DocumentLimits {
    fn default() -> Self {
        Self(Rc::new(ALL.map(|(_, most, _)| Cell::new(most))))
    }
}

impl DocumentLimits {
    /// Takes an amount. If that exceeds the limit, nothing remains, so that later parts fail too.
    pub fn take(&self, what: Limited, much: usize) -> Result<(), OverLimit> {
        let left = self.left(what).checked_sub(much);
        self.0[what as usize].set(left.unwrap_or(0));
        left.map(drop).ok_or(OverLimit(what))
    }

    /// The remaining amount.
    pub fn left(&self, what: Limited) -> usize {
        self.0[what as usize].get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_counted_by_itself_and_shared_by_clones() {
        for (number, (what, most, _)) in ALL.into_iter().enumerate() {
            assert_eq!(what as usize, number);
            let limits = DocumentLimits::default();
            assert_eq!(limits.take(what, most - 1), Ok(()));
            assert_eq!(limits.left(what), 1);
            assert_eq!(limits.clone().take(what, 1), Ok(()));
            assert_eq!(limits.take(what, 1), Err(OverLimit(what)));
            let limits = DocumentLimits::default();
            assert_eq!(limits.take(what, most + 1), Err(OverLimit(what)));
            assert_eq!(limits.left(what), 0);
        }
    }
}
