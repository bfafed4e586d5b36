//! Whose traffic a connection carries, so that it ends with what was in force for it.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::chaos::{Over, ScopeChaos};

/// What is in force for the named scope of a connection's latest exchange; nothing when that was in
/// the default scope.
#[derive(Default)]
pub(crate) struct Carried(RefCell<Option<(Arc<ScopeChaos>, Over)>>);

impl Carried {
    /// An exchange under `chaos` comes over the connection.
    pub(crate) fn set(&self, chaos: &Arc<ScopeChaos>) {
        let mut carried = self.0.borrow_mut();
        let is_known = |(known, _): &(Arc<ScopeChaos>, Over)| Arc::ptr_eq(known, chaos);
        if !carried.as_ref().is_some_and(is_known) {
            *carried = chaos
                .connections_over()
                .map(|over| (Arc::clone(chaos), over));
        }
    }

    /// Ready, once, when a new activation was put on the scope: an idle connection is to close then,
    /// a busy one once its exchanges have.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut carried = self.0.borrow_mut();
        let Some((_, over)) = carried.as_mut() else {
            return Poll::Pending;
        };
        ready!(over.as_mut().poll(cx));
        *carried = None;
        Poll::Ready(())
    }
}
