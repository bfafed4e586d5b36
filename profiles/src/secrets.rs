//! Values that must not be kept, logged or shown: what variables stood for in the texts of a profile.
//!
//! A fault carries them out as they are. Whatever is told of it (the journal's parameters and reasons,
//! errors, descriptions) has `REDACTED` in their place, and so have the URLs of exchanges under it.

mod escapes;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
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

    /// Takes them out of a text, however many times it was written as JSON within JSON, and as URLs and forms hold
    /// them: any letter of theirs may stand there as its escape.
    pub fn redact(&self, text: &mut String) {
        self.redact_written(text);
        if self.is_empty() || !text.contains(['\\', '%', '+']) {
            return;
        }
        let mut places = Vec::new();
        for undone in escapes::undone(text)
            .into_iter()
            .chain(escapes::of_urls(text))
        {
            if self.is_one(&undone.text) {
                REDACTED.clone_into(text);
                return;
            }
            places.extend(self.places(&undone.text).map(|place| undone.stood(place)));
        }
        replace(text, places);
    }

    /// Whether a text is nothing but one of them.
    fn is_one(&self, text: &str) -> bool {
        let mut values = self.0.iter().flat_map(|values| values.iter());
        values.any(|value| value == text)
    }

    /// Where those that are found inside longer texts stand.
    fn places(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let values = self.0.iter().flat_map(|values| values.iter());
        let long = values.filter(|value| value.len() >= SHORTEST);
        long.flat_map(move |value| {
            let found = text.match_indices(value.as_str());
            found.map(|(at, found)| at..at + found.len())
        })
    }

    /// Takes them out as they are.
    fn redact_written(&self, text: &mut String) {
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

/// Puts [`REDACTED`] in the place of parts of a text, of those that overlap once.
fn replace(text: &mut String, mut places: Vec<Range<usize>>) {
    places.sort_by_key(|place| place.start);
    let mut apart: Vec<Range<usize>> = Vec::new();
    for place in places {
        match apart.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => apart.push(place),
        }
    }
    for place in apart.into_iter().rev() {
        text.replace_range(place, REDACTED);
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
    fn they_are_found_behind_the_escapes_of_json() {
        let secrets = secrets(&["kéy7", "plain", "a🦀/b", "é1"]);
        for (given, expected) in [
            (r#"{"a":"k\u00e9y7!"}"#, r#"{"a":"REDACTED!"}"#),
            (
                r#"{"a":"k\u00E9y7","b":"kéy7"}"#,
                r#"{"a":"REDACTED","b":"REDACTED"}"#,
            ),
            (r"\u006b\u00E9\u0079\u0037", "REDACTED"),
            (r"\u0070\u006Cain", "REDACTED"),
            (r#""{\"x\":\"k\\u00e9y7\"}""#, r#""{\"x\":\"REDACTED\"}""#),
            (r"a\ud83e\uDD80\/b.", "REDACTED."),
            (r"\u00e91", "REDACTED"),
            // So short a one is found only where it is the whole.
            (r"\u00e91 in a text", r"\u00e91 in a text"),
            // No escapes, or of other letters.
            (r"k\u00eay7 \u00e \ud83e \x", r"k\u00eay7 \u00e \ud83e \x"),
            (r"C:\new\kéy7", r"C:\new\REDACTED"),
        ] {
            let mut text = given.to_owned();
            secrets.redact(&mut text);
            assert_eq!(text, expected, "{given}");
        }
    }

    #[test]
    fn they_are_found_percent_encoded() {
        let secrets = secrets(&["Tr0ub/3+x=", "kéy 7", "plain"]);
        for (given, expected) in [
            ("/a?pin=Tr0ub%2F3%2Bx%3D&b=1", "/a?pin=REDACTED&b=1"),
            ("/a?pin=Tr0ub%2f3%2bx=", "/a?pin=REDACTED"),
            ("/a?pin=Tr0ub/3%2Bx%3D", "/a?pin=REDACTED"),
            ("k%C3%A9y%207", "REDACTED"),
            ("x=k%C3%A9y+7&y=1+1", "x=REDACTED&y=1+1"),
            ("x=kéy+7", "x=REDACTED"),
            ("%70lain", "REDACTED"),
            ("100 % pure, %C3 %zz %", "100 % pure, %C3 %zz %"),
            ("%C3%28 and %FF%41", "%C3%28 and %FF%41"),
        ] {
            let mut text = given.to_owned();
            secrets.redact(&mut text);
            assert_eq!(text, expected, "{given}");
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
