//! The JSON Schema of profile files, for editors. It derives from the raw structs; what it cannot
//! say (which mode takes which parameter) `squall profile validate` does.

use serde_json::{Map, Value, json};

use crate::payloads::library;
use crate::profile::modes;
use crate::profile::raw::RawProfile;
use crate::rule::Family;

/// The JSON Schema (draft 2020-12) of a profile file.
pub fn profile_schema() -> Value {
    let mut schema = schemars::schema_for!(RawProfile).to_value();
    for holder in ["", "/$defs/Chaos"] {
        let pointer = format!("{holder}/properties/{}", Family::Context.as_str());
        if let Some(attacks) = schema.pointer_mut(&pointer) {
            *attacks = attacks_schema(attacks);
        }
        for family in [Family::Network, Family::Tool, Family::Llm] {
            let pointer = format!("{holder}/properties/{}/items", family.as_str());
            if let Some(items) = schema.pointer_mut(&pointer) {
                *items = rule_schema(family);
            }
        }
    }
    if let Some(category) = schema.pointer_mut("/$defs/Rule/properties/categories/items") {
        let names: Vec<_> = library().iter().map(|category| &category.name).collect();
        category["enum"] = json!(names);
    }
    schema
}

/// A rule of a family, which names its mode and what that cannot do without.
fn rule_schema(family: Family) -> Value {
    let names: Vec<_> = modes::of_family(family).map(|mode| mode.name).collect();
    let mut schema = json!({
        "$ref": "#/$defs/Rule",
        "properties": { "mode": { "enum": names } },
        "required": ["mode"],
    });
    let needing = modes::of_family(family).filter(|mode| !mode.needs.is_empty());
    let needs: Vec<_> = needing
        .map(|mode| {
            let one_of = mode
                .needs
                .iter()
                .map(|field| json!({ "required": [field] }));
            let one_of: Vec<_> = one_of.collect();
            json!({
                "if": { "properties": { "mode": { "const": mode.name } } },
                "then": { "anyOf": one_of },
            })
        })
        .collect();
    if !needs.is_empty() {
        schema["allOf"] = json!(needs);
    }
    schema
}

/// A list of attacks that name their `type`, or a map from type to parameters.
fn attacks_schema(found: &Value) -> Value {
    let types: Vec<_> = modes::of_family(Family::Context)
        .map(|mode| mode.name)
        .collect();
    let parameters = json!({ "anyOf": [{ "$ref": "#/$defs/Rule" }, { "type": "null" }] });
    let by_type: Map<_, _> = types
        .iter()
        .map(|name| ((*name).to_owned(), parameters.clone()))
        .collect();
    json!({
        "description": found["description"],
        "anyOf": [
            {
                "type": "array",
                "items": {
                    "$ref": "#/$defs/Rule",
                    "properties": { "type": { "enum": types } },
                    "required": ["type"],
                },
            },
            { "type": "object", "properties": by_type, "additionalProperties": false },
            { "type": "null" },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_those_of_the_library() {
        let schema = profile_schema();
        let rule = &schema["$defs"]["Rule"]["properties"];
        let listed = rule["categories"]["items"]["enum"]
            .as_array()
            .expect("listed");
        assert_eq!(listed.len(), library().len());
        assert!(listed.contains(&json!("role_play")));
        assert!(rule["payloads"]["items"].get("enum").is_none());
    }

    #[test]
    fn what_a_mode_cannot_do_without_is_required() {
        let schema = profile_schema();
        let rules = &schema["properties"]["network_faults"]["items"]["allOf"];
        let rules = rules.as_array().expect("conditions");
        for (mode, needs) in [
            ("limit_data", json!([{ "required": ["bytes"] }])),
            (
                "latency",
                json!([{ "required": ["delay_ms"] }, { "required": ["jitter_ms"] }]),
            ),
        ] {
            let of = |rule: &&Value| rule["if"]["properties"]["mode"]["const"] == mode;
            let rule = rules.iter().find(of).expect(mode);
            assert_eq!(rule["then"]["anyOf"], needs, "{mode}");
        }
    }

    #[test]
    fn every_family_lists_its_own_modes() {
        let schema = profile_schema();
        for (pointer, mode, there) in [
            ("/properties/network_faults", "latency", true),
            ("/properties/network_faults", "rate_limit", false),
            ("/$defs/Chaos/properties/llm_faults", "rate_limit", true),
            ("/$defs/Chaos/properties/tool_faults", "stale", true),
            ("/$defs/Chaos/properties/tool_faults", "wrong_id", true),
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
        for pointer in [
            "/properties/context_attacks",
            "/$defs/Chaos/properties/context_attacks",
        ] {
            let attacks = &schema.pointer(pointer).expect("attacks")["anyOf"];
            let types = &attacks[0]["items"]["properties"]["type"]["enum"];
            assert!(
                types
                    .as_array()
                    .expect("types")
                    .contains(&json!("overflow"))
            );
            assert!(attacks[1]["properties"]["overflow"].is_object());
        }
    }
}
