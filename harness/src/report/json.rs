//! The report as JSON.

use std::fmt::Write as _;

use super::Report;
use super::shown::is_plain;

/// The report as indented JSON with a final line break. Control characters are escaped.
pub(super) fn document(report: &Report) -> String {
    // The keys of its maps are strings and its numbers were read from JSON, so serialisation cannot fail.
    let text = serde_json::to_string_pretty(report).expect("a report is JSON");
    let mut safe = escaped(&text);
    safe.push('\n');
    safe
}

/// The same JSON, with terminal control characters escaped.
pub fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if is_plain(character) {
            safe.push(character);
            continue;
        }
        // Such characters stand within strings only.
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(safe, "\\u{unit:04x}");
        }
    }
    safe
}
