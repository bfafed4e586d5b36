//! What `validate` finds in rules that can never do anything, and that it is right.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use squall_profiles::library::Library;
use squall_profiles::profile::{self, Profile};
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::validate;
use squall_profiles::verdict::VerdictOutcome;

use crate::scope::*;

fn findings(profile: &Profile) -> Vec<String> {
    let found = validate(profile, &Library::builtin(), &ToolNames::default());
    found.iter().map(ToString::to_string).collect()
}

fn told(text: &str) -> String {
    let profile = profile::parse("chaos.yaml", text).expect("a profile");
    findings(&profile).join("\n")
}

#[test]
fn rules_that_wait_for_what_never_happens_are_told() {
    let cases = [
        "tool_faults:\n  - { mode: error, id: a, armed_by: { rule: a } }\n",
        "tool_faults:\n  - { mode: error, id: a, armed_by: { rule: b } }\n  - { mode: slow, id: b, armed_by: { rule: a } }\n  - { mode: empty }\n",
        "network_faults:\n  - { mode: refuse, id: a, armed_by: { rule: c } }\ntool_faults:\n  - { mode: slow, id: b, armed_by: { rule: a } }\n  - { mode: error, id: c, armed_by: { rule: b } }\n",
        "tool_faults:\n  - { mode: error, id: in, armed_by: { rule: in } }\n  - { mode: slow, id: after, armed_by: { rule: in } }\n  - { mode: slow, id: later, armed_by: { rule: after } }\n",
        "tool_faults:\n  - { mode: error, id: never, probability: 0 }\n  - { mode: slow, armed_by: { rule: never } }\n",
        "tool_faults:\n  - { mode: error, id: nowhere, match_url: 'a.example/*' }\n  - { mode: slow, armed_by: { rule: nowhere } }\n",
        "tool_faults:\n  - { mode: error, armed_by: { match_url: 'ftp://a.example/*' } }\n",
        "extends: api_outage\ntool_faults:\n  - { mode: slow, id: mine, armed_by: { rule: mine } }\n",
    ];
    let told = cases.map(|text| format!("{text}{}", told(text)));
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn urls_that_no_exchange_has_are_told() {
    let cases = [
        "https://a.example/x#y",
        "*/x#*",
        "ftp://a.example/*",
        "file://a.example/x#y",
    ];
    let told = cases.map(|glob| {
        told(&format!(
            "tool_faults: [{{ mode: error, match_url: '{glob}' }}]"
        ))
    });
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn rules_that_are_always_bypassed_are_told() {
    let cases = [
        "network_faults: [{ mode: latency, delay_ms: 0 }]",
        "network_faults: [{ mode: slow_close, delay_ms: 0 }]",
        "tool_faults: [{ mode: slow, delay_ms: 0, jitter_ms: 0 }]",
        "llm_faults: [{ mode: stream_stall, delay_ms: 0 }]",
        "llm_faults: [{ mode: slow_stream, ttft_ms: 0 }]",
        "network_faults: [{ mode: tls_failure, match_url: 'http://a.example/x*' }]",
        "network_faults: [{ mode: tls_failure, match_url: 'https://a.example/x*' }]",
        "network_faults: [{ mode: tls_failure, match_url: 'https://a.example' }]",
        "network_faults: [{ mode: tls_failure, methods: GET }]",
    ];
    let told = cases.map(|text| format!("{text}\n{}", told(text)));
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn honest_rules_are_not_complained_of() {
    for text in [
        "network_faults: [{ mode: tls_failure }]",
        "network_faults: [{ mode: tls_failure, match_url: 'https://a.example/*' }]",
        "network_faults: [{ mode: tls_failure, match_url: ['http://a.example/*', '*a.example*'] }]",
        "network_faults: [{ mode: latency, delay_ms: 0, jitter_ms: 1 }]",
        "network_faults: [{ mode: timeout, delay_ms: 0 }]",
        "tool_faults: [{ mode: timeout, delay_ms: 0, at: model_input }]",
        "llm_faults: [{ mode: slow_stream, ttft_ms: 0, tokens_per_second: 5 }]",
        "llm_faults: [{ mode: slow_stream }]",
        "tool_faults: [{ mode: slow, match_url: 'WSS://a.example/%23*' }]",
        "tool_faults: [{ mode: slow, match_url: ['https://a.example/x#y', 'https://a.example/x'] }]",
        "tool_faults: [{ mode: slow, match_url: '*/?to=ftp://a.example/' }]",
        // A rule that fires arms others, although it can do nothing itself.
        "tool_faults: [{ mode: error, id: a }, { mode: slow, armed_by: { rule: a } }]",
        "tool_faults: [{ mode: slow, armed_by: { rule: a } }, { mode: error, id: a, limit: 1 }]",
        // These do not decide every answer.
        "network_faults: [{ mode: tls_failure }]\ntool_faults: [{ mode: error }]",
        "tool_faults: [{ mode: session_expired }, { mode: error }]",
        "tool_faults: [{ mode: endless_progress }, { mode: error }]",
    ] {
        assert_eq!(told(text), "", "{text}");
    }
    let armed = told(
        "network_faults: [{ mode: latency, delay_ms: 0, id: a }]\n\
         tool_faults: [{ mode: slow, armed_by: { rule: a } }]",
    );
    assert_eq!(armed.lines().count(), 1, "{armed}");
}

const URLS: [&str; 9] = [
    "*",
    "http://a/*",
    "https://a/*",
    "https://*",
    "https://a/x",
    "*x*",
    "https://a/x#y",
    "ftp://a/*",
    "*://a*",
];

#[rustfmt::skip]
fn any_rule() -> impl Strategy<Value = (&'static str, Value)> {
    let fault = select(vec![
        ("network_faults", json!({ "mode": "latency", "delay_ms": 0 })),
        ("network_faults", json!({ "mode": "latency", "delay_ms": 1 })),
        ("network_faults", json!({ "mode": "slow_close", "delay_ms": 0 })),
        ("network_faults", json!({ "mode": "tls_failure" })),
        ("network_faults", json!({ "mode": "refuse" })),
        ("tool_faults", json!({ "mode": "error" })),
        ("tool_faults", json!({ "mode": "slow", "delay_ms": 0 })),
        ("tool_faults", json!({ "mode": "truncated" })),
        ("llm_faults", json!({ "mode": "stream_stall", "delay_ms": 0 })),
        ("llm_faults", json!({ "mode": "overloaded" })),
        ("llm_faults", json!({ "mode": "slow_stream", "ttft_ms": 1 })),
    ]);
    let condition = prop::option::weighted(0.5, select(&URLS[..]));
    let get = prop::bool::weighted(0.2);
    let trigger = prop_oneof![
        4 => Just(json!({})),
        1 => Just(json!({ "probability": 0 })),
        1 => Just(json!({ "limit": 1 })),
        4 => (0..4).prop_map(|rule| json!({ "armed_by": { "rule": format!("r{rule}") } })),
        1 => select(&URLS[..]).prop_map(|url| json!({ "armed_by": { "match_url": url } })),
    ];
    (fault, condition, get, trigger).prop_map(|((family, mut rule), url, get, trigger)| {
        let written = rule.as_object_mut().expect("a rule is a map");
        written.extend(trigger.as_object().cloned().unwrap_or_default());
        written.extend(url.map(|url| ("match_url".to_owned(), json!(url))));
        written.extend(get.then(|| ("methods".to_owned(), json!(["GET"]))));
        (family, rule)
    })
}

/// Requests of every way in, to the places that the rules speak of.
fn requests() -> Vec<Request> {
    let mut requests = vec![
        model_call("{}"),
        connect("https://a"),
        connect("https://b:80"),
    ];
    for url in [
        "http://a/x",
        "https://a/x",
        "https://a/",
        "http://b/x",
        "https://ax/y?to=ftp://a/",
    ] {
        requests.extend([get(url), post(url, "{}")]);
    }
    requests
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Four rules, and everything sent under them four times: what arms what has happened by then.
    #[test]
    fn nothing_that_happens_was_called_impossible(rules in prop::collection::vec(any_rule(), 4)) {
        let mut chaos = json!({});
        for (number, (family, mut rule)) in rules.into_iter().enumerate() {
            rule["id"] = json!(format!("r{number}"));
            if chaos[family].is_null() {
                chaos[family] = json!([]);
            }
            chaos[family].as_array_mut().expect("a list").push(rule);
        }
        let text = chaos.to_string();
        let profile = profile::parse("chaos.yaml", &text).expect("a profile");
        let findings = findings(&profile);
        let scope = scope(&text);
        let (mut fired_ever, mut acted) = (BTreeSet::new(), BTreeSet::new());
        for request in (0..4).flat_map(|_| requests()) {
            let decision = send_at(&scope.snapshot(), &request, Duration::ZERO);
            fired_ever.extend(fired(&decision).into_iter().map(str::to_owned));
            let chosen = decision.verdicts.iter();
            let chosen = chosen.filter(|verdict| verdict.outcome == VerdictOutcome::Chosen);
            acted.extend(chosen.map(|verdict| verdict.rule.id.clone()));
        }
        for (doubts, happened) in [
            (&["can never match", "can never fire"][..], &fired_ever),
            (&["can never act", "has no effect"], &acted),
        ] {
            for (doubt, id) in doubts.iter().flat_map(|doubt| happened.iter().map(move |id| (doubt, id))) {
                let said = format!("rule `{id}` {doubt}");
                let wrong = findings.iter().find(|finding| finding.contains(&said));
                prop_assert_eq!(wrong, None, "{}", text);
            }
        }
        if findings.iter().any(|finding| finding.contains("would do nothing")) {
            prop_assert_eq!(acted.len(), 0, "{}", text);
        }
    }
}
