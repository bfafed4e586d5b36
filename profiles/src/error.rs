//! What is wrong with a profile, and where.

use std::fmt;

/// A place in a text: line and column, both from 1; 0 when unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// One thing wrong with a profile: where, what was found, what is allowed, and the nearest valid
/// word where there is one. `Display` gives `file:line:column: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    /// The file as it was named to [`crate::profile::parse`].
    pub file: String,
    /// Where in the file.
    pub position: Position,
    /// JSON pointer to the value, empty when the text could not be read at all.
    pub pointer: String,
    /// What is wrong and what to write instead, without the place.
    pub message: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        if line == 0 {
            write!(f, "{}: {}", self.file, self.message)
        } else {
            write!(f, "{}:{line}:{column}: {}", self.file, self.message)
        }
    }
}

impl std::error::Error for ProfileError {}
