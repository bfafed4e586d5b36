//! Digests that identify a text.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

/// Bytes as hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The SHA-256 of some bytes as 64 hex digits.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(digest(&SHA256, bytes.as_ref()).as_ref())
}

/// JSON with sorted keys and no spaces; numbers as they are written.
pub(crate) fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| *name);
                let sorted = members
                    .into_iter()
                    .map(|(name, value)| (name.clone(), sorted(value)));
                Value::Object(sorted.collect::<Map<_, _>>())
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}
