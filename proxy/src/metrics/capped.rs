//! Labels with user-defined values, bounded in number.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::lock::lock;

/// Keeps the first values up to a limit; every later one becomes `other`.
#[derive(Debug)]
pub(super) struct Capped {
    most: usize,
    seen: Mutex<HashSet<String>>,
}

impl Capped {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            seen: Mutex::default(),
        }
    }

    /// The label for `value`: itself, or `other`.
    pub(super) fn name<'a>(&self, value: &'a str) -> &'a str {
        let mut seen = lock(&self.seen);
        if seen.contains(value) {
            return value;
        }
        if seen.len() >= self.most {
            return "other";
        }
        seen.insert(value.to_owned());
        value
    }
}
