//! The audit log: who changed what, when, from where, as a chain in the store.
//!
//! Every entry holds the hash of the one before ([`chain`]), so an entry that is edited, taken out or
//! moved is found. What a call changes in the store and its entry are written in one transaction; the
//! entry of any other call is written before the call is answered.
//!
//! ```text
//! call ─▶ guard ─▶ route ─▶ store: change and entry in one transaction
//!           └─────────────▶ log: an entry for what the route wrote none of ─▶ store
//! ttl, halt, reload, start, stop ─▶ log: waits its turn ──────────────────────┘
//! ```

mod call;
mod denied;
mod log;

/// Names that no token can have: who stands for what happens by itself, and for whoever has none.
pub const RESERVED: [&str; 2] = ["squall", "-"];

pub(crate) use self::call::{Call, Repeated};
pub use self::log::{AuditLog, Digests};
pub use crate::ledger::{Draft, Entry, Outcome, chain};
