//! The neutral view of a model call that faults are written against.

use std::time::Duration;

/// An error as a provider's model endpoint reports it, before it is put into a dialect's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelError {
    /// Too many requests or tokens (429); the wait to announce.
    RateLimit {
        /// What `Retry-After` says; `None` leaves the header out.
        retry_after: Option<Duration>,
    },
    /// The provider failed (500 unless another 5xx is named).
    ServerError {
        /// Status, 500 to 599.
        status: u16,
    },
    /// The provider has no capacity (503, 529 …).
    Overloaded,
}
