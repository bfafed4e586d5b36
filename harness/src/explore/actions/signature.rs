//! Signatures of states: states that differ only in noise have the same one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::digest::sha256;

/// The signature of a state, 16 hex digits.
pub(super) fn signature(state: &Value) -> String {
    let mut digest = sha256(shape(state));
    digest.truncate(16);
    digest
}

/// The state without noise. A number counts by its sign and its number of digits, so that counters and times do not
/// make every state new. In texts, words with a digit count as `#`: times, ids. A list counts as the set of its
/// items.
fn shape(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => match number.as_f64().unwrap_or_default() {
            0.0 => "0".to_owned(),
            number => format!("{}e{:.0}", number.signum(), number.abs().log10().floor()),
        },
        Value::String(text) => {
            let mut reduced = String::new();
            for word in text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '-') {
                if !word.contains(|c: char| c.is_ascii_digit()) {
                    reduced.push_str(word);
                } else if !reduced.ends_with('#') {
                    reduced.push('#');
                }
            }
            format!("{reduced:?}")
        }
        Value::Array(items) => {
            let items: BTreeSet<_> = items.iter().map(shape).collect();
            format!("{items:?}")
        }
        Value::Object(members) => {
            let members: BTreeMap<_, _> =
                members.iter().map(|(name, it)| (name, shape(it))).collect();
            format!("{members:?}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    #[rustfmt::skip]
    fn states_that_differ_only_in_noise_have_one_signature() {
        for (one, other, same) in [
            (json!({ "n": 12, "m": 1 }), json!({ "m": 9, "n": 99 }), true),
            (json!(1), json!(10), false),
            (json!(0), json!(1), false),
            (json!(5), json!(-5), false),
            (json!(0.02), json!(0.03), true),
            (json!("2026-01-02T03:04:05Z"), json!("2027-11-12T23:14:25.7Z"), true),
            (json!("order 0193a1b2-c3d4 sent"), json!("order 7f-1 sent"), true),
            (json!("open"), json!("closed"), false),
            (json!([1, 2, 3]), json!([4]), true),
            (json!(["a", "b"]), json!(["b", "a", "a"]), true),
            (json!(["a"]), json!(["a", "b"]), false),
            (json!([]), json!([1]), false),
            (json!(null), json!("null"), false),
            (json!({ "a": 1 }), json!({ "b": 1 }), false),
        ] {
            assert_eq!(signature(&one) == signature(&other), same, "{one} {other}");
        }
    }
}
