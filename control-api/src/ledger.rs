//! Entries of the audit log and their hash chain, shared by the [audit log](crate::audit) and the
//! [store](crate::store). Nothing here does I/O.

pub mod chain;
mod entry;

pub use self::entry::{AuditEntry, AuditOutcome};
