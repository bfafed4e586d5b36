//! Finds the answer in the response of an HTTP agent.

use serde_json::Value;
use serde_json_path::JsonPath;

use super::AskError;

/// Common names of answer fields, the most likely first.
const NAMES: [&str; 13] = [
    "output", "response", "result", "data", "content", "text", "message", "answer", "reply",
    "queries", "query", "results", "choices",
];

/// Deepest nesting of an answer.
const DEEPEST: usize = 8;

/// The failure that a document reports: a non-empty `error`, or `success: false`.
pub(super) fn reported_failure(document: &Value) -> Option<String> {
    let Value::Object(members) = document else {
        return None;
    };
    for name in ["error", "Error"] {
        let said = match members.get(name) {
            None => continue,
            Some(said) if says_nothing(said) => continue,
            Some(said) => shown(&text_of(said)),
        };
        return Some(format!("the agent answered with `{name}`: {said}"));
    }
    let failed = members.get("success") == Some(&Value::Bool(false));
    failed.then(|| "the agent answered with `success: false`".to_owned())
}

/// Whether the value of `error` means that there was none.
fn says_nothing(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// The beginning of a text, for reasons.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(200).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The answer at a path, or else detected.
pub(super) fn answer(document: &Value, path: Option<&str>) -> Result<String, AskError> {
    match path {
        None => Ok(found(document)),
        Some(path) if path.starts_with('$') => by_json_path(document, path),
        Some(path) => by_dots(document, path),
    }
}

fn by_json_path(document: &Value, path: &str) -> Result<String, AskError> {
    let parsed = JsonPath::parse(path)
        .map_err(|error| not_there(path, &format!("is no JSONPath: {error}"), document))?;
    let nodes = parsed.query(document).all();
    match nodes[..] {
        [] => Err(not_there(path, "leads nowhere", document)),
        [Value::Null] => Err(not_there(path, "leads to `null`", document)),
        [one] => Ok(text_of(one)),
        _ => {
            let texts: Vec<_> = nodes.into_iter().map(text_of).collect();
            Ok(texts.join("\n"))
        }
    }
}

/// Resolves a dot path such as `choices.0.message.content`; `choices[0]` is accepted too.
fn by_dots(document: &Value, path: &str) -> Result<String, AskError> {
    let dotted = path.replace('[', ".").replace(']', "");
    let mut node = document;
    for part in dotted.split('.').filter(|part| !part.is_empty()) {
        let next = match node {
            Value::Object(members) => members.get(part),
            Value::Array(items) => part.parse::<usize>().ok().and_then(|at| items.get(at)),
            _ => None,
        };
        node =
            next.ok_or_else(|| not_there(path, &format!("has no `{part}` to go to"), document))?;
    }
    match node {
        Value::Null => Err(not_there(path, "leads to `null`", document)),
        node => Ok(text_of(node)),
    }
}

fn not_there(path: &str, why: &str, document: &Value) -> AskError {
    AskError::NotThere {
        path: path.to_owned(),
        why: why.to_owned(),
        shape: shape(document, 3),
    }
}

/// The most likely answer in a document.
fn found(document: &Value) -> String {
    let mut node = document;
    for _ in 0..DEEPEST {
        node = match inner(node) {
            Some(inner) => inner,
            None => break,
        };
    }
    text_of(node)
}

fn inner(node: &Value) -> Option<&Value> {
    match node {
        parts if in_parts(parts).is_some() => None,
        Value::Object(members) => {
            let named = |name: &str| {
                let mut all = members.iter();
                let found =
                    all.find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_null());
                found.map(|(_, value)| value)
            };
            let only = || members.values().next().filter(|_| members.len() == 1);
            NAMES.iter().find_map(|name| named(name)).or_else(only)
        }
        Value::Array(items) => match &items[..] {
            [one] => Some(one),
            [first @ Value::Object(_), ..] => Some(first),
            _ => None,
        },
        _ => None,
    }
}

/// The text of a value: a string as it is, parts concatenated, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => in_parts(other).unwrap_or_else(|| other.to_string()),
    }
}

/// A text in parts, as in model messages: `[{"type": "text", "text": …}, …]`.
fn in_parts(value: &Value) -> Option<String> {
    let parts = value.as_array().filter(|parts| !parts.is_empty())?;
    let texts = parts.iter().map(|part| {
        let sort = part.get("type")?.as_str()?;
        let is_text = ["text", "output_text"].contains(&sort);
        part.get("text")?.as_str().filter(|_| is_text)
    });
    texts.collect()
}

/// Whether a dot path leads to `null`, or its last name does not exist.
pub(super) fn is_null(document: &Value, path: Option<&str>) -> bool {
    let Some((parent, name)) = path.and_then(|path| path.rsplit_once('.')) else {
        return false;
    };
    let pointer = format!("/{}", parent.replace('.', "/"));
    let parent = document.pointer(&pointer).and_then(Value::as_object);
    parent.is_some_and(|parent| parent.get(name).is_none_or(Value::is_null))
}

/// The shape of a document without its values, which may be secret and long.
pub(super) fn shape(value: &Value, depth: usize) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a flag".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(_) => "a text".to_owned(),
        Value::Array(items) => match items.first() {
            Some(first) if depth > 0 => format!("[{} × {}]", items.len(), shape(first, depth - 1)),
            _ => format!("[{}]", items.len()),
        },
        Value::Object(_) if depth == 0 => "{…}".to_owned(),
        Value::Object(members) => {
            let told: Vec<_> = members
                .iter()
                .take(12)
                .map(|(name, member)| format!("{name}: {}", shape(member, depth - 1)))
                .collect();
            format!("{{{}}}", told.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_of_path_lead_to_the_answer() {
        let document =
            json!({ "choices": [{ "message": { "content": "hi" } }], "n": 3, "x": null });
        for (path, expected) in [
            ("choices.0.message.content", Ok("hi")),
            ("choices[0].message.content", Ok("hi")),
            ("$.choices[0].message.content", Ok("hi")),
            ("$..content", Ok("hi")),
            ("n", Ok("3")),
            ("choices.0.message", Ok(r#"{"content":"hi"}"#)),
            ("x", Err("leads to `null`")),
            ("choices.1.message", Err("has no `1` to go to")),
            ("$.nope", Err("leads nowhere")),
            ("$.x", Err("leads to `null`")),
        ] {
            match (answer(&document, Some(path)), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{path}"),
                (Err(found), Err(expected)) => {
                    let found = found.to_string();
                    assert!(found.contains(expected), "{path}: {found}");
                    assert!(
                        found.ends_with(
                            "the answer is {choices: [1 × {message: {…}}], n: a number, x: null}"
                        ),
                        "{found}"
                    );
                }
                (found, expected) => panic!("{path}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    #[rustfmt::skip]
    fn an_answer_is_found_without_a_path() {
        for (document, expected) in [
            (json!("hi"), "hi"),
            (json!({ "output": "hi", "text": "no" }), "hi"),
            (json!({ "output": null, "text": "hi" }), "hi"),
            (json!({ "output": null, "id": 1 }), r#"{"output":null,"id":1}"#),
            (json!({ "id": 1, "Response": "hi" }), "hi"),
            (json!({ "whatever": "hi" }), "hi"),
            (json!({ "content": [{ "type": "text", "text": "h" }, { "type": "text", "text": "i" }] }), "hi"),
            (json!(["hi"]), "hi"),
            (json!([{ "text": "hi" }, { "text": "no" }]), "hi"),
            (json!({ "result": { "answer": "hi", "score": 1 } }), "hi"),
            (json!({ "choices": [{ "message": { "content": "hi" } }], "model": "m" }), "hi"),
            (json!({ "a": 1, "b": 2 }), r#"{"a":1,"b":2}"#),
            (json!([1, 2]), "[1,2]"),
            (json!({}), "{}"),
        ] {
            assert_eq!(
                answer(&document, None).expect("found"),
                expected,
                "{document}"
            );
        }
    }

    #[test]
    #[rustfmt::skip]
    fn only_an_error_that_says_something_is_one() {
        for (document, expected) in [
            (json!({ "error": "down", "output": "x" }), Some("the agent answered with `error`: down")),
            (json!({ "Error": { "code": 1 } }), Some("the agent answered with `Error`: {\"code\":1}")),
            (json!({ "success": false }), Some("the agent answered with `success: false`")),
            (json!({ "error": null, "output": "x" }), None),
            (json!({ "error": 0, "output": "x" }), None),
            (json!({ "error": {}, "output": "x" }), None),
            (json!({ "error": [], "output": "x" }), None),
            (json!({ "error": 7 }), Some("the agent answered with `error`: 7")),
            (json!({ "error": "", "success": true }), None),
            (json!(["error"]), None),
        ] {
            assert_eq!(
                reported_failure(&document).as_deref(),
                expected,
                "{document}"
            );
        }
    }
}
