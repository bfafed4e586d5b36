//! Numbers the requests with equal fingerprints in a scope, with bounded memory.

use std::sync::{Mutex, PoisonError};

use crate::fifo_map::FifoMap;
use crate::fingerprint::Fingerprint;

/// Most fingerprints that one scope remembers.
pub(crate) const REMEMBERED: usize = 65_536;

/// Counts requests per fingerprint. The oldest fingerprint is dropped first, and restarts at 1.
#[derive(Debug)]
pub(crate) struct Attempts(Mutex<FifoMap<u64, u64>>);

impl Default for Attempts {
    fn default() -> Self {
        Self(Mutex::new(FifoMap::new(REMEMBERED)))
    }
}

impl Attempts {
    /// Counts a request; returns its number from 1.
    pub(crate) fn count(&self, fingerprint: Fingerprint) -> u64 {
        // The table is consistent after every step, so a panic elsewhere does not matter.
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = table.entry(fingerprint.0, 0);
        *count += 1;
        *count
    }
}
