//! Readers for documents: configuration, profiles, suites, replay sessions, bodies of API requests.
//!
//! ```text
//! text ──▶ Tree, every node with its position ──▶ variables expanded ──▶ Reader ──▶ types, or every error
//! ```
//!
//! A map is read field by field ([`Fields`]): the fields that a read function reads are the allowed ones.
//! [`describe`] runs the same function without a document and returns the JSON Schema. A read function must
//! therefore read all of its fields before it returns.

pub mod duration;
mod error;
mod limits;
mod named;
mod reader;
mod schema;
mod source;
#[cfg(test)]
mod tests;
mod tree;
mod value;
pub mod variables;

pub use self::error::{DocumentError, Position, allowed, did_you_mean, nearest, words};
pub use self::limits::{DocumentLimits, Limited, OverLimit};
pub use self::reader::DocumentReader;
pub use self::source::SourceText;
pub use self::tree::{At, ScalarKind, Tree, parse};
pub use self::value::{Fields, NodeKind, ValueReader, describe};
pub use self::variables::{Expanded, VariableError, Variables};
