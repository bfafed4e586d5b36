//! Values that must not be kept, logged or shown: what variables stood for in the texts of a profile.
//!
//! A fault carries them out as they are. Whatever is told of it (the journal's parameters and reasons,
//! errors, descriptions) has `REDACTED` in their place, and so have the URLs of exchanges under it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// What stands where a value was.
const REDACTED: &str = "REDACTED";

/// Shortest value, in bytes, that is found inside longer texts. A shorter one stands in half of all
/// words; it is replaced only where it is the whole text.
const SHORTEST: usize = 4;

/// A set of such values; most profiles have none. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<Vec<String>>>);

impl Secrets {
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = BTreeSet::new();
        for value in values.into_iter().filter(|value| !value.is_empty()) {
            // Made-up bodies are told as texts with JSON in them.
            let quoted = Value::from(value).to_string();
            all.insert(quoted[1..quoted.len() - 1].to_owned());
            all.insert(value.to_owned());
        }
        let mut values: Vec<_> = all.into_iter().collect();
        // Of two that begin alike the longer one goes first, so that nothing of it is left.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self((!values.is_empty()).then(|| Arc::new(values)))
    }

    /// All values of several sets.
    pub(crate) fn union<'a>(sets: impl Iterator<Item = &'a Self>) -> Self {
        let mut held: Vec<&Arc<Vec<String>>> = Vec::new();
        for values in sets.filter_map(|set| set.0.as_ref()) {
            if !held.iter().any(|other| Arc::ptr_eq(other, values)) {
                held.push(values);
            }
        }
        match held.as_slice() {
            [] => Self::default(),
            [only] => Self(Some((*only).clone())),
            several => Self::new(
                several
                    .iter()
                    .flat_map(|set| set.iter().map(String::as_str)),
            ),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Takes them out of a text.
    pub fn redact(&self, text: &mut String) {
        for value in self.0.iter().flat_map(|values| values.iter()) {
            if text == value {
                REDACTED.clone_into(text);
            } else if value.len() >= SHORTEST && text.contains(value.as_str()) {
                *text = text.replace(value.as_str(), REDACTED);
            }
        }
    }

    /// Takes them out of a URL's path and query. Its host stays: a name that is looked up in clear is
    /// no secret, and exchanges are found by it.
    pub fn redact_url(&self, url: &mut String) {
        if self.is_empty() {
            return;
        }
        let authority = url.find("://").map_or(0, |at| at + 3);
        if let Some(at) = url[authority..].find(['/', '?', '#']) {
            let mut rest = url.split_off(authority + at);
            self.redact(&mut rest);
            url.push_str(&rest);
        }
    }

    /// Takes them out of every text of a document.
    pub fn redact_document(&self, document: &mut Value) {
        if self.is_empty() {
            return;
        }
        match document {
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_document(item)),
            Value::Object(members) => {
                for (mut name, mut member) in std::mem::take(members) {
                    self.redact(&mut name);
                    self.redact_document(&mut member);
                    members.insert(name, member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map_or(0, |values| values.len());
        write!(f, "Secrets({count})")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        Secrets::new(values.iter().copied())
    }

    #[test]
    fn values_are_taken_out_and_nothing_of_a_longer_one_is_left() {
        let secrets = secrets(&["", "42", "hunter2", "hunter2-and-more", "say \"hi\""]);
        for (given, expected) in [
            ("say hunter2!", "say REDACTED!"),
            ("hunter2-and-more", "REDACTED"),
            ("42", "REDACTED"),
            ("1425", "1425"),
            (r#"{"a":"say \"hi\"!"}"#, r#"{"a":"REDACTED!"}"#),
            ("nothing", "nothing"),
        ] {
            let mut text = given.to_owned();
            secrets.redact(&mut text);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_host_stays_in_a_url() {
        let secrets = secrets(&["api.example", "t0ken"]);
        for (given, expected) in [
            (
                "https://api.example/hooks/t0ken?to=api.example",
                "https://api.example/hooks/REDACTED?to=REDACTED",
            ),
            ("https://api.example", "https://api.example"),
            ("api.example:443", "api.example:443"),
        ] {
            let mut url = given.to_owned();
            secrets.redact_url(&mut url);
            assert_eq!(url, expected);
        }
    }

    #[test]
    fn every_text_of_a_document_is_looked_at() {
        let mut document = json!({ "t0ken": ["a t0ken", 1, { "x": "t0ken" }] });
        secrets(&["t0ken"]).redact_document(&mut document);
        let expected = json!({ "REDACTED": ["a REDACTED", 1, { "x": "REDACTED" }] });
        assert_eq!(document, expected);
    }

    #[test]
    fn they_are_not_shown_when_something_is_printed() {
        assert_eq!(format!("{:?}", secrets(&["t0ken"])), "Secrets(1)");
    }
}
