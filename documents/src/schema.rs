//! Generates the JSON Schema of a document.

use serde_json::{Map, Value, json};

/// Adds a property. If it is added more than once, its value may match either schema.
pub(crate) fn property(
    properties: &mut Map<String, Value>,
    name: &str,
    about: &str,
    schema: Value,
) {
    let property = properties.entry(name).or_insert_with(|| {
        let mut property = json!({ "anyOf": [{ "type": "null" }] });
        if !about.is_empty() {
            property["description"] = json!(about);
        }
        property
    });
    let Some(known) = property["anyOf"].as_array_mut() else {
        return;
    };
    let schemas = match schema {
        Value::Object(mut keywords) if keywords.len() == 1 && keywords.contains_key("anyOf") => {
            keywords["anyOf"].as_array_mut().map(std::mem::take)
        }
        other => Some(vec![other]),
    };
    for schema in schemas.unwrap_or_default() {
        if !known.contains(&schema) {
            known.insert(known.len() - 1, schema);
        }
    }
}

pub(crate) fn either(schemas: &[Value]) -> Value {
    json!({ "anyOf": schemas })
}

/// Numbers and flags are accepted as text.
pub(crate) fn text() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

/// Numbers and flags are rejected.
pub(crate) fn exact_text() -> Value {
    json!({ "type": "string" })
}

/// A text that is not blank.
pub(crate) fn words(mut schema: Value) -> Value {
    schema["pattern"] = json!(r"\S");
    schema
}

/// One of these words; case does not matter.
pub(crate) fn word<'w>(words: impl Iterator<Item = &'w str>) -> Value {
    let words: Vec<_> = words.collect();
    let any_case = |word: &&str| -> String {
        let letters = word.chars().map(|letter| {
            let (lower, upper) = (letter.to_ascii_lowercase(), letter.to_ascii_uppercase());
            if lower == upper {
                letter.to_string()
            } else {
                format!("[{lower}{upper}]")
            }
        });
        letters.collect()
    };
    let patterns: Vec<_> = words.iter().map(any_case).collect();
    let pattern = format!("^({})$", patterns.join("|"));
    json!({
        "anyOf": [
            { "enum": words },
            { "type": "string", "pattern": pattern },
            variable(),
        ],
    })
}

pub(crate) fn flag() -> Value {
    or_variable(json!({ "type": "boolean" }))
}

pub(crate) fn whole(least: u64, most: u64) -> Value {
    let mut schema = json!({ "type": "integer", "minimum": least });
    if most < u64::MAX {
        schema["maximum"] = json!(most);
    }
    or_variable(schema)
}

pub(crate) fn real(least: f64, most: f64) -> Value {
    let mut schema = json!({ "type": "number", "minimum": least });
    if most < f64::MAX {
        schema["maximum"] = json!(most);
    }
    or_variable(schema)
}

/// Allows a variable instead of the value.
fn or_variable(schema: Value) -> Value {
    either(&[schema, variable()])
}

fn variable() -> Value {
    json!({ "type": "string", "pattern": r"\$\{" })
}
