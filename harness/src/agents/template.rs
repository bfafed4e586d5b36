//! `request_template`: the request to an agent, with placeholders.
//!
//! All placeholders are replaced in one pass, so text in a prompt is never taken for a placeholder. In a JSON
//! template values are escaped, so they cannot end the string that contains them.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::AskError;

/// The placeholder for the prompt.
const PROMPT: &str = "prompt";
/// The placeholder for the conversation's id.
const CONVERSATION: &str = "conversation_id";
/// Most bytes that the values of a prompt may add to a template.
const MOST_FILLED: usize = 4 << 20;

/// Values of placeholders, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values(BTreeMap<String, String>);

impl Values {
    /// The prompt itself and, if `structured`, the values in its lines.
    pub(super) fn of(prompt: &str, conversation: &str, structured: bool) -> Self {
        let mut values = BTreeMap::new();
        if structured {
            for (name, value) in prompt.lines().filter_map(line) {
                values.entry(name).or_insert(value);
            }
        }
        values.insert(CONVERSATION.to_owned(), conversation.to_owned());
        values.insert(PROMPT.to_owned(), prompt.to_owned());
        Self(values)
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.0.get(&key(name)).map(String::as_str)
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.0.keys().map(|name| format!("`{{{name}}}`")).collect();
        names.join(", ")
    }
}

/// Reads `name: value`, `name = value` or `name - value`, with the first separator in this order that occurs.
fn line(text: &str) -> Option<(String, String)> {
    let (name, value) = parts(text)?;
    let name = plain(name);
    (!name.is_empty()).then(|| (name, value.trim().to_owned()))
}

fn parts(line: &str) -> Option<(&str, &str)> {
    let separators = [":", "=", " - "];
    let separator = separators.into_iter().find(|one| line.contains(one))?;
    line.split_once(separator)
}

/// Normalises a placeholder's name: lower case, only letters and digits.
fn key(name: &str) -> String {
    if name.eq_ignore_ascii_case(CONVERSATION) {
        return CONVERSATION.to_owned();
    }
    plain(name)
}

fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    lower
        .chars()
        .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        .collect()
}

/// The content of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RequestPayload {
    /// A JSON document.
    Json(Value),
    /// Anything else.
    Text(String),
}

/// Replaces the placeholders of a template.
pub(super) fn fill(template: &str, values: &Values) -> Result<RequestPayload, AskError> {
    if is_json(template) {
        let text = filled(template, values, escaped, &mut { MOST_FILLED })?;
        if let Ok(document) = serde_json::from_str(&text) {
            return Ok(RequestPayload::Json(document));
        }
    }
    let plain = |value: &str, _| value.to_owned();
    filled(template, values, plain, &mut { MOST_FILLED }).map(RequestPayload::Text)
}

/// Replaces the placeholders of a form template. Values are encoded, so they stay inside their field.
pub(super) fn fill_form(template: &str, values: &Values) -> Result<RequestPayload, AskError> {
    let encoded = |value: &str, _| utf8_percent_encode(value, NON_ALPHANUMERIC).to_string();
    filled(template, values, encoded, &mut { MOST_FILLED }).map(RequestPayload::Text)
}

/// Replaces the placeholders of a query template pair by pair; `None`: it has another form.
pub(super) fn fill_query(
    template: &str,
    values: &Values,
) -> Result<Option<Vec<(String, String)>>, AskError> {
    if !template.contains('=') || is_json(template) {
        return Ok(None);
    }
    let pairs = template.trim().trim_start_matches('?').split('&');
    let mut room = MOST_FILLED;
    let filled = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = filled(value, values, |value, _| value.to_owned(), &mut room)?;
        Ok((name.to_owned(), value))
    });
    filled.collect::<Result<_, _>>().map(Some)
}

/// The placeholders of a template, without duplicates.
pub(crate) fn places(template: &str) -> Vec<&str> {
    let (mut places, mut known) = (Vec::new(), BTreeSet::new());
    emptied(template, |name| {
        if known.insert(key(name)) {
            places.push(name);
        }
    });
    places
}

/// The placeholders that the lines of a prompt define.
pub(crate) fn of_lines<'t>(places: &[&'t str]) -> Vec<&'t str> {
    let whole = [PROMPT, CONVERSATION].map(key);
    let places = places.iter().copied();
    places.filter(|name| !whole.contains(&key(name))).collect()
}

/// The lines of a prompt that define these placeholders: their indexes, names and values.
pub(crate) fn lines_of<'p>(prompt: &'p str, places: &[&str]) -> Vec<(usize, &'p str, &'p str)> {
    let lines = prompt.lines().enumerate().filter_map(|(at, line)| {
        let (name, value) = parts(line)?;
        let is_used = places.iter().any(|place| key(place) == plain(name));
        is_used.then(|| (at, name.trim(), value.trim()))
    });
    lines.collect()
}

/// The first placeholder without a value in the prompt; `None`: all have values.
pub(crate) fn left_over<'p>(places: &[&'p str], prompt: &str, structured: bool) -> Option<&'p str> {
    let values = Values::of(prompt, "", structured);
    let mut places = places.iter().copied();
    places.find(|name| values.find(name).is_none())
}

/// Why a template that looks like JSON is invalid. It looks like JSON if it starts like an object with a quoted
/// name, or like a list of such objects or of strings. `None`: it is valid, or does not look like JSON.
pub(crate) fn no_json(template: &str) -> Option<String> {
    let letters = template.chars().filter(|letter| !letter.is_whitespace());
    let begins: String = letters.take(3).collect();
    let is_meant = ["{\"", "[\"", "[{\""]
        .iter()
        .any(|one| begins.starts_with(one));
    if !is_meant || is_json(template) {
        return None;
    }
    let error = serde_json::from_str::<Value>(&emptied(template, |_| ())).err()?;
    Some(error.to_string())
}

/// Whether it is a JSON object or list, for any values.
fn is_json(template: &str) -> bool {
    let document = serde_json::from_str(&emptied(template, |_| ()));
    matches!(document, Ok(Value::Object(_) | Value::Array(_)))
}

/// A value as JSON, or without quotes inside a JSON string.
fn escaped(value: &str, inside_a_string: bool) -> String {
    let quoted = Value::from(value).to_string();
    if inside_a_string {
        quoted[1..quoted.len() - 1].to_owned()
    } else {
        quoted
    }
}

/// The template with empty placeholders; `seen` is called with each.
fn emptied<'t>(template: &'t str, mut seen: impl FnMut(&'t str)) -> String {
    let empty = put(template, |name, inside_a_string| {
        seen(name);
        Ok::<_, Infallible>(escaped("", inside_a_string))
    });
    let Ok(text) = empty;
    text
}

/// The template with values; their length is taken from `room`.
fn filled(
    template: &str,
    values: &Values,
    write: impl Fn(&str, bool) -> String,
    room: &mut usize,
) -> Result<String, AskError> {
    put(template, |name, inside_a_string| {
        let value = values.find(name).ok_or_else(|| AskError::Placeholder {
            name: name.to_owned(),
            known: values.names(),
        })?;
        let written = write(value, inside_a_string);
        let left = room.checked_sub(written.len());
        *room = left.ok_or_else(too_long)?;
        Ok(written)
    })
}

fn too_long() -> AskError {
    let why = "the prompt fills the template with more than 4 MiB; write fewer placeholders";
    AskError::Request(why.to_owned())
}

/// Replaces each placeholder by the result of `write`.
fn put<'t, E>(
    template: &'t str,
    mut write: impl FnMut(&'t str, bool) -> Result<String, E>,
) -> Result<String, E> {
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
            text.push_str(&write(name, inside_a_string)?);
            rest = &rest[name.len() + 2..];
            continue;
        }
        inside_a_string ^= letter == '"';
        text.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    Ok(text)
}

/// The name of the placeholder at the start of a text: `{name}`.
fn place(text: &str) -> Option<&str> {
    let text = text.strip_prefix('{')?;
    let is_of_a_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let end = text.bytes().position(|b| !is_of_a_name(b))?;
    let (name, rest) = text.split_at(end);
    let begins_with_a_letter = !name.starts_with(|c: char| c.is_ascii_digit());
    (rest.starts_with('}') && !name.is_empty() && begins_with_a_letter).then_some(name)
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
            let expected = RequestPayload::Json(json!({ "message": prompt, "stream": false }));
            assert_eq!(fill(template, &values(prompt)), Ok(expected), "{prompt}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn lines_of_a_prompt_give_values() {
        let prompt =
            "Industry: Fitness tech\nProduct Name = Trainer: the app\nBusiness Model - B2C\n";
        for (template, expected) in [
            (r#"["{industry}"]"#, json!(["Fitness tech"])),
            (r#"["{productName}", "{product_name}"]"#, json!(["Trainer: the app", "Trainer: the app"])),
            (r#"{"a": {"b": "x {BUSINESSMODEL} y"}}"#, json!({ "a": { "b": "x B2C y" } })),
            (r#"{"id": "{conversation_id}", "p": {industry}}"#, json!({ "id": "c1", "p": "Fitness tech" })),
        ] {
            // The colon in the second line is used, because it is the first separator in the list.
            let prompt = prompt.replace(
                "Product Name = Trainer: the app",
                "Product Name: Trainer: the app",
            );
            assert_eq!(
                fill(template, &values(&prompt)),
                Ok(RequestPayload::Json(expected)),
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
        assert_eq!(
            fill("{a}", &values("a: b")),
            Ok(RequestPayload::Text("b".into()))
        );
    }

    #[test]
    fn what_is_no_json_is_sent_as_it_is() {
        assert_eq!(
            fill("ask: {prompt}!", &values("x\"y")),
            Ok(RequestPayload::Text("ask: x\"y!".into()))
        );
        assert_eq!(
            fill("{ {prompt} }", &values("x")),
            Ok(RequestPayload::Text("{ x }".into()))
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
        for (template, prompt, left) in [
            ("{promt}", "x", Some("promt")),
            ("{city} {prompt}", "City: Rome", None),
            (r#"{"a": "\{b}", "c": "{c}"}"#, "x", Some("c")),
        ] {
            assert_eq!(
                left_over(&places(template), prompt, true),
                left,
                "{template}"
            );
        }
    }

    #[test]
    fn a_template_is_filled_with_so_much_and_no_more() {
        let prompt = "a".repeat(400_000);
        let places = |many: usize| format!(r#"{{"m": "{}"}}"#, "{prompt}".repeat(many));
        assert!(fill(&places(10), &values(&prompt)).is_ok());
        for filled in [
            fill(&places(11), &values(&prompt)),
            fill_form(&places(11), &values(&prompt)),
        ] {
            assert!(matches!(filled, Err(AskError::Request(_))), "too long");
        }
        let query = ["q={prompt}"; 11].join("&");
        assert!(fill_query(&query, &values(&prompt)).is_err());
    }

    #[test]
    fn a_place_is_looked_for_once_however_it_is_spelt() {
        let spelt = "{prompt}{PROMPT}{prompt_}{city}{conversation_id}{conversationid}";
        let expected = ["prompt", "city", "conversation_id", "conversationid"];
        assert_eq!(places(spelt), expected);
        assert_eq!(places(&"{".repeat(100_000)), [""; 0]);
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
            prop_assert_eq!(filled, Ok(RequestPayload::Json(json!({ "m": format!("<{prompt}>"), "n": 1 }))));
        }
    }
}
