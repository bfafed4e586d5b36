//! What is asked to be put in force: `{profile | chaos, seed, ttl, key, observe}`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use squall_profiles::activation::Observe;
use squall_profiles::error::ProfileError;
use squall_profiles::profile::Profile;
use squall_profiles::tools::ToolNames;
use squall_profiles::variables::Variables;
use squall_profiles::{duration, profile};
use squall_proxy::chaos::{INLINE, Request, Wanted};

use crate::nearest::nearest;
use crate::openapi::{ChaosRules, ProfileDocument};
use crate::problem::Detail;
use crate::trust::{Sent, Trust};

const MEMBERS: [&str; 7] = [
    "profile", "chaos", "secrets", "seed", "ttl", "key", "observe",
];

/// Longest `key`, bytes.
const KEY: usize = 256;

/// What to put in force: `profile` or `chaos`, one of the two.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = [
    { "required": ["profile"], "properties": { "profile": { "type": ["string", "object"] } } },
    { "required": ["chaos"], "properties": { "chaos": { "type": "object" } } },
]))]
#[expect(dead_code, reason = "says what `read` takes")]
pub(super) struct ChaosRequest {
    /// The name of a profile, `none` for no chaos, or a profile itself.
    profile: Option<ProfileWanted>,
    /// What a profile has under `chaos:`.
    chaos: Option<ChaosRules>,
    /// What variables in `chaos` or in a profile stand for, beside those that the config's `api.env` lists: used, and never
    /// stored, logged or returned.
    #[schemars(schema_with = "values", default)]
    secrets: Option<BTreeMap<String, String>>,
    /// Of every draw; the config's, else 42.
    seed: Option<u64>,
    /// How long it holds: a duration like `1h30m`, or a number of seconds.
    ttl: Option<TimeToLive>,
    /// Stands for the scope in the draws; the scope's name.
    #[schemars(length(min = 1, max = 256))]
    key: Option<String>,
    /// What the journal reads: `model` if absent.
    observe: Option<Observed>,
}

fn values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "maxProperties": Sent::MOST,
        "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
        "additionalProperties": { "type": "string" },
    })
}

/// What variables in inline chaos stand for.
fn secrets(members: &Map<String, Value>) -> Result<Sent, String> {
    let sent = Sent::read(members.get("secrets"))?;
    let is_inline = given(members, "chaos").is_some()
        || given(members, "profile").is_some_and(Value::is_object);
    if given(members, "secrets").is_some() && !is_inline {
        return Err("`secrets` are for `chaos`; a profile is put with its own".to_owned());
    }
    Ok(sent)
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "says what `profile` takes")]
enum ProfileWanted {
    Named(String),
    Sent(ProfileDocument),
}

#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "says what `ttl` takes")]
enum TimeToLive {
    Text(#[schemars(regex(pattern = DURATION))] String),
    Seconds(#[schemars(range(min = 0.001, max = 1e15))] f64),
}

const DURATION: &str = r"^([1-9][0-9]{0,5}(ms|s|m|h))$";

#[derive(JsonSchema)]
#[schemars(inline, rename_all = "snake_case")]
#[expect(dead_code, reason = "says what `observe` takes")]
enum Observed {
    Headers,
    Model,
    Bodies,
}

/// Reads the document; everything that is wrong with it is said at once. What `trust` lists, and what is
/// sent with it, expands in inline chaos.
pub(super) fn read(document: &Value, trust: &Trust) -> Result<Request, Vec<Detail>> {
    let Value::Object(members) = document else {
        return Err(vec![Detail::at(
            "",
            "the document must be an object, like {\"profile\": \"api_outage\"}",
        )]);
    };
    let mut errors = Vec::new();
    let secrets = secrets(members).unwrap_or_else(|error| {
        errors.push(Detail::at("/secrets", error));
        Sent::default()
    });
    let rules = trust.variables_and(&secrets, |variables| rules(members, variables, &mut errors));
    let member = |name, expected| Member { name, expected };
    let seed = member("seed", "a whole number from 0 to 18446744073709551615").read(
        members,
        &mut errors,
        Value::as_u64,
    );
    let ttl = member(
        "ttl",
        "a duration of at least 1ms, like \"90s\" or \"1h30m\"",
    )
    .read(members, &mut errors, ttl);
    let key = member("key", "a text of 1 to 256 bytes").read(members, &mut errors, |value| {
        value
            .as_str()
            .filter(|key| (1..=KEY).contains(&key.len()))
            .map(str::to_owned)
    });
    let observe = member("observe", "headers, model or bodies").read(
        members,
        &mut errors,
        |value| match value.as_str()? {
            "headers" => Some(Observe::Headers),
            "model" => Some(Observe::Model),
            "bodies" => Some(Observe::Bodies),
            _ => None,
        },
    );
    for name in members
        .keys()
        .filter(|name| !MEMBERS.contains(&name.as_str()))
    {
        errors.push(unknown(name));
    }
    match rules {
        Some(rules) if errors.is_empty() => Ok(Request {
            rules,
            seed,
            ttl,
            key,
            observe,
            tools: ToolNames::default(),
        }),
        _ => Err(errors),
    }
}

fn rules(
    members: &Map<String, Value>,
    variables: Variables<'_>,
    errors: &mut Vec<Detail>,
) -> Option<Wanted> {
    match (given(members, "profile"), given(members, "chaos")) {
        (Some(Value::String(name)), None) => Some(Wanted::Profile(name.clone())),
        (Some(profile @ Value::Object(_)), None) => {
            let read = profile::parse_file(INLINE, &profile.to_string(), variables);
            inline("/profile", read, errors)
        }
        (Some(_), None) => {
            errors.push(Detail::at(
                "/profile",
                "`profile` must be the name of a profile, or a profile",
            ));
            None
        }
        (None, Some(chaos)) => {
            let read = profile::parse_chaos_with("chaos", INLINE, &chaos.to_string(), variables);
            inline("/chaos", read, errors)
        }
        (Some(_), Some(_)) => {
            errors.push(Detail::at("/chaos", "give `profile` or `chaos`, not both"));
            None
        }
        (None, None) => {
            let detail = "give `profile`, the name of a profile, or `chaos`, the rules themselves";
            errors.push(Detail::at("", detail));
            None
        }
    }
}

fn inline(
    pointer: &str,
    read: Result<Profile, Vec<ProfileError>>,
    errors: &mut Vec<Detail>,
) -> Option<Wanted> {
    let detail =
        |error: ProfileError| Detail::at(format!("{pointer}{}", error.pointer), error.message);
    let read = read.map_err(|found| errors.extend(found.into_iter().map(detail)));
    Some(Wanted::Inline(Arc::new(read.ok()?)))
}

/// A member that may be left out.
struct Member {
    name: &'static str,
    expected: &'static str,
}

impl Member {
    fn read<T>(
        self,
        members: &Map<String, Value>,
        errors: &mut Vec<Detail>,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = given(members, self.name)?;
        let read = read(value);
        if read.is_none() {
            let shown: String = value.to_string().chars().take(40).collect();
            let Self { name, expected } = self;
            errors.push(Detail::at(
                format!("/{name}"),
                format!("`{name}` is {shown}; it must be {expected}"),
            ));
        }
        read
    }
}

/// A member that is there; `null` is as good as absent.
fn given<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

/// `"90s"`, or a number of seconds.
fn ttl(value: &Value) -> Option<Duration> {
    let ttl = match value {
        Value::String(text) => duration::parse(text)?,
        Value::Number(seconds) => Duration::try_from_secs_f64(seconds.as_f64()?).ok()?,
        _ => return None,
    };
    (ttl >= Duration::from_millis(1)).then_some(ttl)
}

fn unknown(name: &str) -> Detail {
    let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    let name: String = name.chars().take(40).collect();
    let mut detail = format!("unknown field `{name}`; there are {}", MEMBERS.join(", "));
    if let Some(nearest) = nearest(&name, MEMBERS) {
        detail = format!("unknown field `{name}`, did you mean `{nearest}`?");
    }
    Detail::at(pointer, detail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_sent(document: &Value) -> Result<Request, Vec<Detail>> {
        read(document, &Trust::default())
    }

    #[test]
    fn a_profile_alone_is_enough_and_everything_may_be_given() {
        let request = read_sent(&json!({ "profile": "api_outage" })).expect("valid");
        assert!(matches!(request.rules, Wanted::Profile(name) if name == "api_outage"));
        assert_eq!((request.seed, request.ttl, request.key), (None, None, None));
        let request = read_sent(&json!({
            "profile": "x", "seed": u64::MAX, "ttl": "1m30s", "key": "k", "observe": "bodies",
        }))
        .expect("valid");
        assert_eq!(request.seed, Some(u64::MAX));
        assert_eq!(request.ttl, Some(Duration::from_secs(90)));
        assert_eq!(request.key.as_deref(), Some("k"));
        assert_eq!(request.observe, Some(Observe::Bodies));
    }

    #[test]
    fn everything_that_is_wrong_is_said_with_its_place() {
        for (document, expected) in [
            (json!([]), vec![""]),
            (json!({}), vec![""]),
            (json!({ "profile": null }), vec![""]),
            (json!({ "profile": 1 }), vec!["/profile"]),
            (
                json!({ "profile": { "tool_faults": [{ "mode": "eror" }] } }),
                vec!["/profile/tool_faults/0/mode"],
            ),
            (json!({ "profile": "x", "chaos": {} }), vec!["/chaos"]),
            (json!({ "profile": "x", "seed": -1 }), vec!["/seed"]),
            (json!({ "profile": "x", "seed": 1.5 }), vec!["/seed"]),
            (json!({ "profile": "x", "seed": "1" }), vec!["/seed"]),
            (json!({ "profile": "x", "ttl": "soon" }), vec!["/ttl"]),
            (json!({ "profile": "x", "ttl": 0 }), vec!["/ttl"]),
            (json!({ "profile": "x", "ttl": -1 }), vec!["/ttl"]),
            (json!({ "profile": "x", "key": "" }), vec!["/key"]),
            (
                json!({ "profile": "x", "observe": "all" }),
                vec!["/observe"],
            ),
            (json!({ "profil": "x" }), vec!["", "/profil"]),
            (json!({ "profile": "x", "a/b~": 1 }), vec!["/a~1b~0"]),
            (
                json!({ "profile": "x", "seed": [], "ttl": [] }),
                vec!["/seed", "/ttl"],
            ),
        ] {
            let errors = read_sent(&document).expect_err("invalid");
            let pointers: Vec<_> = errors
                .iter()
                .map(|error| error.pointer.as_deref().unwrap_or("-"))
                .collect();
            assert_eq!(pointers, expected, "{document}");
        }
    }

    #[test]
    fn the_nearest_word_is_offered() {
        let errors = read_sent(&json!({ "profile": "x", "sede": 1 })).expect_err("invalid");
        assert_eq!(
            errors[0].detail,
            "unknown field `sede`, did you mean `seed`?"
        );
        assert_eq!(
            nearest("api_outag", ["brownout", "api_outage"]),
            Some("api_outage")
        );
        assert_eq!(nearest("zzz", ["brownout", "api_outage"]), None);
    }
}
