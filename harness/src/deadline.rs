//! The deadline of the verdict that a thread computes.

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets the deadline of the verdict that this thread computes.
pub(crate) fn set(deadline: Instant) {
    DEADLINE.set(Some(deadline));
}

/// Whether the verdict is past its deadline, so that its result is not used.
pub(crate) fn is_late() -> bool {
    DEADLINE
        .get()
        .is_some_and(|deadline| Instant::now() > deadline)
}
