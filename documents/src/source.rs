//! The text of a document: one file, or several concatenated files.

use std::sync::Arc;

use crate::error::{DocumentError, Position};

/// The source of a document. Line numbers continue from file to file.
#[derive(Debug, Clone)]
pub struct SourceText {
    text: String,
    /// The first line and the name of each file.
    files: Vec<(u32, Arc<str>)>,
}

impl SourceText {
    /// A source with one file.
    pub fn new(file: &str, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            files: vec![(1, file.into())],
        }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Appends a file; returns the number of lines before it.
    pub fn add(&mut self, file: &str, text: &str) -> u32 {
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let before = self.text.bytes().filter(|byte| *byte == b'\n').count();
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        self.files.push((before.saturating_add(1), file.into()));
        // An empty file has a line too, so that its errors are not those of the next file.
        self.text
            .push_str(if text.is_empty() { "\n" } else { text });
        before
    }

    /// The file that contains a position, and the position in that file.
    pub fn place(&self, position: Position) -> (&Arc<str>, Position) {
        let begins_before = |(first, _): &&(u32, Arc<str>)| *first <= position.line;
        let (first, file) = self
            .files
            .iter()
            .rev()
            .find(begins_before)
            .unwrap_or(&self.files[0]);
        let line = position.line.saturating_sub(first.saturating_sub(1));
        (file, Position { line, ..position })
    }

    /// The error with the name of its file and the position in that file.
    #[must_use]
    pub fn placed(&self, error: DocumentError) -> DocumentError {
        let (file, position) = self.place(error.position);
        DocumentError {
            file: file.to_string(),
            position,
            ..error
        }
    }

    /// The text at a position, up to the end of the value or the line, at most 40 characters.
    pub(crate) fn found_at(&self, position: Position) -> String {
        found_at(&self.text, position)
    }
}

/// The text at a position, up to the end of the value or the line.
pub(crate) fn found_at(text: &str, position: Position) -> String {
    let line = text
        .lines()
        .nth(position.line.saturating_sub(1) as usize)
        .unwrap_or_default();
    let rest: String = line
        .chars()
        .skip(position.column.saturating_sub(1) as usize)
        .collect();
    let end = quoted(&rest).unwrap_or_else(|| plain(&rest));
    let found = rest[..end].trim();
    match found.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &found[..end]),
        None => found.to_owned(),
    }
}

/// The end of a quoted scalar, after the closing quote.
fn quoted(text: &str) -> Option<usize> {
    let mut letters = text.chars();
    let quote = letters.next().filter(|first| ['"', '\''].contains(first))?;
    let mut ends = text.match_indices(quote).skip(1);
    let end = ends.find(|(at, _)| !text[..*at].ends_with('\\'));
    end.map(|(at, _)| at + 1)
}

/// The end of any other value, as far as one line shows.
fn plain(text: &str) -> usize {
    let mut depth = 0;
    let end = text.char_indices().find_map(|(at, letter)| match letter {
        '[' | '{' => {
            depth += 1;
            None
        }
        ']' | '}' if depth > 1 => {
            depth -= 1;
            None
        }
        ']' | '}' if depth == 1 => Some(at + 1),
        ',' | ']' | '}' | '#' if depth == 0 => Some(at),
        _ => None,
    });
    end.unwrap_or(text.len())
}
