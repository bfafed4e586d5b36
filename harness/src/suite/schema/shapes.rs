//! The shapes that blocks are made of.

use serde_json::{Map, Value, json};

/// A field: its name, what it is for, what stands there.
pub(super) type Field = (&'static str, &'static str, Value);

pub(super) fn block(what: &str, required: &[&str], fields: Vec<Field>) -> Value {
    let properties = fields.into_iter().map(|(name, what, mut schema)| {
        if let Some(members) = schema.as_object_mut()
            && !what.is_empty()
        {
            members.insert("description".to_owned(), json!(what));
        }
        (name.to_owned(), either([schema, json!({ "type": "null" })]))
    });
    json!({
        "type": "object",
        "description": what,
        "properties": properties.collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

pub(super) fn either(schemas: impl IntoIterator<Item = Value>) -> Value {
    json!({ "anyOf": schemas.into_iter().collect::<Vec<_>>() })
}

pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A list with at least one item.
pub(super) fn some(items: Value) -> Value {
    let mut schema = list(items);
    schema["minItems"] = json!(1);
    schema
}

pub(super) fn list(items: Value) -> Value {
    Value::Object(Map::from_iter([
        ("type".to_owned(), json!("array")),
        ("items".to_owned(), items),
    ]))
}

/// A map from names of one's own.
pub(super) fn named(values: Value) -> Value {
    Value::Object(Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("additionalProperties".to_owned(), values),
    ]))
}

/// Numbers and flags are taken for texts.
pub(super) fn text() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}

/// A text that is more than blanks.
pub(super) fn words_of_ones_own() -> Value {
    let mut schema = text();
    schema["pattern"] = json!(r"\S");
    schema
}

pub(super) fn texts() -> Value {
    either([text(), some(text())])
}

/// Words in a table, however they are capitalised.
pub(super) fn words(words: impl IntoIterator<Item = &'static str>) -> Value {
    let words: Vec<_> = words.into_iter().collect();
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
    either([
        json!({ "enum": words }),
        json!({ "type": "string", "pattern": pattern }),
        variable(),
    ])
}

pub(super) fn flag() -> Value {
    or_variable(json!({ "type": "boolean" }))
}

pub(super) fn whole(least: u64, most: Option<u64>) -> Value {
    or_variable(bounded(
        json!({ "type": "integer", "minimum": least }),
        most.map(Value::from),
    ))
}

pub(super) fn number(least: f64, most: Option<f64>) -> Value {
    or_variable(bounded(
        json!({ "type": "number", "minimum": least }),
        most.map(Value::from),
    ))
}

pub(super) fn bounded(mut schema: Value, most: Option<Value>) -> Value {
    if let Some(most) = most {
        schema["maximum"] = most;
    }
    schema
}

/// A variable may stand for it.
fn or_variable(schema: Value) -> Value {
    either([schema, variable()])
}

fn variable() -> Value {
    json!({ "type": "string", "pattern": r"\$\{" })
}
