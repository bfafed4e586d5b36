//! Reads requests to put chaos in force: `{profile | chaos, seed, ttl, key, observe}`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use squall_documents::{Variables, duration};
use squall_profiles::activation::Observe;
use squall_profiles::profile;
use squall_profiles::tools::ToolNames;
use squall_proxy::chaos::{ChaosRequest, INLINE, RuleSource};

use crate::fields::BodyFields;
use crate::problem::ProblemDetail;
use crate::trust::{SentVariables, Trust};

const MEMBERS: [&str; 7] = [
    "profile", "chaos", "secrets", "seed", "ttl", "key", "observe",
];

/// Longest `key`, bytes.
const KEY: usize = 256;

/// Reads the document. Inline chaos may use the variables that `trust` lists, and those sent with it.
pub(super) fn read(document: &Value, trust: &Trust) -> Result<ChaosRequest, Vec<ProblemDetail>> {
    let mut fields = BodyFields::of(document, &MEMBERS, "{\"profile\": \"api_outage\"}")?;
    let secrets = SentVariables::read(fields.given("secrets")).unwrap_or_else(|error| {
        fields.wrong("secrets", error);
        SentVariables::default()
    });
    let is_inline = fields.given("chaos").or(fields.given("profile"));
    let is_inline = is_inline.is_some_and(Value::is_object);
    if fields.given("secrets").is_some() && !is_inline {
        let detail = "`secrets` are for `chaos`; a profile is put with its own";
        fields.wrong("secrets", detail);
    }
    let rules = trust.variables_and(&secrets, |variables| rules(&mut fields, variables));
    let seeds = "a whole number from 0 to 18446744073709551615";
    let seed = fields.read("seed", seeds, Value::as_u64);
    let ttls = "a duration of at least 1ms, like \"90s\" or \"1h30m\"";
    let ttl = fields.read("ttl", ttls, ttl);
    let key = fields.read("key", "a text of 1 to 256 bytes", |value| {
        let key = value.as_str()?;
        (1..=KEY).contains(&key.len()).then(|| key.to_owned())
    });
    let observe = fields.read("observe", "headers, model or bodies", |value| {
        match value.as_str()? {
            "headers" => Some(Observe::Headers),
            "model" => Some(Observe::Model),
            "bodies" => Some(Observe::Bodies),
            _ => None,
        }
    });
    fields.finish(rules.map(|rules| ChaosRequest {
        rules,
        seed,
        ttl,
        key,
        observe,
        tools: ToolNames::default(),
    }))
}

fn rules(fields: &mut BodyFields<'_>, variables: Variables<'_>) -> Option<RuleSource> {
    let read = match (fields.given("profile"), fields.given("chaos")) {
        (Some(profile @ Value::Object(_)), None) => {
            let read = profile::parse_file(INLINE, &profile.to_string(), variables);
            read.map_err(|wrong| ("/profile", wrong))
        }
        (Some(_), None) => {
            let expected = "the name of a profile, or a profile";
            let name = fields.read("profile", expected, Value::as_str)?;
            return Some(RuleSource::Profile(name.to_owned()));
        }
        (None, Some(chaos)) => {
            let read = profile::parse_chaos_with("chaos", INLINE, &chaos.to_string(), variables);
            read.map_err(|wrong| ("/chaos", wrong))
        }
        (Some(_), Some(_)) => {
            fields.wrong("chaos", "give `profile` or `chaos`, not both");
            return None;
        }
        (None, None) => {
            let detail = "give `profile`, the name of a profile, or `chaos`, the rules themselves";
            fields.wrong("", detail);
            return None;
        }
    };
    let read = read.map_err(|(at, wrong)| {
        let wrong = wrong.into_iter();
        fields.add(
            wrong.map(|error| ProblemDetail::at(format!("{at}{}", error.pointer), error.message)),
        );
    });
    Some(RuleSource::Inline(Arc::new(read.ok()?)))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_sent(document: &Value) -> Result<ChaosRequest, Vec<ProblemDetail>> {
        read(document, &Trust::default())
    }

    #[test]
    fn a_profile_alone_is_enough_and_everything_may_be_given() {
        let request = read_sent(&json!({ "profile": "api_outage" })).expect("valid");
        assert!(matches!(request.rules, RuleSource::Profile(name) if name == "api_outage"));
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
            (json!({ "profil": "x" }), vec!["/profil", ""]),
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
    }
}
