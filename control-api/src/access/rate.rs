//! Rate limiters.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock;

/// Requests a second with one token, in the long run.
pub const PER_SECOND: u32 = 100;

/// Requests at once, after a pause.
pub const AT_ONCE: u32 = 200;

/// Failed authentications at once, after a pause; in the long run one a second.
pub const FAILURES_AT_ONCE: u32 = 20;

/// Admits a burst of requests, and then one per interval: the generic cell rate algorithm, which stores one instant
/// only.
#[derive(Debug)]
pub(super) struct RateLimiter {
    interval: Duration,
    burst: u32,
    /// When the last admitted request expires.
    expires: Mutex<Option<Instant>>,
}

impl RateLimiter {
    /// For requests with one token.
    pub(super) fn of_token() -> Self {
        Self::new(Duration::from_secs(1) / PER_SECOND, AT_ONCE)
    }

    /// For requests without a valid token.
    pub(super) fn of_failures() -> Self {
        Self::new(Duration::from_secs(1), FAILURES_AT_ONCE)
    }

    fn new(interval: Duration, burst: u32) -> Self {
        Self {
            interval,
            burst,
            expires: Mutex::default(),
        }
    }

    /// Admits a request at `now`, or returns how long it must wait.
    pub(super) fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut expires = lock(&self.expires);
        let next = expires.map_or(now, |expires| expires.max(now)) + self.interval;
        let wait = (next - now).saturating_sub(self.interval * self.burst);
        if !wait.is_zero() {
            return Err(wait);
        }
        *expires = Some(next);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_admitted_and_then_one_request_per_interval() {
        let (limiter, start) = (RateLimiter::of_token(), Instant::now());
        let admitted = |now: Instant| {
            let tried = (0..2 * AT_ONCE).filter(|_| limiter.admit(now).is_ok());
            tried.count()
        };
        for (seconds, expected) in [
            (0, AT_ONCE),
            (1, PER_SECOND),
            (2, PER_SECOND),
            (60, AT_ONCE),
        ] {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(admitted(now), expected as usize, "{seconds}");
        }
        let now = start + Duration::from_mins(1);
        let wait = limiter.admit(now).unwrap_err();
        let just_before = now + wait.checked_sub(Duration::from_micros(1)).unwrap();
        assert!(limiter.admit(just_before).is_err());
        assert!(limiter.admit(now + wait).is_ok());
    }
}
