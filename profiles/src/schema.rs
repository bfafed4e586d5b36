//! The JSON Schema of profile files, for editors. It derives from the raw structs; what it cannot
//! say (which mode takes which parameter) `squall profile validate` does.

use serde_json::{Value, json};

use crate::profile::modes;
use crate::profile::raw::RawProfile;
use crate::rule::Family;

/// The JSON Schema (draft 2020-12) of a profile file.
pub fn profile_schema() -> Value {
    let mut schema = schemars::schema_for!(RawProfile).to_value();
    for holder in ["", "/$defs/Chaos"] {
        for family in [Family::Network, Family::Tool, Family::Llm] {
            let pointer = format!("{holder}/properties/{}/items", family.as_str());
            if let Some(items) = schema.pointer_mut(&pointer) {
                let names: Vec<_> = modes::of_family(family)
                    .filter(|mode| mode.available)
                    .map(|mode| mode.name)
                    .collect();
                *items = json!({
                    "$ref": "#/$defs/Rule",
                    "properties": { "mode": { "enum": names } },
                    "required": ["mode"],
                });
            }
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_lists_its_own_modes() {
        let schema = profile_schema();
        for (pointer, mode, there) in [
            ("/properties/network_faults", "latency", true),
            ("/properties/network_faults", "rate_limit", false),
            ("/$defs/Chaos/properties/llm_faults", "rate_limit", true),
            ("/$defs/Chaos/properties/tool_faults", "stale", true),
            ("/$defs/Chaos/properties/tool_faults", "wrong_id", false),
        ] {
            let names = &schema.pointer(pointer).unwrap()["items"]["properties"]["mode"]["enum"];
            let names = names.as_array().unwrap();
            assert_eq!(
                names.contains(&json!(mode)),
                there,
                "{mode} under {pointer}"
            );
        }
        assert_eq!(schema["additionalProperties"], json!(false));
    }
}
