//! The one way to lock a mutex.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. What the proxy's mutexes hold is whole between any two statements, so a panic
/// elsewhere is no reason to stop.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
