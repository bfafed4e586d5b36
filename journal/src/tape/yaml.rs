//! Writes documents as YAML.
//!
//! Maps and lists are blocks, and texts are in double quotes, so that line breaks, control characters and texts
//! like numbers survive. Numbers keep their digits.

use std::fmt::Write as _;

use serde_json::Value;

/// The document as YAML, with a line break at the end.
pub(super) fn write(document: &Value) -> String {
    let mut out = String::new();
    if is_block(document) {
        block(&mut out, document, 0);
    } else {
        scalar(&mut out, document);
    }
    out
}

/// Whether it is a map or list with members.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A map or list with members, whose first line is indented already.
fn block(out: &mut String, value: &Value, depth: usize) {
    let lines: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, it)| (key(name), it)).collect(),
        Value::Array(items) => items.iter().map(|it| ("-".to_owned(), it)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (number, (head, below)) in lines.into_iter().enumerate() {
        if number > 0 {
            out.push_str(&"  ".repeat(depth));
        }
        out.push_str(&head);
        if !is_block(below) {
            out.push(' ');
            scalar(out, below);
            continue;
        }
        // The first member of a map in a list follows the dash on its line.
        if value.is_array() && below.is_object() {
            out.push(' ');
        } else {
            out.push('\n');
            out.push_str(&"  ".repeat(depth + 1));
        }
        block(out, below, depth + 1);
    }
}

/// A key and its colon. It is quoted unless YAML 1.1 and 1.2 both read it as a text.
fn key(name: &str) -> String {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && (name.bytes()).all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        && !words.contains(&&*name.to_ascii_lowercase());
    if is_plain {
        format!("{name}:")
    } else {
        format!("{}:", quoted(name))
    }
}

/// A scalar, or an empty map or list, to the end of the line.
fn scalar(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => out.push_str(&quoted(text)),
        other => out.push_str(&other.to_string()),
    }
    out.push('\n');
}

/// A text in double quotes, as in JSON; characters that YAML cannot print are escaped too (YAML 1.2.2 §5.1).
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for letter in Value::from(text).to_string().chars() {
        match letter {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_and_lists_stand_in_blocks() {
        let document = json!({
            "id": "a", "list": [{"one": 1, "two": [true, null]}, "x", [], {}, [["deep"]]],
            "on": {"content-type": "text/plain\r\n"},
        });
        insta::assert_snapshot!(write(&document), @r#"
        id: "a"
        list:
          - one: 1
            two:
              - true
              - null
          - "x"
          - []
          - {}
          -
            -
              - "deep"
        "on":
          content-type: "text/plain\r\n"
        "#);
    }

    fn any_document() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ -~\\r\\n\\t]{0,20}",
            Just("~".to_owned())
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|number| json!(number)),
            text.clone().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((text.clone(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(document in any_document()) {
            let text = write(&document);
            let read: Value = serde_saphyr::from_str(&text).expect("YAML");
            prop_assert_eq!(read, document, "{}", text);
        }
    }
}
