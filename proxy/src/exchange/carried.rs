//! The scope whose traffic a connection carries, so that the connection closes with the scope's
//! activation.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::chaos::ScopeChaos;

/// The activation of a connection's latest exchange; `None` if its end does not close connections.
#[derive(Default)]
pub(crate) struct CarriedScope(RefCell<Option<CarriedActivation>>);

struct CarriedActivation {
    chaos: Arc<ScopeChaos>,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl CarriedScope {
    /// An exchange under `chaos` uses the connection.
    pub(crate) fn set(&self, chaos: &Arc<ScopeChaos>) {
        let is_known = |known: &CarriedActivation| Arc::ptr_eq(&known.chaos, chaos);
        if !self.0.borrow().as_ref().is_some_and(is_known) {
            self.wait_for(chaos.connections_over(), chaos);
        }
    }

    /// Whether the connection closes after its current exchanges, and [`Self::poll_over`] has not
    /// reported it yet.
    pub(crate) fn is_over(&self) -> bool {
        let carried = self.0.borrow();
        let over = carried
            .as_ref()
            .and_then(|under| under.chaos.connections_over());
        over.is_some_and(CancellationToken::is_cancelled)
    }

    /// A tunnel was opened under `chaos`; it may be idle before its first exchange.
    pub(crate) fn tunnels(&self, chaos: &Arc<ScopeChaos>) {
        self.wait_for(chaos.tunnel_over(), chaos);
    }

    fn wait_for(&self, over: Option<&CancellationToken>, chaos: &Arc<ScopeChaos>) {
        *self.0.borrow_mut() = over.map(|over| CarriedActivation {
            chaos: Arc::clone(chaos),
            over: Box::pin(over.clone().cancelled_owned()),
        });
    }

    /// Ready, once, when the connection must close: immediately if idle, otherwise after its
    /// exchanges.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut carried = self.0.borrow_mut();
        let Some(under) = carried.as_mut() else {
            return Poll::Pending;
        };
        ready!(under.over.as_mut().poll(cx));
        *carried = None;
        Poll::Ready(())
    }
}
