//! Synthetic structured results that clients accept.
//!
//! A tool with an `outputSchema` must return `structuredContent` that matches it, and the official clients reject
//! other results. [`structured`] builds a minimal matching value with the synthetic text in every string. It
//! supports types, `properties`, `items`, `enum`, `const`, and references within the schema. Of `anyOf`, `oneOf`
//! and `allOf` it uses the first suitable branch.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

/// Maximum number of values in one result, because schemas may be recursive.
const VALUES: usize = 512;
/// Deepest nesting of a result.
const DEPTH: usize = 32;

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

/// The `structuredContent` for a result with this text; empty for an empty text. `None`: it is not required. A text
/// that is a JSON object is the structure itself.
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
    if let Ok(given @ Json::Object(_)) = serde_json::from_str(text) {
        return Some(given);
    }
    let filling = Filling {
        root: &schema,
        text,
        left: Cell::new(VALUES),
    };
    Some(filling.value(&schema, 0))
}

/// Builds a value for a schema.
struct Filling<'a> {
    root: &'a Json,
    text: &'a str,
    /// Remaining number of values.
    left: Cell<usize>,
}

impl<'a> Filling<'a> {
    fn value(&self, schema: &'a Json, depth: usize) -> Json {
        let left = self.left.get();
        if left == 0 || depth > DEPTH {
            return Json::Null;
        }
        self.left.set(left - 1);
        if let Some(schema) = self.referred(schema).or_else(|| branch(schema)) {
            return self.value(schema, depth + 1);
        }
        let allowed = schema.get("const").or_else(|| schema["enum"].get(0));
        if let Some(allowed) = allowed {
            return allowed.clone();
        }
        match kind(schema) {
            Some("object") => self.object(schema, depth),
            Some("array") if self.text.is_empty() => json!([]),
            Some("array") => match schema.get("items") {
                Some(item) => json!([self.value(item, depth + 1)]),
                None => json!([self.text]),
            },
            Some("number" | "integer") => json!(0),
            Some("boolean") => json!(false),
            Some("null") => Json::Null,
            // Any value matches; the outermost value must be an object.
            None if depth == 0 => self.object(schema, depth),
            _ => self.text.into(),
        }
    }

    fn object(&self, schema: &'a Json, depth: usize) -> Json {
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<&str> = required.filter_map(Json::as_str).collect();
        let mut members = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            // The outermost object contains the text in all string members, not only in required ones.
            let says = depth == 0 && !self.text.is_empty();
            if says || required.contains(&name.as_str()) {
                members.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        for name in required {
            members.entry(name).or_insert_with(|| self.text.into());
        }
        let others = &schema["additionalProperties"];
        if members.is_empty() && !self.text.is_empty() && *others != Json::Bool(false) {
            let value = match others {
                Json::Object(_) => self.value(others, depth + 1),
                _ => self.text.into(),
            };
            members.insert("result".to_owned(), value);
        }
        members.into()
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
                        "degrees": { "type": "integer" },
                        "sunny": { "type": "boolean" },
                        "short": { "type": ["null", "string"] },
                        "kind": { "const": "weather" },
                    },
                    "required": ["untold"],
                }),
                json!({
                    "words": "hi", "wind": { "from": "west" }, "degrees": 0, "sunny": false,
                    "short": "hi", "kind": "weather", "untold": "hi",
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
                "more": { "type": "string" },
            },
            "required": ["title", "tags"],
        });
        let expected = json!({ "title": "", "tags": [] });
        assert_eq!(filled(&schema, ""), expected);
        assert_eq!(filled(&json!({ "type": "object" }), ""), json!({}));
    }

    #[test]
    fn a_text_that_is_a_json_object_is_the_structure() {
        let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } } });
        assert_eq!(filled(&schema, r#"{"ok":true}"#), json!({ "ok": true }));
        assert_eq!(filled(&schema, r#"{"ok":tr"#), json!({ "ok": false }));
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
