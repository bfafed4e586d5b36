//! JSON as it stands: where every value is in the bytes, and edits that touch nothing else.
//!
//! A [`Document`] is an index over a text, not a copy of it: each value is a span. [`Edits`]
//! replace, rename and remove by span, so unknown fields, key order, white space, escapes and
//! numbers of any size survive. Reading is strict (RFC 8259, no trailing commas, no comments, no
//! `NaN`): what is not JSON is not edited.
//!
//! Nothing here recurses, so depth costs memory, never the stack; [`MAX_DEPTH`] and [`MAX_VALUES`]
//! bound the memory.

mod document;
mod edit;
mod parse;
#[cfg(test)]
mod tests;
mod text;

pub use document::{Document, Items, Kind, Members, NodeId, Value};
pub use edit::Edits;
use std::ops::Range;
pub use text::{close_string, quote, raw_length};

/// Levels of objects and arrays that are read; deeper text counts as not JSON.
pub const MAX_DEPTH: usize = 512;

/// Values of one document that are indexed, 24 bytes each; a text with more counts as not JSON.
pub const MAX_VALUES: usize = 1 << 20;

/// Why a text is not read as JSON.
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

/// One member of an object, as spans of the body it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The key, quotes included.
    pub key: Range<usize>,
    /// The value.
    pub value: Range<usize>,
    /// What to take out so that the object stays valid without this member: the member and one
    /// comma, if it has one. Good for one member of an object; to take out several, use [`Edits`].
    pub whole: Range<usize>,
    /// Objects and arrays around it, at least 1.
    pub depth: usize,
}

/// Every object member of `body`, in the order of the text, at any depth.
pub fn members(body: &[u8]) -> Result<Vec<Member>, NotJson> {
    let document = Document::parse(body)?;
    Ok(document.all_members())
}
