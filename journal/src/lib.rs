//! Exchange records, redaction, the ring that stores them, and the log of events.
//!
//! Nothing here does I/O or reads a clock: callers pass the time, so that tests need neither a port nor a delay.
//!
//! ```text
//! exchange ──▶ redact ──▶ ring    (newest exchanges, by id) ──▶ lists, pages, one by id
//!                  └────▶ events  (latest events, in order) ──▶ streams that resume
//! ```

pub mod activation;
pub mod events;
pub mod id;
mod patterns;
pub mod personal;
pub mod quota;
pub mod record;
pub mod redact;
pub mod ring;
pub mod scopes;
pub mod tape;
pub mod timestamp;
pub mod trace_id;
