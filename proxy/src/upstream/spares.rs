//! Connections that were dialled for a CONNECT and never spoken on.
//!
//! An agent may open a tunnel and leave it without a word: a connection made ahead, a check. What
//! was dialled for it is as good as new, so the next CONNECT to the same address takes it instead of
//! dialling. It is kept by address and for seconds only: an upstream that hears nothing closes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

use super::pool::Pool;
use super::transport::Dialled;

/// Spare connections kept per address and worker.
const PER_ADDRESS: usize = 16;

/// Addresses per worker for which there are any.
const ADDRESSES: usize = 256;

/// Sweeps after which one is closed: between a quarter and a half of `idle_timeout`.
const TICKS: u32 = 2;

/// One worker's spare connections.
#[derive(Debug, Default)]
pub(super) struct Spares {
    by_address: RefCell<HashMap<SocketAddr, Vec<Spare>>>,
}

#[derive(Debug)]
struct Spare {
    dialled: Dialled,
    since: u32,
}

impl Spares {
    /// The latest one to the first of `addresses` that has an unused one.
    pub(super) fn take(&self, addresses: &[SocketAddr]) -> Option<Dialled> {
        let mut by_address = self.by_address.borrow_mut();
        if by_address.is_empty() {
            return None;
        }
        addresses.iter().find_map(|address| {
            let spares = by_address.get_mut(address)?;
            std::iter::from_fn(|| spares.pop())
                .map(|spare| spare.dialled)
                .find(Dialled::is_unused)
        })
    }

    /// Keeps one, unless there are enough.
    pub(super) fn keep(&self, dialled: Dialled, tick: u32) {
        let mut by_address = self.by_address.borrow_mut();
        let address = dialled.address();
        if by_address.len() >= ADDRESSES && !by_address.contains_key(&address) {
            return;
        }
        let spares = by_address.entry(address).or_default();
        if spares.len() < PER_ADDRESS {
            let since = tick;
            spares.push(Spare { dialled, since });
        }
    }

    /// Closes those that are too old, or that the upstream has closed or spoken on.
    pub(super) fn sweep(&self, tick: u32) {
        self.by_address.borrow_mut().retain(|_, spares| {
            spares.retain(|spare| {
                tick.wrapping_sub(spare.since) < TICKS && spare.dialled.is_unused()
            });
            !spares.is_empty()
        });
    }

    pub(super) fn clear(&self) {
        self.by_address.borrow_mut().clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_address.borrow().is_empty()
    }
}

/// What a CONNECT dialled and no exchange has used yet. Dropped unused, it is a spare.
pub struct Reserve {
    dialled: Cell<Option<Dialled>>,
    pool: Rc<Pool>,
}

impl Reserve {
    pub(super) fn new(dialled: Option<Dialled>, pool: Rc<Pool>) -> Self {
        Self {
            dialled: Cell::new(dialled),
            pool,
        }
    }

    /// Takes it, if there is one and nobody has.
    pub fn take(&self) -> Option<Dialled> {
        self.dialled.take()
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if let Some(dialled) = self.dialled.take().filter(Dialled::is_unused) {
            self.pool.keep_spare(dialled);
        }
    }
}

impl std::fmt::Debug for Reserve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reserve").finish_non_exhaustive()
    }
}
