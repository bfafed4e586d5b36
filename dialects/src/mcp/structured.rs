//! Synthetic structured results that clients accept.
//!
//! A tool with an `outputSchema` must return `structuredContent` that matches it, and the official clients reject
//! other results. [`structured`] builds a minimal matching value with the synthetic text in every string. It
//! supports types, `properties`, `items`, `enum`, `const`, and references within the schema. Of `anyOf`, `oneOf`
//! and `allOf` it uses the first suitable branch. Limits of lengths and numbers are supported; `pattern`, `if` and
//! `not` are not.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

/// Maximum number of values in one result, because schemas may be recursive.
const VALUES: usize = 512;
/// Deepest nesting of a result.
const DEPTH: usize = 32;
/// Maximum for the minimum number of items or characters in a schema.
const LEAST: u64 = 64;

/// The known structure of a tool's results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Output {
    /// Unknown: no tool list with this tool was read.
    #[default]
    Unknown,
    /// No structure: the tool is listed without `outputSchema`.
    Free,
    /// The `outputSchema` that it is listed with, JSON.
    Schema(Arc<str>),
}

/// The `structuredContent` for a result with this text; empty for an empty text. `None`: it is not required.
///
/// For an unknown structure it is `{"result": text}`, like the official Python server's result for tools that
/// return a string.
pub(super) fn structured(output: &Output, text: &str) -> Option<Json> {
    let schema: Option<Json> = match output {
        Output::Free => return None,
        Output::Unknown => None,
        Output::Schema(schema) => serde_json::from_str(schema).ok(),
    };
    let Some(schema) = schema else {
        return Some(json!({ "result": text }));
    };
    let given: Option<Json> = serde_json::from_str(text).ok();
    let filling = Filling {
        root: &schema,
        text,
        left: Cell::new(VALUES),
    };
    Some(filling.value(&schema, given.as_ref(), 0))
}

/// Builds a value for a schema.
struct Filling<'a> {
    root: &'a Json,
    text: &'a str,
    /// Remaining number of values.
    left: Cell<usize>,
}

impl<'a> Filling<'a> {
    /// A value for a schema; `given` is the value in this place if the text is JSON.
    fn value(&self, schema: &'a Json, given: Option<&Json>, depth: usize) -> Json {
        let left = self.left.get();
        if left == 0 || depth > DEPTH {
            return Json::Null;
        }
        self.left.set(left - 1);
        if let Some(schema) = self.referred(schema).or_else(|| branch(schema)) {
            return self.value(schema, given, depth + 1);
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(allowed) = schema["enum"].as_array() {
            let same = allowed.iter().find(|item| Some(*item) == given);
            return same.or(allowed.first()).cloned().unwrap_or_default();
        }
        let number = |is_number: fn(&Json) -> bool| {
            let given = given.filter(|given| is_number(given)).cloned();
            given.unwrap_or_else(|| least_number(schema))
        };
        match kind(schema) {
            Some("object") => self.object(schema, given, depth),
            Some("array") => self.array(schema, given, depth),
            Some("string") => self.string(schema, given).into(),
            Some("number") => number(Json::is_number),
            Some("integer") => number(|it| it.is_i64() || it.is_u64()),
            Some("boolean") => given.and_then(Json::as_bool).unwrap_or_default().into(),
            Some("null") => Json::Null,
            // Any value matches; the outermost value must be an object.
            _ if depth == 0 => self.object(schema, given, depth),
            _ => given.cloned().unwrap_or_else(|| self.text.into()),
        }
    }

    fn object(&self, schema: &'a Json, given: Option<&Json>, depth: usize) -> Json {
        let given = given.and_then(Json::as_object);
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<&str> = required.filter_map(Json::as_str).collect();
        let mut members = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let given = given.and_then(|given| given.get(name));
            // The outermost object contains the text in all string members, not only in required ones.
            let says = depth == 0 && !self.text.is_empty();
            if required.contains(&name.as_str()) || given.is_some() || says {
                members.insert(name.clone(), self.value(property, given, depth + 1));
            }
        }
        for name in required {
            let unknown = || self.text.into();
            members.entry(name).or_insert_with(unknown);
        }
        if members.is_empty() {
            return self.open_object(schema, given, depth);
        }
        members.into()
    }

    /// An object with arbitrary members.
    fn open_object(
        &self,
        schema: &'a Json,
        given: Option<&Map<String, Json>>,
        depth: usize,
    ) -> Json {
        let others = &schema["additionalProperties"];
        let is_closed = *others == Json::Bool(false);
        match given {
            Some(given) if !is_closed && !others.is_object() => given.clone().into(),
            _ if is_closed || self.text.is_empty() => json!({}),
            _ if others.is_object() => json!({ "result": self.value(others, None, depth + 1) }),
            _ => json!({ "result": self.text }),
        }
    }

    fn array(&self, schema: &'a Json, given: Option<&Json>, depth: usize) -> Json {
        let given = given.and_then(Json::as_array);
        let given = given.map(Vec::as_slice).unwrap_or_default();
        let says = u64::from(!self.text.is_empty()).max(given.len() as u64);
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        let least = schema["minItems"].as_u64().unwrap_or_default();
        let count = says.min(most).max(least).min(LEAST);
        let mut first = schema["prefixItems"].as_array().into_iter().flatten();
        let mut given = given.iter();
        let item = |_| match first.next().or_else(|| schema.get("items")) {
            Some(item) => self.value(item, given.next(), depth + 1),
            None => self.text.into(),
        };
        (0..count).map(item).collect()
    }

    fn string(&self, schema: &Json, given: Option<&Json>) -> String {
        if let Some(example) = schema["format"].as_str().and_then(example) {
            return example.to_owned();
        }
        let said = given.and_then(Json::as_str).unwrap_or(self.text);
        let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let least = schema["minLength"].as_u64().unwrap_or_default().min(LEAST);
        let least = usize::try_from(least).unwrap_or_default();
        let padding = std::iter::repeat_n(' ', least.saturating_sub(said.chars().count()));
        said.chars().take(most).chain(padding).collect()
    }

    /// The target of a schema's reference.
    fn referred(&self, schema: &Json) -> Option<&'a Json> {
        let reference = schema["$ref"].as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

/// A branch of alternative schemas, preferably one that contains a string.
fn branch(schema: &Json) -> Option<&Json> {
    if kind(schema).is_some() {
        return None;
    }
    let names = ["anyOf", "oneOf", "allOf"];
    let branches = names.iter().find_map(|name| schema[name].as_array())?;
    let strings = branches.iter().find(|it| kind(it) == Some("string"));
    let others = || branches.iter().find(|it| kind(it) != Some("null"));
    strings.or_else(others).or(branches.first())
}

/// The type that a schema requires, or implies by other keywords.
fn kind(schema: &Json) -> Option<&str> {
    let shows = |name, kind| schema.get(name).map(|_| kind);
    match &schema["type"] {
        Json::String(one) => Some(one),
        Json::Array(several) => {
            let mut several = several.iter().filter_map(Json::as_str);
            let first = several.clone().next();
            several.find(|kind| *kind == "string").or(first)
        }
        _ => shows("properties", "object")
            .or_else(|| shows("required", "object"))
            .or_else(|| shows("items", "array")),
    }
}

/// The valid number that is closest to zero.
fn least_number(schema: &Json) -> Json {
    let bound = |name| schema.get(name).and_then(Json::as_f64);
    let at_least = bound("minimum").filter(|least| *least > 0.0);
    let above = bound("exclusiveMinimum").filter(|least| *least >= 0.0);
    let at_most = bound("maximum").filter(|most| *most < 0.0);
    let below = bound("exclusiveMaximum").filter(|most| *most <= 0.0);
    let number = at_least
        .or(at_most)
        .or(above.map(|bound| bound + 1.0))
        .or(below.map(|bound| bound - 1.0));
    // Integers are written without a fraction.
    serde_json::from_str(&number.unwrap_or_default().to_string()).unwrap_or_default()
}

/// An example for a string format with restricted syntax.
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
    use super::*;

    fn filled(schema: &Json, text: &str) -> Json {
        let output = Output::Schema(schema.to_string().into());
        structured(&output, text).expect("a schema asks for structure")
    }

    #[test]
    fn a_text_is_said_where_a_schema_has_room_for_it() {
        let string = json!({ "type": "string" });
        for (schema, expected) in [
            // As the official Python server lists `-> str`, `-> dict` and `-> list[str]`.
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
        let result = json!({ "result": "hi" });
        assert_eq!(structured(&Output::Unknown, "hi"), Some(result.clone()));
        assert_eq!(structured(&Output::Free, "hi"), None);
        let broken = Output::Schema("{".into());
        assert_eq!(structured(&broken, "hi"), Some(result));
    }
}
