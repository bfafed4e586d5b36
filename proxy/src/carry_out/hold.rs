//! Waits that faults impose.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use crate::broken::Ledger;
use crate::timer;

/// Waits for `duration` on behalf of a fault; zero does nothing.
///
/// What was waited is reported, also when the wait is abandoned because the agent left.
pub async fn hold(duration: Duration, ledger: &Rc<dyn Ledger>) {
    if !duration.is_zero() {
        Hold::lasting(duration, ledger).await;
    }
}

/// A wait inside a body.
pub(crate) struct Hold {
    sleep: Pin<Box<dyn Future<Output = ()>>>,
    began: Instant,
    ledger: Rc<dyn Ledger>,
}

impl Hold {
    pub(crate) fn lasting(duration: Duration, ledger: &Rc<dyn Ledger>) -> Self {
        Self::until(Instant::now() + duration, ledger)
    }

    pub(crate) fn until(deadline: Instant, ledger: &Rc<dyn Ledger>) -> Self {
        Self {
            sleep: Box::pin(timer::sleep_until(deadline)),
            began: Instant::now(),
            ledger: Rc::clone(ledger),
        }
    }
}

impl Future for Hold {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(cx)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.ledger.delayed(self.began.elapsed());
    }
}
