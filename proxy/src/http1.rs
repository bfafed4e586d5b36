//! HTTP/1.1 on the agent's side and the framing of both sides, strictly.
//!
//! hyper's parser is lenient where messages begin and end. An intermediary that guesses there can
//! be made to see another message than the next hop does. So every byte passes a [`guard`] before
//! hyper sees it. The guard runs a sans-I/O tracker ([`framing`]) that finds the end of each head and of
//! each body, and rejects what is ambiguous.
//!
//! ```text
//! hyper ── guard ── TLS ── Rewind ── Socket
//!            │                         │
//!  service ──┴─ RequestState        Control
//! ```

pub mod answers;
mod body;
mod casing;
mod error;
pub mod framing;
pub(crate) mod guard;
mod head;
mod rewind;
pub mod sniff;
mod socket;

pub use self::casing::CasingCache;
pub use self::error::FramingError;
pub use self::framing::HeadLimits;
pub(crate) use self::rewind::Rewind;
pub(crate) use self::socket::{Control, Socket, Waits};
