//! Rate limits per minute, as token buckets.
//!
//! A bucket holds a minute's allowance and is full at activation. A request that fits takes its
//! share and passes. A request that does not fit takes nothing, and the limit reports when it would
//! fit. Time is an argument, so the same requests at the same times are limited alike.

use std::time::Duration;

use squall_dialects::model::{LimitFigures, LimitScope};

/// Parts per request or token: the inflow of a microsecond at one per minute.
const PARTS: u128 = 60_000_000;

/// The allowance per minute; at least one limit is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Requests per minute, at least 1; `rpm` in files.
    pub requests: Option<u64>,
    /// Request tokens per minute, at least 1, as counted by Squall; `tpm` in files.
    pub tokens: Option<u64>,
}

/// A request that exceeds the allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverAllowance {
    /// The exceeded limit.
    pub(crate) scope: LimitScope,
    /// Time until it would fit without other requests; in whole milliseconds, rounded up. `None`:
    /// never.
    pub(crate) wait: Option<Duration>,
    pub(crate) figures: LimitFigures,
}

/// The remaining allowance.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    requests: Bucket,
    tokens: Bucket,
}

/// The parts taken from a bucket that have not flowed in again.
#[derive(Debug, Default)]
struct Bucket {
    missing: u128,
    /// Time of this value, since activation.
    at: Duration,
}

impl Buckets {
    /// Takes a request with this many tokens, if it fits.
    pub(crate) fn take(
        &mut self,
        allowance: Allowance,
        tokens: u64,
        elapsed: Duration,
    ) -> Result<(), OverAllowance> {
        let limits = [
            (
                &mut self.requests,
                allowance.requests,
                1,
                LimitScope::Requests,
            ),
            (
                &mut self.tokens,
                allowance.tokens,
                tokens,
                LimitScope::Tokens,
            ),
        ];
        let limits = limits.map(|(bucket, per_minute, cost, scope)| {
            per_minute.map(|per_minute| {
                bucket.refill(per_minute, elapsed);
                let over = OverAllowance {
                    scope,
                    wait: bucket.wait(per_minute, cost),
                    figures: bucket.figures(per_minute, cost),
                };
                (bucket, cost, over)
            })
        });
        let late = limits.iter().flatten().map(|(_, _, over)| *over);
        // A request that never fits exceeds its limit the most.
        let order = |over: &OverAllowance| over.wait.unwrap_or(Duration::MAX);
        if let Some(over) = late.max_by_key(order).filter(|over| !order(over).is_zero()) {
            return Err(over);
        }
        for (bucket, cost, _) in limits.into_iter().flatten() {
            bucket.missing += u128::from(cost) * PARTS;
        }
        Ok(())
    }
}

impl Bucket {
    fn refill(&mut self, per_minute: u64, elapsed: Duration) {
        let since = elapsed.saturating_sub(self.at).as_micros();
        self.missing = self.missing.saturating_sub(since * u128::from(per_minute));
        self.at = self.at.max(elapsed);
    }

    /// Time until `cost` fits; zero if it does, `None` if it never will.
    fn wait(&self, per_minute: u64, cost: u64) -> Option<Duration> {
        if cost > per_minute {
            return None;
        }
        let per_minute = u128::from(per_minute.max(1));
        let needed = self.missing + u128::from(cost) * PARTS;
        let too_much = needed.saturating_sub(per_minute * PARTS);
        let millis = too_much.div_ceil(per_minute * 1000);
        Some(Duration::from_millis(
            u64::try_from(millis).unwrap_or(u64::MAX),
        ))
    }

    /// The numbers that a limited request gets in its response.
    fn figures(&self, per_minute: u64, requested: u64) -> LimitFigures {
        let used = u64::try_from(self.missing.div_ceil(PARTS)).unwrap_or(u64::MAX);
        LimitFigures {
            per_minute,
            used,
            requested,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allowance(requests: u64, tokens: u64) -> Allowance {
        let some = |number| (number > 0).then_some(number);
        Allowance {
            requests: some(requests),
            tokens: some(tokens),
        }
    }

    /// The exceeded limit, the wait in seconds, and used / requested.
    type Limited = (LimitScope, Option<u64>, [u64; 2]);

    fn limited(taken: Result<(), OverAllowance>) -> Result<(), Limited> {
        taken.map_err(|over| {
            let figures = [over.figures.used, over.figures.requested];
            (over.scope, over.wait.map(|wait| wait.as_secs()), figures)
        })
    }

    #[test]
    fn what_was_taken_flows_in_again() {
        let mut buckets = Buckets::default();
        for (elapsed, expected) in [
            (0, Ok(())),
            (0, Ok(())),
            // Two per minute: one flows in every thirty seconds.
            (0, Err(30)),
            (10, Err(20)),
            (30, Ok(())),
            (31, Err(29)),
            (3600, Ok(())),
            (3600, Ok(())),
            (3600, Err(30)),
        ] {
            let taken = buckets.take(allowance(2, 0), 1, Duration::from_secs(elapsed));
            let expected = expected.map_err(|wait| (LimitScope::Requests, Some(wait), [2, 1]));
            assert_eq!(limited(taken), expected, "{elapsed}");
        }
    }

    #[test]
    fn the_limit_that_lasts_longer_is_told() {
        let mut buckets = Buckets::default();
        let mut take = |requests, tokens, cost| {
            limited(buckets.take(allowance(requests, tokens), cost, Duration::ZERO))
        };
        let (requests, tokens) = (LimitScope::Requests, LimitScope::Tokens);
        assert_eq!(take(1, 600, 300), Ok(()));
        assert_eq!(take(1, 600, 300), Err((requests, Some(60), [1, 1])));
        assert_eq!(take(0, 600, 400), Err((tokens, Some(10), [300, 400])));
        // No wait would make it fit.
        assert_eq!(take(1, 600, 601), Err((tokens, None, [300, 601])));
        // No request passed, so nothing was taken.
        assert_eq!(take(0, 600, 300), Ok(()));
    }

    proptest! {
        #[test]
        fn no_more_passes_than_is_allowed_and_who_waits_as_told_passes(
            per_minute in 1_u64..50,
            gaps in proptest::collection::vec(0_u64..20_000, 1..60),
        ) {
            let allowance = allowance(per_minute, 0);
            let mut buckets = Buckets::default();
            let (mut now, mut passed) = (Duration::ZERO, 0_u64);
            for gap in gaps {
                now += Duration::from_millis(gap);
                match buckets.take(allowance, 0, now) {
                    Ok(()) => passed += 1,
                    Err(over) => {
                        now += over.wait.unwrap();
                        prop_assert_eq!(buckets.take(allowance, 0, now), Ok(()));
                        passed += 1;
                    }
                }
                let most = per_minute + u64::try_from(now.as_millis()).unwrap() * per_minute / 60_000;
                prop_assert!(passed <= most, "{} of {}", passed, most);
            }
        }
    }
}
