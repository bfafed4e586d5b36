//! The document itself.

use std::fmt::Write as _;

use super::Report;
use super::shown::is_plain;

/// The report as JSON, indented, a newline at its end. What a terminal would obey is escaped.
pub(super) fn document(report: &Report) -> String {
    // Keys of its maps are texts, and its numbers came from JSON: nothing else can go wrong.
    let text = serde_json::to_string_pretty(report).expect("a report is JSON");
    let mut safe = escaped(&text);
    safe.push('\n');
    safe
}

/// The same JSON, with what a terminal would obey written as escapes.
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
