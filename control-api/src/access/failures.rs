//! Limits how often an address may fail to authenticate.
//!
//! Valid tokens are admitted before this check, so that other clients at the same address cannot block them. The
//! other clients get a short rejection. The table of addresses is bounded.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures that an address may have at once, after a pause.
pub const FAILURES_AT_ONCE: u32 = 20;

/// Time until one failure expires: one a second in the long run.
const EACH: Duration = Duration::from_secs(1);

/// Most addresses in the table.
const MOST: usize = 4096;

/// Recent failures by address.
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// When the last failure of each address expires.
    paid_until: Mutex<HashMap<IpAddr, Instant>>,
}

impl Failures {
    /// Counts a failure of an address, or returns how long it must wait.
    pub(super) fn step(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let address = network(address);
        let mut all = self
            .paid_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let begins = all.get(&address).map_or(now, |paid| (*paid).max(now));
        let ahead = begins.duration_since(now) + EACH;
        if let Some(wait) = ahead.checked_sub(EACH * FAILURES_AT_ONCE)
            && !wait.is_zero()
        {
            return Err(wait);
        }
        if all.len() >= MOST && !all.contains_key(&address) {
            make_room(&mut all, now);
        }
        all.insert(address, begins + EACH);
        Ok(())
    }
}

/// Removes expired addresses; if there are none, the one with the shortest wait.
fn make_room(all: &mut HashMap<IpAddr, Instant>, now: Instant) {
    all.retain(|_, paid| *paid > now);
    if all.len() >= MOST {
        let least = all.iter().min_by_key(|(_, paid)| **paid);
        if let Some(address) = least.map(|(address, _)| *address) {
            all.remove(&address);
        }
    }
}

/// One IPv6 subscriber has 2^64 addresses: they count as one. An IPv4 address counts as one in either notation.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_fails_so_often_at_once_and_then_once_a_second() {
        let (failures, start) = (Failures::default(), Instant::now());
        let through = |from: &str, now: Instant| {
            let tried = (0..100).filter(|_| failures.step(address(from), now).is_ok());
            tried.count()
        };
        assert_eq!(through("192.0.2.1", start), 20);
        assert_eq!(through("::ffff:192.0.2.1", start), 0, "the same");
        assert_eq!(through("192.0.2.2", start), 20, "another");
        assert_eq!(failures.step(address("192.0.2.1"), start), Err(EACH));
        assert_eq!(through("192.0.2.1", start + EACH), 1);
        assert_eq!(through("192.0.2.1", start + 100 * EACH), 20);
        assert_eq!(through("2001:db8::1", start), 20);
        assert_eq!(through("2001:db8::2", start), 0, "of the same network");
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_worst() {
        let (failures, start) = (Failures::default(), Instant::now());
        let worst = address("192.0.2.1");
        while failures.step(worst, start).is_ok() {}
        for number in 0..3 * u32::try_from(MOST).expect("small") {
            let other = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
            failures.step(other, start).expect("its first");
        }
        assert_eq!(failures.paid_until.lock().expect("whole").len(), MOST);
        assert!(failures.step(worst, start).is_err(), "it is not forgotten");
    }
}
