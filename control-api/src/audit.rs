//! The audit log: who changed what, when and from where, as a hash chain in the store.
//!
//! Every entry holds the hash of the previous one ([`chain`]), so that an edited, deleted or moved entry is
//! detected. A change in the store and its entry share a transaction. Any other call is answered after its entry
//! is written.
//!
//! ```text
//! call ─▶ guard ─▶ route ─▶ store: change and entry in one transaction
//!           └─────────────▶ log: the entry, if the route wrote none ─▶ store
//! ttl, halt, reload, start, stop ─▶ log: queued ─────────────────────┘
//! ```

mod call;
mod denied;
mod log;

use serde::Serialize;
use squall_harness::digest::sha256;

/// Actor names that no token can have: Squall itself, and a client without a token.
pub const RESERVED: [&str; 2] = ["squall", "-"];

pub(crate) use self::call::{AuditedCall, Unchanged};
pub use self::log::AuditLog;
pub use crate::ledger::{AuditEntry, AuditOutcome, chain};

/// SHA-256 of a document as JSON, for [`AuditEntry::before`] and [`AuditEntry::after`].
pub(crate) fn digest_of<T: Serialize>(document: &T) -> Option<String> {
    Some(sha256(serde_json::to_vec(document).ok()?))
}
