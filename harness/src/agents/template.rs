//! `request_template`: what is sent, with places for the prompt.
//!
//! Everything is put in its place in one pass, so that nothing in a prompt is ever taken for a place.
//! In a JSON template a value is escaped: it stays inside the string it stands in, whatever it is.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::AskError;

/// What stands for the prompt.
const PROMPT: &str = "prompt";

/// Names and what they stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values(BTreeMap<String, String>);

impl Values {
    /// Of a prompt: itself, and with `structured` the values of its lines.
    pub(super) fn of(prompt: &str, conversation: &str, structured: bool) -> Self {
        let mut values = BTreeMap::new();
        if structured {
            for (name, value) in prompt.lines().filter_map(line) {
                values.entry(name).or_insert(value);
            }
        }
        values.insert("conversation_id".to_owned(), conversation.to_owned());
        values.insert(PROMPT.to_owned(), prompt.to_owned());
        Self(values)
    }

    /// As it is written, then in any case, then without what is neither letter nor digit.
    fn find(&self, name: &str) -> Option<&str> {
        let exact = self.0.get(name);
        let any_case = || {
            let mut pairs = self.0.iter();
            let found = pairs.find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value)
        };
        let plain = || self.0.get(&plain(name));
        exact.or_else(any_case).or_else(plain).map(String::as_str)
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.0.keys().map(|name| format!("`{{{name}}}`")).collect();
        names.join(", ")
    }
}

/// `name: value`, `name = value` or `name - value`, by the first separator that occurs.
fn line(text: &str) -> Option<(String, String)> {
    let separators = [":", "=", " - "];
    let separator = separators.into_iter().find(|one| text.contains(one))?;
    let (name, value) = text.split_once(separator)?;
    let name = plain(name);
    (!name.is_empty()).then(|| (name, value.trim().to_owned()))
}

fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    lower
        .chars()
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        .collect()
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Payload {
    /// A JSON document.
    Json(Value),
    /// Anything else.
    Text(String),
}

/// Fills a template.
pub(super) fn fill(template: &str, values: &Values) -> Result<Payload, AskError> {
    if is_json(template) {
        let text = filled(template, values, escaped)?;
        if let Ok(document) = serde_json::from_str(&text) {
            return Ok(Payload::Json(document));
        }
    }
    filled(template, values, |value, _| value.to_owned()).map(Payload::Text)
}

/// Fills the template of a form: what is put into it stays in its own value.
pub(super) fn fill_form(template: &str, values: &Values) -> Result<Payload, AskError> {
    let encoded = |value: &str, _| utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
    filled(template, values, encoded).map(Payload::Text)
}

/// A template of names and values as in a URL, filled pair by pair; `None`: it is none.
pub(super) fn fill_query(
    template: &str,
    values: &Values,
) -> Result<Option<Vec<(String, String)>>, AskError> {
    if !template.contains('=') || is_json(template) {
        return Ok(None);
    }
    let pairs = template.trim().trim_start_matches('?').split('&');
    let filled = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = filled(value, values, |value, _| value.to_owned())?;
        Ok((name.to_owned(), value))
    });
    filled.collect::<Result<_, _>>().map(Some)
}

/// The first place for which a prompt has nothing; `None`: it fills them all.
pub(crate) fn left_over(template: &str, prompt: &str, structured: bool) -> Option<String> {
    let values = Values::of(prompt, "", structured);
    put(template, |name| values.find(name), escaped).err()
}

/// Whether there is a place for anything in a template.
pub(crate) fn has_a_place(template: &str) -> bool {
    put(template, |_| None, escaped).is_err()
}

/// Why a template is no JSON that surely is meant to be: it begins like an object with a name in quotes, or
/// like a list of such or of texts. `None`: it is JSON, or not meant to be.
pub(crate) fn no_json(template: &str) -> Option<String> {
    let letters = template.chars().filter(|letter| !letter.is_whitespace());
    let begins: String = letters.take(3).collect();
    let is_meant = ["{\"", "[\"", "[{\""]
        .iter()
        .any(|one| begins.starts_with(one));
    if !is_meant || is_json(template) {
        return None;
    }
    let any = |_: &str| Some("");
    let text = put(template, any, escaped).ok()?;
    let error = serde_json::from_str::<Value>(&text).err()?;
    Some(error.to_string())
}

/// Whether it is an object or a list of JSON, whatever the values are.
fn is_json(template: &str) -> bool {
    let any = |_: &str| Some("");
    let document = put(template, any, escaped).map(|text| serde_json::from_str(&text));
    matches!(document, Ok(Ok(Value::Object(_) | Value::Array(_))))
}

/// A value as it stands inside a JSON string, or by itself.
fn escaped(value: &str, inside_a_string: bool) -> String {
    let quoted = Value::from(value).to_string();
    if inside_a_string {
        quoted[1..quoted.len() - 1].to_owned()
    } else {
        quoted
    }
}

fn filled(
    template: &str,
    values: &Values,
    write: impl Fn(&str, bool) -> String,
) -> Result<String, AskError> {
    put(template, |name| values.find(name), write).map_err(|name| AskError::Placeholder {
        name,
        known: values.names(),
    })
}

/// Puts values in their places. The error is the name of a place that has none.
fn put<'v>(
    template: &str,
    find: impl Fn(&str) -> Option<&'v str>,
    write: impl Fn(&str, bool) -> String,
) -> Result<String, String> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    let mut inside_a_string = false;
    while let Some(letter) = rest.chars().next() {
        if letter == '\\' && inside_a_string {
            let end = rest
                .char_indices()
                .nth(2)
                .map_or(rest.len(), |(end, _)| end);
            text.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        if let Some(name) = place(rest) {
            let value = find(name).ok_or_else(|| name.to_owned())?;
            text.push_str(&write(value, inside_a_string));
            rest = &rest[name.len() + 2..];
            continue;
        }
        inside_a_string ^= letter == '"';
        text.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    Ok(text)
}

/// The name of the place that a text begins with: `{name}`.
fn place(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    let mut letters = name.bytes();
    let begins = letters
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    (begins && letters.all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values(prompt: &str) -> Values {
        Values::of(prompt, "c1", true)
    }

    #[test]
    fn a_json_template_stays_json_whatever_the_prompt_is() {
        let template = r#"{"message": "{prompt}", "stream": false}"#;
        for prompt in [
            "hello",
            "say \"hi\"\nand \\ bye",
            r#"hi","admin":"true"#,
            "{prompt} {conversation_id} {nothing}",
            "\u{0}\u{1f600}",
        ] {
            let expected = Payload::Json(json!({ "message": prompt, "stream": false }));
            assert_eq!(fill(template, &values(prompt)), Ok(expected), "{prompt}");
        }
    }

    #[test]
    fn lines_of_a_prompt_give_values() {
        let prompt =
            "Industry: Fitness tech\nProduct Name = Trainer: the app\nBusiness Model - B2C\n";
        for (template, expected) in [
            (r#"["{industry}"]"#, json!(["Fitness tech"])),
            (
                r#"["{productName}", "{product_name}"]"#,
                json!(["Trainer: the app", "Trainer: the app"]),
            ),
            (
                r#"{"a": {"b": "x {BUSINESSMODEL} y"}}"#,
                json!({ "a": { "b": "x B2C y" } }),
            ),
            (
                r#"{"id": "{conversation_id}", "p": {industry}}"#,
                json!({ "id": "c1", "p": "Fitness tech" }),
            ),
        ] {
            // The first separator of the list that occurs is taken: the colon, in the second line.
            let prompt = prompt.replace(
                "Product Name = Trainer: the app",
                "Product Name: Trainer: the app",
            );
            assert_eq!(
                fill(template, &values(&prompt)),
                Ok(Payload::Json(expected)),
                "{template}"
            );
        }
    }

    #[test]
    fn a_place_that_is_left_over_is_an_error() {
        let error = fill(r#"{"a": "{nothing}"}"#, &values("x")).expect_err("left over");
        assert_eq!(
            error.to_string(),
            "the template has a placeholder `{nothing}` and the prompt no line `nothing: …`; known \
             are `{conversation_id}`, `{prompt}`"
        );
        let unstructured = Values::of("a: b", "c1", false);
        assert!(fill("{a}", &unstructured).is_err());
        assert_eq!(fill("{a}", &values("a: b")), Ok(Payload::Text("b".into())));
    }

    #[test]
    fn what_is_no_json_is_sent_as_it_is() {
        assert_eq!(
            fill("ask: {prompt}!", &values("x\"y")),
            Ok(Payload::Text("ask: x\"y!".into()))
        );
        assert_eq!(
            fill("{ {prompt} }", &values("x")),
            Ok(Payload::Text("{ x }".into()))
        );
    }

    #[test]
    fn what_is_meant_to_be_json_and_is_not_is_told() {
        for (template, is_told) in [
            (r#"{"q": "{prompt}", }"#, true),
            (r#"{"q": "{prompt}""#, true),
            (r#"{"q": "{prompt}"}"#, false),
            ("{prompt}", false),
            ("[{prompt}] said", false),
            ("ask: {prompt}", false),
        ] {
            assert_eq!(no_json(template).is_some(), is_told, "{template}");
        }
        assert_eq!(left_over("{promt}", "x", true).as_deref(), Some("promt"));
        assert_eq!(left_over("{city} {prompt}", "City: Rome", true), None);
    }

    #[test]
    fn a_query_is_filled_pair_by_pair() {
        let filled = fill_query("q={prompt}&lang=en", &values("a&b=c")).expect("filled");
        let expected = [("q", "a&b=c"), ("lang", "en")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(filled, Some(expected.to_vec()));
        assert_eq!(fill_query("{prompt}", &values("a=b")), Ok(None));
        assert_eq!(fill_query(r#"{"a": "b=c"}"#, &values("x")), Ok(None));
    }

    proptest! {
        #[test]
        fn a_prompt_never_leaves_its_string(prompt in r#"[a-z"\\{}:,\n]{0,40}|\PC{0,20}"#) {
            let filled = fill(r#"{"m": "<{prompt}>", "n": 1}"#, &values(&prompt));
            prop_assert_eq!(filled, Ok(Payload::Json(json!({ "m": format!("<{prompt}>"), "n": 1 }))));
        }
    }
}
