//! JSON as it stands: where every value is in the bytes, and edits that touch nothing else.
//!
//! A [`Document`] is an index over a text, not a copy of it: each value is a span. [`Edits`]
//! replace, rename and remove by span, so unknown fields, key order, white space, escapes and
//! numbers of any size survive. Parsing is strict (RFC 8259, no trailing commas, no comments, no
//! `NaN`): what is not JSON is not edited.
//!
//! The parser does not recurse; [`MAX_DEPTH`] and [`MAX_VALUES`] bound memory and stack.

mod document;
mod edit;
mod parse;
#[cfg(test)]
mod tests;
mod text;

pub use document::{Document, NodeId, Value};
pub use edit::Edits;
pub use parse::Kind;
pub(crate) use text::close_string;
pub use text::{quote, raw_length};

/// Levels of objects and arrays that are parsed; deeper text counts as not JSON.
const MAX_DEPTH: usize = 512;

/// Values of one document that are indexed, 28 bytes each; a text with more counts as not JSON.
const MAX_VALUES: usize = 1 << 20;

/// Why a text cannot be parsed as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON at byte {at}: {what}")]
pub struct NotJson {
    /// Offset of the first byte that does not fit.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl NotJson {
    /// Whether it may be JSON, of more than [`MAX_VALUES`] values.
    pub fn is_too_large(&self) -> bool {
        self.what == TOO_LARGE
    }
}

/// What is wrong with a text of more than [`MAX_VALUES`] values.
const TOO_LARGE: &str = "too many values";
