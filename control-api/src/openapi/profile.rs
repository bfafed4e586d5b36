//! Profiles in the API's description: the schema that editors are given, with its parts among the
//! document's.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// Where the parts of a description stand.
pub(super) const PARTS: &str = "/components/schemas";

/// A profile, as it is written.
pub(crate) struct ProfileDocument;

impl JsonSchema for ProfileDocument {
    fn schema_name() -> Cow<'static, str> {
        "Profile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = squall_profiles::schema::profile_schema();
        point_at_parts(&mut schema);
        let Value::Object(mut members) = schema else {
            return Schema::default();
        };
        members.shift_remove("$schema");
        if let Some(Value::Object(parts)) = members.shift_remove("$defs") {
            generator.definitions_mut().extend(parts);
        }
        members.into()
    }
}

/// What a profile has under `chaos:`.
pub(crate) struct ChaosRules;

impl JsonSchema for ChaosRules {
    fn schema_name() -> Cow<'static, str> {
        "ChaosRules".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<ProfileDocument>();
        schemars::json_schema!({ "$ref": format!("#{PARTS}/Chaos") })
    }
}

/// Makes `#/$defs/X` point at where `X` is going to stand.
fn point_at_parts(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_str().and_then(|at| at.strip_prefix("#/$defs/")) {
                    Some(part) if name == "$ref" => *value = json!(format!("#{PARTS}/{part}")),
                    _ => point_at_parts(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(point_at_parts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
