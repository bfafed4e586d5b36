//! `valid_json`: the whole answer is a JSON document.

use serde_json::Value;
use squall_profiles::json_tree::{self, NotRead};

use super::words::quoted;
use super::{Check, InvariantKind, Verdict};

/// White space around it is allowed; other text, code fences and several documents are not.
pub(super) const VALID_JSON: InvariantKind = InvariantKind::answer("valid_json", |_| {
    Some(Check::new(|subject| match document(&subject.answer.text) {
        Ok(_) => Verdict::holds("the answer is JSON"),
        Err(verdict) => verdict,
    }))
});

/// The answer as JSON, or the verdict if it is invalid or not read.
pub(super) fn document(text: &str) -> Result<Value, Verdict> {
    let text = text.trim();
    if text.is_empty() {
        let why = "the answer is empty, and so no JSON";
        return Err(Verdict::fails(why));
    }
    match json_tree::read(text.as_bytes()) {
        Ok(tree) => Ok(tree.value),
        Err(why @ NotRead::NotJson(_)) => {
            let begins = quoted(text);
            Err(Verdict::fails(format!(
                "the answer is {why}; it begins {begins}"
            )))
        }
        Err(why @ (NotRead::TooLarge | NotRead::TooDeep)) => {
            Err(Verdict::error(format!("the answer is {why}")))
        }
    }
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

    #[test]
    fn json_types_read_as_deep_as_each_other() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        for written in [
            "{type: valid_json}",
            "{type: json_schema, schema: {type: array}}",
        ] {
            for (levels, expected) in [(127, Holds), (128, Errs), (200, Errs)] {
                assert_eq!(
                    judged(written, &nested(levels)),
                    expected,
                    "{written}: {levels}"
                );
            }
        }
    }
}
