//! The JSON Schema of profile files, for editors. It is derived from the parser; `squall profile
//! validate` also checks what a schema cannot express.

use serde_json::Value;
use squall_documents::describe;

use crate::profile;

/// The JSON Schema (draft 2020-12) of a profile file.
pub fn profile_schema() -> Value {
    describe(
        "Squall profile",
        "A named set of rules. The families of faults stand under `chaos`, or beside `name`.",
        profile::read,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::payloads::library;

    fn words(schema: &Value, pointer: &str) -> Vec<String> {
        let alternatives = schema
            .pointer(pointer)
            .and_then(|property| property["anyOf"].as_array());
        let alternatives = alternatives.unwrap_or_else(|| panic!("{pointer}"));
        let words = alternatives.iter().filter_map(|one| one["enum"].as_array());
        words
            .flatten()
            .map(|word| word.as_str().expect("a word").to_owned())
            .collect()
    }

    #[test]
    fn categories_are_those_of_the_library() {
        let schema = profile_schema();
        let attack = &schema["$defs"]["ContextAttack"]["properties"];
        let listed = words(&attack["categories"]["anyOf"][0], "/items");
        assert_eq!(listed.len(), library().len());
        assert!(listed.contains(&"role_play".to_owned()));
    }

    #[test]
    fn what_a_mode_cannot_do_without_is_required() {
        let schema = profile_schema();
        let rules = schema["$defs"]["NetworkFault"]["allOf"].as_array();
        for (mode, needs) in [
            ("limit_data", json!([{ "required": ["bytes"] }])),
            (
                "latency",
                json!([{ "required": ["delay_ms"] }, { "required": ["jitter_ms"] }]),
            ),
        ] {
            let of = |rule: &&Value| rule["if"]["properties"]["mode"]["const"] == mode;
            let rule = rules.expect("conditions").iter().find(of).expect(mode);
            assert_eq!(rule["then"]["anyOf"], needs, "{mode}");
        }
    }

    #[test]
    fn every_family_lists_its_own_modes() {
        let schema = profile_schema();
        for (rule, mode, there) in [
            ("NetworkFault", "latency", true),
            ("NetworkFault", "rate_limit", false),
            ("LlmFault", "rate_limit", true),
            ("ToolFault", "stale", true),
            ("ToolFault", "wrong_id", true),
        ] {
            let names = words(&schema, &format!("/$defs/{rule}/properties/mode"));
            assert_eq!(names.contains(&mode.to_owned()), there, "{mode} in {rule}");
        }
        assert!(
            words(&schema, "/$defs/ContextAttack/properties/type").contains(&"overflow".to_owned())
        );
        assert_eq!(schema["additionalProperties"], json!(false));
        for holder in [&schema, &schema["$defs"]["Chaos"]] {
            let attacks = &holder["properties"]["context_attacks"]["anyOf"];
            assert_eq!(attacks[0]["items"]["$ref"], "#/$defs/ContextAttack");
            assert!(
                attacks[1]["propertyNames"]["enum"]
                    .to_string()
                    .contains("overflow")
            );
        }
    }
}
