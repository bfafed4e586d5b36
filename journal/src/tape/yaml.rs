//! Writes documents as YAML.
//!
//! Maps and lists in blocks, texts in double quotes: whatever a body holds (line breaks of any kind,
//! control characters, what looks like a number) comes back as it was.

use std::fmt::Write as _;

use serde_json::Value;

/// The document as YAML, with a line break at the end.
pub(super) fn write(document: &Value) -> String {
    let mut out = String::new();
    match document {
        Value::Object(members) if !members.is_empty() => block(&mut out, document, 0),
        Value::Array(items) if !items.is_empty() => block(&mut out, document, 0),
        other => {
            flow(&mut out, other);
            out.push('\n');
        }
    }
    out
}

/// A map or a list that is not empty, each line indented.
fn block(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                indent(out, depth);
                key(out, name);
                out.push(':');
                below(out, member, depth);
            }
        }
        Value::Array(items) => {
            for item in items {
                indent(out, depth);
                out.push('-');
                match item {
                    Value::Object(members) if !members.is_empty() => {
                        let from = out.len();
                        block(out, item, depth + 1);
                        // The first member stands on the dash's own line.
                        let indented = from + 2 * (depth + 1);
                        out.replace_range(from..indented, " ");
                    }
                    other => below(out, other, depth),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => flow(out, value),
    }
}

/// What follows a key or a dash.
fn below(out: &mut String, value: &Value, depth: usize) {
    let in_block = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if in_block {
        out.push('\n');
        block(out, value, depth + 1);
    } else {
        out.push(' ');
        flow(out, value);
        out.push('\n');
    }
}

fn indent(out: &mut String, depth: usize) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// A key as it is where nobody could take it for anything else.
fn key(out: &mut String, name: &str) {
    let mut letters = name.bytes();
    let is_plain = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        // What YAML 1.1 and 1.2 take for something else.
        && !["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
            .contains(&&*name.to_ascii_lowercase());
    if is_plain {
        out.push_str(name);
    } else {
        quoted(out, name);
    }
}

/// A scalar, or an empty map or list.
fn flow(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => quoted(out, text),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{value}");
        }
    }
}

/// A text in double quotes; what does not print is escaped (YAML 1.2.2 §5.1, §5.7).
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
                if !matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}') =>
            {
                out.push(letter);
            }
            '\u{10000}'..='\u{10ffff}' => out.push(letter),
            other => {
                let code = u32::from(other);
                // Writing to a string cannot fail.
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    _ => write!(out, "\\u{code:04x}"),
                };
            }
        }
    }
    out.push('"');
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
