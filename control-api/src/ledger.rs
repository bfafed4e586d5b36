//! Entries of the audit log and the chain that they make: what the [audit log](crate::audit) writes and the
//! [store](crate::store) keeps, known to both. Nothing here reads or writes anything.

pub mod chain;
mod entry;

pub use self::entry::{Draft, Entry, Outcome};
