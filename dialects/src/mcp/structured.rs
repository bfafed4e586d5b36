//! A tool's made-up result in the structure that clients hold results against.
//!
//! A tool that is listed with an `outputSchema` must give `structuredContent` that fits it, and the
//! official clients throw away what does not. [`structured`] makes the least that fits, with what is
//! to be said in every string. Of a schema it reads types, `properties`, `items`, `enum`, `const`,
//! the first fitting branch of `anyOf`, `oneOf` and `allOf`, references within the schema, and
//! bounds of lengths and numbers; no `pattern`, no `if`, no `not`.

use std::cell::Cell;
use std::sync::Arc;

use crate::json::{Document, Kind, Value, quote};

/// Values that one result has at most: schemas may refer to themselves.
const VALUES: usize = 512;
/// How deep they stand at most.
const DEPTH: usize = 32;
/// Items and characters that a schema may ask for at least.
const LEAST: u64 = 64;

/// What is known of the structure of a tool's results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Output {
    /// Nothing: no list of tools that holds this one was read.
    #[default]
    Unknown,
    /// They have none: the tool is listed without `outputSchema`.
    Free,
    /// The `outputSchema` that it is listed with, JSON.
    Schema(Arc<str>),
}

/// The `structuredContent` of a result that says `text`; empty for a result that says nothing.
/// `None`: none is asked for.
///
/// Where nothing is known it is `{"result": text}`: what the official Python server gives for tools
/// that return a string.
pub(super) fn structured(output: &Output, text: &str) -> Option<String> {
    let schema = match output {
        Output::Free => return None,
        Output::Unknown => return Some(wrapped(text)),
        Output::Schema(schema) => schema,
    };
    let Ok(schema) = Document::parse(schema.as_bytes()) else {
        return Some(wrapped(text));
    };
    let given = Document::parse(text.as_bytes()).ok();
    let filling = Filling {
        root: schema.root(),
        text,
        left: Cell::new(VALUES),
    };
    let given = given.as_ref().map(Document::root);
    Some(filling.value(schema.root(), given, 0))
}

fn wrapped(text: &str) -> String {
    format!("{{\"result\":{}}}", quote(text))
}

/// A schema on its way to be a value.
struct Filling<'a> {
    root: Value<'a>,
    text: &'a str,
    /// Values that may still be made.
    left: Cell<usize>,
}

impl<'a> Filling<'a> {
    /// A value for a schema; `given` is what the text itself has in this place, if it is JSON.
    fn value(&self, schema: Value<'a>, given: Option<Value<'_>>, depth: usize) -> String {
        let left = self.left.get();
        if left == 0 || depth > DEPTH {
            return "null".to_owned();
        }
        self.left.set(left - 1);
        if let Some(schema) = self.referred(schema).or_else(|| branch(schema)) {
            return self.value(schema, given, depth + 1);
        }
        if let Some(only) = schema.get("const") {
            return only.raw().to_owned();
        }
        if let Some(allowed) = schema.get("enum") {
            let given = given.map(Value::raw);
            let same = allowed.items().find(|item| Some(item.raw()) == given);
            let one = same.or_else(|| allowed.items().next());
            return one.map_or("null", Value::raw).to_owned();
        }
        match kind(schema).as_deref() {
            Some("object") => self.object(schema, given, depth),
            Some("array") => self.array(schema, given, depth),
            Some("string") => quote(&self.string(schema, given)),
            Some(number @ ("number" | "integer")) => given
                .map(Value::raw)
                .filter(|given| is_number(given, number == "integer"))
                .map_or_else(|| least_number(schema), str::to_owned),
            Some("boolean") => {
                let given = given.and_then(Value::as_bool).unwrap_or_default();
                given.to_string()
            }
            Some("null") => "null".to_owned(),
            // Anything will do; what is said as a whole is an object.
            _ if depth == 0 => self.object(schema, given, depth),
            _ => given.map_or_else(|| quote(self.text), |given| given.raw().to_owned()),
        }
    }

    fn object(&self, schema: Value<'a>, given: Option<Value<'_>>, depth: usize) -> String {
        let given = given.filter(|given| given.kind() == Kind::Object);
        let required = schema.get("required").into_iter().flat_map(Value::items);
        let mut required: Vec<_> = required.filter_map(Value::as_str).collect();
        let mut members = Vec::new();
        let properties = schema.get("properties").into_iter();
        for property in properties.flat_map(Value::members) {
            let Some(name) = property.key() else { continue };
            let asked_for = required.len();
            required.retain(|other| *other != name);
            let given = given.and_then(|given| given.get(&name));
            // Beside what must be there the outermost object says the text wherever it can.
            let says = depth == 0 && !self.text.is_empty();
            if required.len() < asked_for || given.is_some() || says {
                let value = self.value(property, given, depth + 1);
                members.push(format!("{}:{value}", quote(&name)));
            }
        }
        for name in required {
            members.push(format!("{}:{}", quote(&name), quote(self.text)));
        }
        if members.is_empty() {
            return self.open_object(schema, given, depth);
        }
        format!("{{{}}}", members.join(","))
    }

    /// An object whose members are left to the tool.
    fn open_object(&self, schema: Value<'a>, given: Option<Value<'_>>, depth: usize) -> String {
        let others = schema.get("additionalProperties");
        let is_closed = others.and_then(Value::as_bool) == Some(false);
        let of_a_kind = others.filter(|others| others.kind() == Kind::Object);
        match (given, of_a_kind) {
            (Some(given), None) if !is_closed => given.raw().to_owned(),
            _ if is_closed || self.text.is_empty() => "{}".to_owned(),
            (_, Some(schema)) => {
                format!("{{\"result\":{}}}", self.value(schema, None, depth + 1))
            }
            (_, None) => wrapped(self.text),
        }
    }

    fn array(&self, schema: Value<'a>, given: Option<Value<'_>>, depth: usize) -> String {
        let bound = |name| schema.get(name).and_then(Value::as_u64);
        let given = given.filter(|given| given.kind() == Kind::Array);
        let given: Vec<_> = given.into_iter().flat_map(Value::items).collect();
        let says = u64::from(!self.text.is_empty()).max(given.len() as u64);
        let least = bound("minItems").unwrap_or_default();
        let count = says
            .min(bound("maxItems").unwrap_or(u64::MAX))
            .max(least)
            .min(LEAST);
        let first = schema.get("prefixItems").into_iter();
        let mut first = first.flat_map(Value::items);
        let mut given = given.into_iter();
        let items: Vec<String> = (0..count)
            .map(|_| match first.next().or_else(|| schema.get("items")) {
                Some(item) => self.value(item, given.next(), depth + 1),
                None => quote(self.text),
            })
            .collect();
        format!("[{}]", items.join(","))
    }

    fn string(&self, schema: Value<'a>, given: Option<Value<'_>>) -> String {
        let format = schema.get("format").and_then(Value::as_str);
        if let Some(example) = format.as_deref().and_then(example) {
            return example.to_owned();
        }
        let given = given.and_then(Value::as_str);
        let said = given.as_deref().unwrap_or(self.text);
        let bound = |name| schema.get(name).and_then(Value::as_u64);
        let most = bound("maxLength").and_then(|most| usize::try_from(most).ok());
        let mut said: String = said.chars().take(most.unwrap_or(usize::MAX)).collect();
        let least = bound("minLength").unwrap_or_default().min(LEAST);
        while (said.chars().count() as u64) < least {
            said.push(' ');
        }
        said
    }

    /// What a schema refers to, within the whole of it.
    fn referred(&self, schema: Value<'a>) -> Option<Value<'a>> {
        let reference = schema.get("$ref")?.as_str()?;
        let pointer = reference.strip_prefix('#')?;
        let mut steps = pointer.split('/').skip(1);
        steps.try_fold(self.root, |value, step| {
            value.get(&step.replace("~1", "/").replace("~0", "~"))
        })
    }
}

/// The branch of a schema of alternatives: one that holds a string if there is any.
fn branch(schema: Value<'_>) -> Option<Value<'_>> {
    if kind(schema).is_some() {
        return None;
    }
    let names = ["anyOf", "oneOf", "allOf"];
    let branches = names.iter().find_map(|name| schema.get(name))?;
    let is = |branch: &Value<'_>, wanted| kind(*branch).as_deref() == Some(wanted);
    let says = branches.items().find(|branch| is(branch, "string"));
    says.or_else(|| branches.items().find(|branch| !is(branch, "null")))
        .or_else(|| branches.items().next())
}

/// The type that a schema asks for, or shows by what else it asks for.
fn kind(schema: Value<'_>) -> Option<String> {
    let Some(given) = schema.get("type") else {
        let shows = |name, kind: &str| schema.get(name).map(|_| kind.to_owned());
        return shows("properties", "object")
            .or_else(|| shows("required", "object"))
            .or_else(|| shows("items", "array"));
    };
    if let Some(one) = given.as_str() {
        return Some(one.into_owned());
    }
    let all: Vec<_> = given.items().filter_map(Value::as_str).collect();
    let says = all.iter().find(|kind| **kind == "string");
    says.or(all.first()).map(|kind| kind.clone().into_owned())
}

fn is_number(raw: &str, whole: bool) -> bool {
    let is_number = raw.parse::<f64>().is_ok();
    is_number && (!whole || raw.parse::<i64>().is_ok())
}

/// Zero, or what is nearest to it within the bounds.
fn least_number(schema: Value<'_>) -> String {
    let bound = |name| -> Option<f64> { schema.get(name)?.raw().parse().ok() };
    let at_least = bound("minimum").filter(|least| *least > 0.0);
    let above = bound("exclusiveMinimum").filter(|least| *least >= 0.0);
    let at_most = bound("maximum").filter(|most| *most < 0.0);
    let below = bound("exclusiveMaximum").filter(|most| *most <= 0.0);
    let number = at_least
        .or(at_most)
        .or(above.map(|bound| bound + 1.0))
        .or(below.map(|bound| bound - 1.0));
    number.unwrap_or_default().to_string()
}

/// A string of a format that no other text has.
fn example(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "1970-01-01T00:00:00Z",
        "date" => "1970-01-01",
        "time" => "00:00:00Z",
        "email" => "nobody@example.com",
        "uri" => "https://example.com/",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn filled(schema: &Value, text: &str) -> Value {
        let output = Output::Schema(schema.to_string().into());
        let made = structured(&output, text).expect("a schema asks for structure");
        serde_json::from_str(&made).unwrap_or_else(|why| panic!("{why}: {made}"))
    }

    #[test]
    fn a_text_is_said_where_a_schema_has_room_for_it() {
        let string = json!({ "type": "string" });
        for (schema, expected) in [
            // As the official Python server lists `-> str`, `-> dict`, `-> list[str]`.
            (
                json!({ "type": "object", "properties": { "result": string }, "required": ["result"] }),
                json!({ "result": "hi" }),
            ),
            (
                json!({ "type": "object", "additionalProperties": true }),
                json!({ "result": "hi" }),
            ),
            (
                json!({ "type": "object", "properties": { "result": { "type": "array", "items": string } } }),
                json!({ "result": ["hi"] }),
            ),
            (
                json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
                json!({ "result": 0 }),
            ),
            (
                json!({
                    "$defs": { "Wind": { "type": "object", "properties": {
                        "from": { "enum": ["west", "east"] }, "gusts": { "type": "number" },
                    }, "required": ["from"] } },
                    "type": "object",
                    "properties": {
                        "words": { "anyOf": [{ "type": "null" }, string] },
                        "wind": { "$ref": "#/$defs/Wind" },
                        "degrees": { "type": "integer", "minimum": 3 },
                        "loss": { "type": "number", "exclusiveMaximum": 0 },
                        "sunny": { "type": "boolean" },
                        "short": { "type": ["null", "string"], "maxLength": 1 },
                        "when": { "type": "string", "format": "date" },
                        "kind": { "const": "weather" },
                    },
                    "required": ["untold"],
                }),
                json!({
                    "words": "hi", "wind": { "from": "west" }, "degrees": 3, "loss": -1, "sunny": false,
                    "short": "h", "when": "1970-01-01", "kind": "weather", "untold": "hi",
                }),
            ),
            (json!({}), json!({ "result": "hi" })),
        ] {
            assert_eq!(filled(&schema, "hi"), expected, "{schema}");
        }
    }

    #[test]
    fn nothing_is_said_in_as_little_as_a_schema_takes() {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "tags": { "type": "array", "items": { "type": "string" } },
                "pair": { "type": "array", "items": { "type": "integer" }, "minItems": 2 },
                "more": { "type": "string" },
            },
            "required": ["title", "tags", "pair"],
        });
        let expected = json!({ "title": "", "tags": [], "pair": [0, 0] });
        assert_eq!(filled(&schema, ""), expected);
        assert_eq!(filled(&json!({ "type": "object" }), ""), json!({}));
    }

    #[test]
    fn a_text_that_is_json_is_taken_where_it_fits() {
        let schema = json!({
            "type": "object",
            "properties": { "ok": { "type": "boolean" }, "id": { "type": "integer" }, "by": { "type": "string" } },
        });
        assert_eq!(
            filled(&schema, r#"{"ok":true,"id":"seven","by":"me"}"#),
            json!({ "ok": true, "id": 0, "by": "me" })
        );
        let open = json!({ "type": "object" });
        assert_eq!(filled(&open, r#"{"ok":true}"#), json!({ "ok": true }));
    }

    #[test]
    fn a_schema_that_is_endless_is_filled_only_so_far() {
        let again = json!({ "$ref": "#" });
        let schema = json!({
            "type": "object",
            "properties": { "a": again, "b": again, "c": again },
            "required": ["a", "b", "c"],
        });
        assert!(filled(&schema, "hi").to_string().len() < 64 * 1024);
        assert!(filled(&again, "hi").is_null());
    }

    #[test]
    fn what_is_not_known_is_a_string_and_what_is_free_stays_so() {
        let unknown = structured(&Output::Unknown, "a \"b\"").expect("something is said");
        assert_eq!(unknown, r#"{"result":"a \"b\""}"#);
        assert_eq!(structured(&Output::Free, "hi"), None);
        let broken = Output::Schema("{".into());
        assert_eq!(
            structured(&broken, "hi").expect("something is said"),
            r#"{"result":"hi"}"#
        );
    }
}
