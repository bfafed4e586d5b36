//! Reads requests to put chaos in force: `{profile | chaos, seed, ttl, key, observe}`.

use std::sync::Arc;
use std::time::Duration;

use squall_documents::{Fields, ScalarKind, Tree, ValueReader, Variables, duration};
use squall_profiles::activation::Observe;
use squall_profiles::profile;
use squall_profiles::tools::ToolNames;
use squall_proxy::chaos::{ChaosRequest, INLINE, RuleSource};

use crate::document::text;
use crate::store::DEFAULT_WORKSPACE;
use crate::trust::{SentVariables, Trust};

/// Longest `key`, bytes.
const KEY: usize = 256;

/// Reads the fields. Inline chaos may use the variables that `trust` lists, and those sent with it.
pub(crate) fn read(fields: &mut Fields<'_, '_>, trust: &Trust) -> Option<ChaosRequest> {
    let secrets = SentVariables::read(fields);
    let inline = fields.node("chaos").or(fields.node("profile"));
    let is_inline = inline.is_some_and(|inline| matches!(inline.value, Tree::Map(_)));
    if fields.has("secrets") && !is_inline {
        let detail = "`secrets` are for `chaos`; a profile is put with its own";
        fields.error("secrets", detail);
    }
    let rules = trust.variables_and(&secrets, |variables| rules(fields, variables));
    let key = text("a text of 1 to 256 bytes", |key| {
        (1..=KEY).contains(&key.len())
    });
    let (seed, ttl) = (
        fields.whole("seed", "", 0..=u64::MAX, ""),
        fields.field("ttl", "", ttl),
    );
    let key = fields.field("key", "", key);
    let observe = fields.word("observe", "", "value of `observe`", Observe::NAMES);
    Some(ChaosRequest {
        rules: rules?,
        seed,
        ttl,
        key,
        observe,
        tools: ToolNames::default(),
    })
}

/// A profile's name is looked up in the caller's workspace.
pub(crate) fn of_workspace(workspace: &str, rules: RuleSource) -> RuleSource {
    match (workspace, rules) {
        (DEFAULT_WORKSPACE, rules) => rules,
        (workspace, RuleSource::Profile(profile)) => RuleSource::OfWorkspace {
            workspace: workspace.to_owned(),
            profile,
        },
        (_, rules) => rules,
    }
}

fn rules(fields: &mut Fields<'_, '_>, variables: Variables<'_>) -> Option<RuleSource> {
    let (profile, chaos) = (fields.any("profile", ""), fields.any("chaos", ""));
    let (at, node, read) = match (profile, chaos) {
        (Some(profile), None) => match &profile.value {
            Tree::Map(_) => {
                let text = profile.value.to_json().to_string();
                let read = profile::parse_file(INLINE, &text, variables);
                ("profile", profile, read)
            }
            Tree::Scalar {
                text,
                kind: ScalarKind::Text,
            } => return Some(RuleSource::Profile(text.clone())),
            Tree::Scalar { .. } | Tree::List(_) | Tree::Null => {
                fields.misplaced("profile", "the name of a profile, or a profile");
                return None;
            }
        },
        (None, Some(chaos)) => {
            let text = chaos.value.to_json().to_string();
            let read = profile::parse_chaos_with("chaos", INLINE, &text, variables);
            ("chaos", chaos, read)
        }
        (Some(_), Some(_)) => {
            fields.error("chaos", "give `profile` or `chaos`, not both");
            return None;
        }
        (None, None) => {
            let detail = "give `profile`, the name of a profile, or `chaos`, the rules themselves";
            fields.reader.error(fields.position, detail);
            return None;
        }
    };
    let errors = match read {
        Ok(profile) => return Some(RuleSource::Inline(Arc::new(profile))),
        Err(errors) => errors,
    };
    for error in errors {
        fields
            .reader
            .below_pointer(&format!("/{at}{}", error.pointer), |reader| {
                reader.error(node.position, error.message);
            });
    }
    None
}

/// `"90s"`, or a number of seconds.
fn ttl(value: &mut ValueReader<'_, '_>) -> Option<Duration> {
    let node = value.any()?;
    let ttl = match &node.value {
        Tree::Scalar { text, kind } => match kind {
            ScalarKind::Text => duration::parse(text),
            ScalarKind::Number => text
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            ScalarKind::Flag => None,
        },
        Tree::Null | Tree::List(_) | Tree::Map(_) => None,
    };
    let ttl = ttl.filter(|ttl| *ttl >= Duration::from_millis(1));
    ttl.or_else(|| {
        let expected = "a duration of at least 1ms, like \"90s\" or \"1h30m\"";
        value.reader.misplaced(node.position, expected)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use squall_documents::{DocumentError, DocumentReader, SourceText, parse};

    use super::*;

    fn read_sent(document: &Value) -> Result<ChaosRequest, Vec<DocumentError>> {
        let text = document.to_string();
        let tree = parse("", &text).expect("JSON");
        let mut reader = DocumentReader::new(SourceText::new("", &text));
        let read = |fields: &mut Fields<'_, '_>| read(fields, &Trust::default());
        let read = reader.read(&tree, |value| value.fields("a map", read));
        reader.finish(read).map(|(read, _)| read)
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
            (json!({ "profil": "x" }), vec!["", "/profil"]),
            (json!({ "profile": "x", "a/b~": 1 }), vec!["/a~1b~0"]),
            (
                json!({ "profile": "x", "seed": [], "ttl": [] }),
                vec!["/seed", "/ttl"],
            ),
        ] {
            let errors = read_sent(&document).expect_err("invalid");
            let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
            assert_eq!(pointers, expected, "{document}");
        }
    }
}
