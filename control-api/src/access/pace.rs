//! The rate limiter of one token.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests a second with one token, in the long run.
pub const PER_SECOND: u32 = 100;

/// Requests at once, after a pause.
pub const AT_ONCE: u32 = 200;

/// Time until one request expires.
const EACH: Duration = Duration::from_millis(1000 / PER_SECOND as u64);

/// Most time that unexpired requests may add up to.
const AHEAD: Duration = Duration::from_millis((AT_ONCE * (1000 / PER_SECOND)) as u64);

/// Admits [`AT_ONCE`] requests, and then [`PER_SECOND`]: the generic cell rate algorithm, which stores one
/// instant only.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the last request so far expires.
    paid_until: Mutex<Option<Instant>>,
}

impl Pace {
    /// Admits a request at `now`, or returns how long it must wait.
    pub(super) fn step(&self, now: Instant) -> Result<(), Duration> {
        let mut paid_until = self
            .paid_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let begins = paid_until.map_or(now, |paid| paid.max(now));
        let ahead = begins.duration_since(now) + EACH;
        match ahead.checked_sub(AHEAD) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                *paid_until = Some(begins + EACH);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of requests admitted at one instant.
    fn through(pace: &Pace, now: Instant) -> u32 {
        let tried = (0..2 * AT_ONCE).filter(|_| pace.step(now).is_ok());
        u32::try_from(tried.count()).unwrap()
    }

    #[test]
    fn after_a_rest_so_many_get_through_at_once_and_then_so_many_a_second() {
        let (pace, start) = (Pace::default(), Instant::now());
        assert_eq!(through(&pace, start), AT_ONCE);
        for second in 1..4 {
            let now = start + Duration::from_secs(second);
            assert_eq!(through(&pace, now), PER_SECOND, "{second}");
        }
        assert_eq!(through(&pace, start + Duration::from_hours(1)), AT_ONCE);
    }

    #[test]
    fn the_wait_that_is_named_is_the_one_that_helps() {
        let (pace, start) = (Pace::default(), Instant::now());
        through(&pace, start);
        let wait = pace.step(start).unwrap_err();
        assert_eq!(wait, EACH);
        let before = wait.checked_sub(Duration::from_micros(1)).unwrap();
        assert!(pace.step(start + before).is_err());
        assert!(pace.step(start + wait).is_ok());
    }
}
