//! The one clock that every process of a run reads alike.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the system's monotonic clock, comparable across processes.
pub fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
