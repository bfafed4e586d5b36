//! Labels whose values users choose, kept from growing without bound.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

/// Takes the first so many values as they are; every later one is `other`.
#[derive(Debug)]
pub(super) struct Capped {
    most: usize,
    seen: RwLock<HashSet<String>>,
}

impl Capped {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            seen: RwLock::default(),
        }
    }

    /// The label for `value`: itself, or `other`.
    pub(super) fn name<'a>(&self, value: &'a str) -> &'a str {
        // A set of strings is whole whatever thread panicked while it was locked.
        if self
            .seen
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(value)
        {
            return value;
        }
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < self.most || seen.contains(value) {
            seen.insert(value.to_owned());
            value
        } else {
            "other"
        }
    }
}
