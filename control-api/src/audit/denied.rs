//! Counts denied calls and writes them as one entry, so that clients cannot flood the log.

use std::time::{Duration, Instant};

use http::StatusCode;

/// Shortest time between two such entries.
pub(super) const EVERY: Duration = Duration::from_mins(1);

/// Denied calls without an entry so far.
#[derive(Debug, Default)]
pub(super) struct Denied {
    unauthenticated: u64,
    forbidden: u64,
    hasty: u64,
    /// When the last entry was written.
    written_at: Option<Instant>,
}

impl Denied {
    pub(super) fn count(&mut self, status: StatusCode) {
        match status {
            StatusCode::UNAUTHORIZED => self.unauthenticated += 1,
            StatusCode::FORBIDDEN => self.forbidden += 1,
            StatusCode::TOO_MANY_REQUESTS => self.hasty += 1,
            _ => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unauthenticated + self.forbidden + self.hasty == 0
    }

    /// The text of the next entry: the first at once, later ones at most every [`EVERY`], or at shutdown
    /// (`last`).
    pub(super) fn take(&mut self, now: Instant, last: bool) -> Option<String> {
        let is_early = self
            .written_at
            .is_some_and(|written| now.duration_since(written) < EVERY);
        if self.is_empty() || (is_early && !last) {
            return None;
        }
        let Self {
            unauthenticated,
            forbidden,
            hasty,
            ..
        } = *self;
        *self = Self {
            written_at: Some(now),
            ..Self::default()
        };
        Some(format!(
            "{unauthenticated} without a good token (401), {forbidden} not allowed (403), {hasty} in haste (429)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_entry_a_minute() {
        let (mut denied, start) = (Denied::default(), Instant::now());
        assert_eq!(denied.take(start, true), None);
        denied.count(StatusCode::FORBIDDEN);
        assert!(denied.take(start, false).is_some(), "the first at once");
        for _ in 0..1000 {
            denied.count(StatusCode::UNAUTHORIZED);
        }
        assert_eq!(denied.take(start + EVERY / 2, false), None);
        let text = denied.take(start + EVERY, false).expect("after a minute");
        assert!(text.starts_with("1000 without a good token"), "{text}");
        denied.count(StatusCode::TOO_MANY_REQUESTS);
        assert!(denied.take(start + EVERY, true).is_some(), "before the end");
    }
}
