//! Profile files from anybody: reading never panics, every error has a place and a message, and
//! what can be read can be given back, put in force and asked about an exchange.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use libfuzzer_sys::fuzz_target;
use squall_journal::redact::Redactor;
use squall_profiles::activation::{Activation, ActivationSpec, Observe};
use squall_profiles::facts::{Body, CanonicalUrl, Facts, Kind, Stage};
use squall_profiles::library::Library;
use squall_profiles::profile::{self, Profile};
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::validate;

fuzz_target!(|text: &str| {
    match profile::parse("fuzz.yaml", text) {
        Ok(profile) => use_it(&profile),
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(!error.message.is_empty());
                assert!(error.to_string().starts_with("fuzz.yaml"));
            }
        }
    }
});

fn use_it(profile: &Profile) {
    let library = Library::builtin();
    let tools = ToolNames::default();
    profile.document();
    validate(profile, &library, &tools);
    let Ok(rules) = library.rule_set_of(profile, &tools) else {
        return;
    };
    let spec = ActivationSpec {
        profile: "fuzz".to_owned(),
        seed: 1,
        key: None,
        observe: Observe::Model,
    };
    let scope = Activation::new("a".to_owned(), "default".to_owned(), spec, Arc::new(rules));
    for stage in [
        Stage::Connect,
        Stage::Request {
            behind_connect: false,
        },
    ] {
        decide(&scope, stage);
    }
}

fn decide(scope: &Activation, stage: Stage) {
    let url = CanonicalUrl::new("https", "api.example", "/v1/a?b=c");
    let tools = ["tool".to_owned()];
    let facts = Facts {
        kind: Kind::Tool,
        dialect: None,
        tools: &tools,
        rpc_tool_call: false,
        mcp_tool_list: false,
        from: None,
        may_be_rpc: false,
        method: &Method::POST,
        url: &url,
        headers: &HeaderMap::new(),
        model: None,
        stream: None,
        results: None,
        body: Some(Body::from(&br#"{"a": [1, {"b": "c"}]}"#[..])),
    };
    let snapshot = scope.snapshot();
    snapshot.nearest_misses(&facts);
    let shortlist = snapshot.shortlist(&facts, stage);
    let mut decision = snapshot.decide(&shortlist, &facts, stage, Duration::from_secs(1));
    for status in [200, 503] {
        snapshot.on_response(&mut decision, status, Duration::from_secs(2));
    }
    let rules = snapshot.rules().rules().len();
    assert!(decision.verdicts.len() as u64 + decision.more <= rules as u64);
    for verdict in &decision.verdicts {
        verdict.rule.parameters(&Redactor::default());
    }
}
