//! JSON texts as trees. Each value takes about 300 bytes, so the number of values is limited.

use serde_json::Value;
use squall_dialects::json::Document;

/// Most values of a text.
const MOST_VALUES: usize = 100_000;

/// Most nested levels of objects and lists.
const DEEPEST: usize = 127;

/// A JSON text as a tree.
#[derive(Debug, Clone)]
pub struct JsonTree {
    /// The root value.
    pub value: Value,
    /// Number of values in it.
    pub values: usize,
}

/// Why a text was not parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// It is not JSON.
    #[error("no JSON: {0}")]
    NotJson(String),
    /// It has too many values.
    #[error("JSON of more than {MOST_VALUES} values, which is the most that is read")]
    TooLarge,
    /// It is nested too deeply.
    #[error("JSON nested deeper than {DEEPEST} levels, which is the most that is read")]
    TooDeep,
}

/// Parses a whole text.
pub fn read(text: &[u8]) -> Result<JsonTree, NotRead> {
    // Counted first, within the limit: an index of more values would take more than the tree.
    let values = match Document::parse_up_to(text, MOST_VALUES) {
        Ok(document) => document.values(),
        Err(error) if error.is_too_large() => return Err(NotRead::TooLarge),
        // In words of the other reader.
        Err(_) => 0,
    };
    match serde_json::from_slice(text) {
        Ok(value) => Ok(JsonTree { value, values }),
        Err(error) => Err(match error.to_string() {
            why if why.starts_with("recursion limit exceeded") => NotRead::TooDeep,
            why => NotRead::NotJson(why),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_up_to_so_many_values_and_levels() {
        let list = |values: usize| format!("[{}]", vec!["1"; values - 1].join(","));
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        for (text, expected) in [
            (list(MOST_VALUES), Ok(MOST_VALUES)),
            (list(MOST_VALUES + 1), Err(NotRead::TooLarge)),
            (list(3 << 20), Err(NotRead::TooLarge)),
            (nested(DEEPEST), Ok(DEEPEST)),
            (nested(DEEPEST + 1), Err(NotRead::TooDeep)),
            (nested(1_000), Err(NotRead::TooDeep)),
        ] {
            let read = read(text.as_bytes()).map(|tree| tree.values);
            assert_eq!(read, expected, "{text:.20}");
        }
        assert!(matches!(read(b"[1,]"), Err(NotRead::NotJson(_))));
    }
}
