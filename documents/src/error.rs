//! Errors in documents, with positions.

use std::fmt;

/// A place in a text: line and column, both from 1; 0 when unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// One error in a document: its position, the value found, the allowed values, and the nearest valid word if there
/// is one. `Display` gives `file:line:column: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError {
    /// The file name that was passed to the reader; empty if there is no file.
    pub file: String,
    /// Where in the file.
    pub position: Position,
    /// JSON pointer (RFC 6901) to the value; empty if the text could not be parsed.
    pub pointer: String,
    /// The error and its correction, without the position.
    pub message: String,
}

impl DocumentError {
    /// An error that concerns a whole file, or no file.
    pub fn whole(file: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            position: Position::default(),
            pointer: String::new(),
            message: message.into(),
        }
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        match (self.file.as_str(), line) {
            ("", 0) => f.write_str(&self.message),
            (file, 0) => write!(f, "{file}: {}", self.message),
            (file, _) => write!(f, "{file}:{line}:{column}: {}", self.message),
        }
    }
}

impl std::error::Error for DocumentError {}

/// Maximum number of errors for one document.
const MOST: usize = 100;
/// Longest message and longest pointer, in bytes.
const LONGEST: usize = 4_000;

/// Adds an error unless the maximum is reached. Shortens messages and pointers that repeat much of the document.
pub(crate) fn note(errors: &mut Vec<DocumentError>, mut error: DocumentError) {
    if is_full(errors) {
        return;
    }
    for text in [&mut error.message, &mut error.pointer] {
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push('…');
        }
    }
    if errors.len() + 1 == MOST {
        error
            .message
            .push_str(" (what else is wrong is not reported)");
    }
    errors.push(error);
}

/// Whether the maximum number of errors is reached.
pub(crate) fn is_full(errors: &[DocumentError]) -> bool {
    errors.len() >= MOST
}

/// The end of a message about an unknown word: the nearest allowed word, and all allowed words.
pub fn allowed<'a>(found: &str, all: impl Iterator<Item = &'a str> + Clone) -> String {
    match did_you_mean(found, all.clone()) {
        hint if hint.is_empty() => format!("; expected one of {}", words(all)),
        hint => format!("{hint} Expected one of {}", words(all)),
    }
}

/// `, did you mean …?` if an allowed word is similar, else an empty text.
pub fn did_you_mean<'a>(found: &str, all: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(found, all);
    near.first()
        .map_or_else(String::new, |word| format!(", did you mean `{word}`?"))
}

/// The similar allowed words, nearest first, at most three.
pub fn nearest<'a>(found: &str, all: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // A longer text is not a mistyped name.
    if found.len() > 200 {
        return Vec::new();
    }
    let found = found.to_lowercase();
    // Two letters may be wrong, or a third of them if that is more. Prefixes and abbreviations of a word are similar
    // too.
    let tolerance = (found.chars().count() / 3).max(2);
    let mut near: Vec<_> = all
        .into_iter()
        .map(|word| {
            (
                if is_begun(&found, word) {
                    1
                } else {
                    strsim::damerau_levenshtein(&found, word)
                },
                word,
            )
        })
        .filter(|(distance, word)| *distance <= tolerance && *distance < word.chars().count())
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().take(3).map(|(_, word)| word).collect()
}

/// Whether `found` is a prefix or an abbreviation of `word`.
fn is_begun(found: &str, word: &str) -> bool {
    let mut letters = word.chars();
    let shortens = found.chars().all(|letter| letters.any(|one| one == letter));
    let first = found
        .char_indices()
        .nth(3)
        .map_or(found.len(), |(at, _)| at);
    found.chars().count() >= 3 && shortens && word.starts_with(&found[..first])
}

/// Words as a list for an error message: `a`, `b`, `c`.
pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_errors_are_reported_and_no_more() {
        let mut errors = Vec::new();
        for _ in 0..MOST + 5 {
            note(&mut errors, DocumentError::whole("f", "ü".repeat(LONGEST)));
        }
        assert_eq!(errors.len(), MOST);
        assert!(errors[0].message.ends_with("ü…"));
        assert!(errors[0].message.len() < LONGEST + 5);
        assert!(errors[MOST - 1].message.ends_with("is not reported)"));
    }

    #[test]
    fn only_a_near_word_is_proposed() {
        for (found, expected) in [
            ("rate_limt", ", did you mean `rate_limit`?"),
            ("Rate_Limit", ", did you mean `rate_limit`?"),
            ("eror", ", did you mean `error`?"),
            ("rate", ", did you mean `rate_limit`?"),
            ("ratel", ", did you mean `rate_limit`?"),
            ("banana", ""),
            ("", ""),
        ] {
            assert_eq!(
                did_you_mean(found, ["rate_limit", "error", "go"]),
                expected,
                "{found}"
            );
        }
    }
}
