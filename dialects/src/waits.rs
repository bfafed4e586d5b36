//! Waits as whole numbers, which never promise too little.

use std::time::Duration;

/// A wait in seconds, rounded up.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs()
        .saturating_add(u64::from(wait.subsec_nanos() > 0))
}

/// A wait in milliseconds, rounded up.
pub(crate) fn whole_millis(wait: Duration) -> u128 {
    wait.as_nanos().div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_shorter_than_it_is() {
        for (nanos, seconds, millis) in [
            (0, 0, 0),
            (1, 1, 1),
            (500_000_000, 1, 500),
            (1_425_600_000, 2, 1426),
            (2_000_000_000, 2, 2000),
        ] {
            let wait = Duration::from_nanos(nanos);
            assert_eq!((whole_seconds(wait), whole_millis(wait)), (seconds, millis));
        }
    }
}
