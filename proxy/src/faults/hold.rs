//! Waits that faults impose.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::Ledger;
use crate::timer;

/// Waits for `duration` on behalf of a fault; zero does nothing.
pub(crate) async fn hold(duration: Duration, ledger: &Rc<dyn Ledger>) {
    if !duration.is_zero() {
        hold_until(Instant::now() + duration, ledger).await;
    }
}

/// Waits until `deadline` on behalf of a fault.
///
/// The time is reported, also when the wait is abandoned because the agent left.
pub(crate) async fn hold_until(deadline: Instant, ledger: &Rc<dyn Ledger>) {
    let _held = HoldTimer {
        since: Instant::now(),
        ledger,
    };
    timer::sleep_until(deadline).await;
}

struct HoldTimer<'a> {
    since: Instant,
    ledger: &'a Rc<dyn Ledger>,
}

impl Drop for HoldTimer<'_> {
    fn drop(&mut self) {
        self.ledger.delayed(self.since.elapsed());
    }
}
