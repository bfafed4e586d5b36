//! What a document makes of itself, from anybody: a glob, a regular expression and a path are made within
//! their limits or refused, and what is made can be used.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_documents::{DocumentLimits, Limited};
use squall_profiles::glob::Glob;
use squall_profiles::json_path;
use squall_profiles::pattern::{self, Searched};

fuzz_target!(|text: &str| {
    let limits = DocumentLimits::default();
    if let Ok(glob) = Glob::within(text, &limits) {
        assert!(limits.left(Limited::Globs) < DocumentLimits::default().left(Limited::Globs));
        glob.matches(text);
    }
    if let Ok(pattern) = pattern::compile(text, Searched::Text, &limits) {
        assert!(limits.left(Limited::Patterns) < DocumentLimits::default().left(Limited::Patterns));
        pattern.is_match(text);
    }
    if let Ok(path) = json_path::parse(text, &limits) {
        let document = serde_json::json!({"a": [1, {"b": [[[[[[[["c"]]]]]]]]}]});
        path.query(&document).all();
    }
});
