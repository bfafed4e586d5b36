//! JSON with the byte position of every value, and edits that leave the rest of the text unchanged.
//!
//! A [`Document`] is an index over a text, not a copy: each value is a span. [`Edits`] replace, rename and remove
//! spans, so unknown fields, key order, white space, escapes and numbers of any size are kept. Parsing is strict
//! (RFC 8259: no trailing commas, no comments, no `NaN`), and invalid JSON is not edited.
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
pub use parse::JsonKind;
pub(crate) use text::close_string;
pub use text::{quote, raw_length};

/// Deepest nesting of objects and arrays; deeper text is rejected as invalid JSON.
const MAX_DEPTH: usize = 512;

/// Maximum number of values in a document, 28 bytes each; a text with more is rejected as invalid JSON.
const MAX_VALUES: usize = 1 << 20;

/// Why a text cannot be parsed as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON at byte {at}: {what}")]
pub struct NotJson {
    /// Offset of the first invalid byte.
    pub at: usize,
    /// The error at that byte.
    pub what: &'static str,
}

impl NotJson {
    /// Whether the text has more values than its limit, and so may still be valid JSON.
    pub fn is_too_large(&self) -> bool {
        self.what == TOO_LARGE
    }
}

/// The error for a text of too many values.
const TOO_LARGE: &str = "too many values";
