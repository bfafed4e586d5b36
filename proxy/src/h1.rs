//! HTTP/1.1 framing, strictly.
//!
//! hyper's parser is lenient where messages begin and end; an intermediary that guesses there can
//! be made to see another message than the next hop does. So every byte passes a [`guard`] before
//! hyper sees it. The guard runs a sans-I/O tracker ([`framing`]) that finds the end of each head and of
//! each body, and refuses what is ambiguous.
//!
//! ```text
//! socket/TLS ─► guard ─► hyper ─► service
//!                 └── state ────────┘   what was refused, and why
//! ```

pub mod answers;
mod body;
mod error;
pub mod framing;
pub mod guard;
mod head;
mod shapes;

pub use self::error::FramingError;
pub use self::framing::Limits;
pub use self::shapes::Shapes;
