//! Delays that faults inject.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::Ledger;
use crate::timer;

/// Waits for `duration` as a fault's effect; zero does nothing.
pub(crate) async fn hold(duration: Duration, ledger: &Rc<dyn Ledger>) {
    if !duration.is_zero() {
        hold_until(Instant::now() + duration, ledger).await;
    }
}

/// Waits until `deadline` as a fault's effect.
///
/// The time is reported even if the agent leaves and the wait is abandoned.
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
