//! The JSON Schema of profile files, for editors.

/// The JSON Schema (draft 2020-12) of a profile file.
pub fn profile_schema() -> serde_json::Value {
    serde_json::json!({})
}
