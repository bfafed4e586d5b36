//! `valid_json`: the whole answer is a JSON document.

use serde::de::{Deserialize, IgnoredAny};
use serde_json::Value;
use serde_json::de::Deserializer;

use super::words::quoted;
use super::{Check, Kind, Subject, Verdict};

/// Blanks around it are allowed; prose, fences and several documents are not.
pub(super) const VALID_JSON: Kind = Kind::answer("valid_json", |_| Some(Box::new(ValidJson)));

#[derive(Debug)]
struct ValidJson;

impl Check for ValidJson {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let text = subject.answer.text.trim();
        let mut reader = Deserializer::from_str(text);
        let read = IgnoredAny::deserialize(&mut reader).and_then(|_| reader.end());
        match read {
            Ok(()) => Verdict::Holds("the answer is JSON".to_owned()),
            Err(error) => Verdict::Fails(not_json(text, &error)),
        }
    }
}

/// The answer as JSON, or why it is none.
pub(super) fn document(text: &str) -> Result<Value, String> {
    let text = text.trim();
    serde_json::from_str(text).map_err(|error| not_json(text, &error))
}

fn not_json(text: &str, error: &serde_json::Error) -> String {
    if text.is_empty() {
        return "the answer is empty, and so no JSON".to_owned();
    }
    format!("the answer is no JSON: {error}; it begins {}", quoted(text))
}

#[cfg(test)]
mod tests {
    use crate::invariants::testing::{Outcome::*, judged};

    #[test]
    fn only_a_whole_document_is_json() {
        for (answer, expected) in [
            (r#" {"a": [1, null]} "#, Holds),
            ("3", Holds),
            (r#""text""#, Holds),
            ("", Fails),
            (r#"{"a": NaN}"#, Fails),
            (r#"{"a": 1} {"b": 2}"#, Fails),
            ("```json\n{}\n```", Fails),
            (r#"{"a": 1,}"#, Fails),
        ] {
            assert_eq!(judged("{type: valid_json}", answer), expected, "{answer}");
        }
    }
}
