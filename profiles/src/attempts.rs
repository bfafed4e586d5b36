//! Numbers the requests with equal fingerprints in a scope, with bounded memory.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::fingerprint::Fingerprint;

/// Most fingerprints that one scope remembers.
pub(crate) const REMEMBERED: usize = 65_536;

/// Counts requests per fingerprint. The oldest fingerprint is dropped first, and restarts at 1.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    table: Mutex<AttemptTable>,
}

#[derive(Debug, Default)]
struct AttemptTable {
    seen: HashMap<u64, u64>,
    order: VecDeque<u64>,
    forgotten: u64,
}

impl Attempts {
    /// Counts a request; returns its number from 1.
    pub(crate) fn count(&self, fingerprint: Fingerprint) -> u64 {
        self.with(|table| table.count(fingerprint.0, REMEMBERED))
    }

    /// Number of dropped fingerprints.
    pub(crate) fn forgotten(&self) -> u64 {
        self.with(|table| table.forgotten)
    }

    fn with<T>(&self, look: impl FnOnce(&mut AttemptTable) -> T) -> T {
        // The table is consistent after every step, so a panic elsewhere does not matter.
        look(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AttemptTable {
    fn count(&mut self, fingerprint: u64, remembered: usize) -> u64 {
        if let Some(seen) = self.seen.get_mut(&fingerprint) {
            *seen += 1;
            return *seen;
        }
        if self.order.len() >= remembered
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
            self.forgotten += 1;
        }
        self.order.push_back(fingerprint);
        self.seen.insert(fingerprint, 1);
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_bounded_and_counts_what_it_forgets() {
        let mut table = AttemptTable::default();
        let counts: Vec<_> = [1, 1, 2, 3, 1, 3]
            .iter()
            .map(|f| table.count(*f, 2))
            .collect();
        assert_eq!(counts, [1, 2, 1, 1, 1, 2]);
        assert_eq!(
            (table.forgotten, table.seen.len(), table.order.len()),
            (2, 2, 2)
        );
    }
}
