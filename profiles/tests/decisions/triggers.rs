//! When a matching rule fires.

use std::sync::Arc;
use std::time::Duration;

use squall_dialects::model::{LimitScope, ModelError};
use squall_profiles::activation::{Activation, ActivationSpec, Observe};
use squall_profiles::decide::Decision;
use squall_profiles::plan::PlannedAnswer;
use squall_profiles::spending::Used;
use squall_profiles::tools::ToolNames;
use squall_profiles::verdict::VerdictOutcome;

use crate::scope::*;

/// On which of ten calls a rule fires.
fn fires(scope: &Activation) -> Vec<u64> {
    (1..=10)
        .filter(|_| !fired(&send(scope, &get("http://x/"))).is_empty())
        .collect()
}

#[test]
fn counters_follow_the_calls_of_the_scope() {
    for (trigger, expected) in [
        ("after_calls: 7", vec![8, 9, 10]),
        ("limit: 2", vec![1, 2]),
        ("limit: 0", vec![]),
        ("every: 4", vec![4, 8]),
        ("calls: [1, 3, 3]", vec![1, 3]),
        ("after_calls: 2, limit: 2", vec![3, 4]),
        ("every: 3, limit: 2", vec![3, 6]),
        ("probability: 0", vec![]),
        ("probability: 1", (1..=10).collect()),
    ] {
        let rule = format!("tool_faults: [{{ mode: empty, {trigger} }}]");
        let scope = scope(&rule);
        let other = scope.fork("other");
        assert_eq!(fires(&scope), expected, "{trigger}");
        assert_eq!(fires(&other), expected, "{trigger} in a scope of its own");
    }
}

#[test]
fn limited_rules_fire_on_the_listed_calls_and_on_no_other() {
    let all = rules(
        "tool_faults:
           - { id: a, mode: slow, probability: 0.1, limit: 1, armed_by: { rule: b } }
           - { id: b, mode: slow, after_calls: 9 }
           - { id: c, mode: slow }",
    );
    let firings = [("a", 2), ("b", 3), ("a", 5), ("gone", 1)];
    let firings = firings.map(|(rule, call)| (rule.to_owned(), call));
    let limited = all
        .limited(&firings, &ToolNames::default())
        .expect("it compiles");
    let scope = activation(Arc::new(limited), 42, "default");
    let found: Vec<_> = (0..6)
        .map(|_| fired(&send(&scope, &get("http://x/"))).join(" "))
        .collect();
    assert_eq!(found, ["", "a", "b", "", "a", ""]);
}

#[test]
fn two_rules_on_one_url_count_apart() {
    let scope = scope(
        "tool_faults:
           - { id: a, mode: slow, after_calls: 1 }
           - { id: b, mode: slow, methods: POST, after_calls: 1 }",
    );
    let calls = [
        get("http://x/"),
        get("http://x/"),
        post("http://x/", ""),
        post("http://x/", ""),
    ];
    let found = calls.map(|call| fired(&send(&scope, &call)).join(" "));
    assert_eq!(found, ["", "a", "a", "a b"]);
}

#[test]
fn a_rate_limit_lets_a_minutes_worth_pass_and_says_when_more_does() {
    let body = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
    let call = model_call(body);
    let tokens = squall_dialects::tokens::count(squall_dialects::tokens::Counting::O200k, body);
    let second = Duration::from_secs(1);
    for (limit, scope_of, unit) in [
        ("rpm: 2".to_owned(), LimitScope::Requests, 1),
        (format!("tpm: {}", 2 * tokens), LimitScope::Tokens, tokens),
        (
            format!("rpm: 2, tpm: {}", 100 * tokens),
            LimitScope::Requests,
            1,
        ),
    ] {
        let scope = scope(&format!("llm_faults: [{{ mode: rate_limit, {limit} }}]"));
        let snapshot = scope.snapshot();
        let send = |seconds: u32| send_at(&snapshot, &call, second * seconds);
        for passing in [send(0), send(0)] {
            assert_eq!(passing.plan.instead, None, "{limit}");
            let why = outcomes(&passing).concat();
            assert!(why.contains("within what `rpm` and `tpm` allow"), "{why}");
        }
        for (limited, wait) in [(send(0), 30), (send(10), 20)] {
            let Some((
                0,
                PlannedAnswer::ModelError(ModelError::RateLimit {
                    scope,
                    retry_after,
                    figures: Some(figures),
                }),
            )) = limited.plan.instead
            else {
                panic!("{limit}: {:?}", limited.plan.instead);
            };
            assert_eq!((scope, retry_after), (scope_of, Some(second * wait)));
            assert_eq!((figures.per_minute, figures.requested), (2 * unit, unit));
            assert!(figures.remaining() < unit, "{figures:?}");
        }
        assert_eq!(send(30).plan.instead, None, "{limit}");
        let other = scope.fork("other");
        assert_eq!(send_at(&other.snapshot(), &call, second).plan.instead, None);
    }
}

#[test]
fn a_quota_is_exhausted_once_the_matching_calls_have_used_it_up() {
    let scope = scope(
        "llm_faults:
           - { id: tokens, mode: quota_exhausted, after_tokens: 500, limit: 1 }
           - { id: other, mode: quota_exhausted, after_tokens: 1, model: 'claude-*' }
           - { id: money, mode: quota_exhausted, after_usd: 0.01 }",
    );
    let call = model_call("{}");
    let exhausted = Some(PlannedAnswer::ModelError(ModelError::QuotaExhausted));
    let answer = |decision: &Decision| decision.plan.instead.clone().map(|(_, answer)| answer);
    let used = |input, output| Used {
        input,
        output,
        estimated: 0,
    };

    let mut first = send(&scope, &call);
    assert_eq!(answer(&first), None);
    let mut charge = first.charge().expect("two rules have a budget");
    charge.set(Some("gpt-4o"), used(300, 100));
    let second = send(&scope, &call);
    assert_eq!(answer(&second), None);
    assert_eq!(
        outcomes(&second),
        [
            "tokens: not drawn, 400 of `after_tokens: 500` used up",
            "money: not drawn, $0.00175 of `after_usd: 0.01` spent",
        ]
    );
    charge.set(Some("gpt-4o"), used(300, 200));
    let mut third = send(&scope, &call);
    assert_eq!(answer(&third), exhausted);
    let spent = third.verdicts[0].spent.as_ref().expect("it hung on that");
    assert_eq!((spent.calls, spent.tokens()), (1, 500));
    // `limit` is used up, and the dollars are not.
    assert_eq!(answer(&send(&scope, &call)), None);
    let mut charge = third.charge().expect("two rules have a budget");
    charge.set(Some("gpt-4o"), used(0, 725));
    assert_eq!(fired(&send(&scope, &call)), ["money"]);
    // Every scope has its own.
    assert_eq!(answer(&send(&scope.fork("other"), &call)), None);
    // Rules that stay as they are keep what was counted.
    let edited = scope.rules();
    scope.replace_rules(edited);
    assert_eq!(fired(&send(&scope, &call)), ["money"]);
}

#[test]
#[rustfmt::skip]
fn a_budget_that_cannot_be_counted_is_bypassed_with_the_reason() {
    let text = "llm_faults: [{ id: quota, mode: quota_exhausted, after_usd: 1 }]";
    let named = |model| Request {
        model,
        ..model_call("{}")
    };
    for (observe, call, why) in [
        (Observe::Model, named(Some("my-model")), "no price is known for `my-model`"),
        (Observe::Model, named(None), "the model is not known"),
        (Observe::Headers, model_call("{}"), "usage is not read with `observe: headers`"),
    ] {
        let spec = ActivationSpec {
            profile: "p".into(),
            seed: 1,
            key: None,
            observe,
        };
        let scope = Activation::new("a".into(), "s".into(), spec, rules(text));
        let mut decision = send(&scope, &call);
        assert_eq!(decision.plan.instead, None);
        let VerdictOutcome::Bypassed(found) = &decision.verdicts[0].outcome else {
            panic!("{:?}", decision.verdicts);
        };
        assert!(found.starts_with(why), "{found}");
        assert_eq!(decision.charge().is_some(), observe == Observe::Model);
    }
}

#[test]
fn windows_and_ramps_follow_the_clock_they_are_given() {
    let scope = scope(
        "tool_faults:
           - { id: window, mode: slow, window: { after: 10s, for: 5s } }
           - { id: open, mode: slow, window: { after: 12s } }
           - { id: down, mode: slow, ramp: { from: 1, to: 0, over: 10s } }",
    );
    for (seconds, expected) in [
        (0, "down"),
        (10, "window"),
        (12, "window open"),
        (14, "window open"),
        (15, "open"),
    ] {
        let elapsed = Duration::from_secs(seconds);
        let decision = send_at(&scope.snapshot(), &get("http://x/"), elapsed);
        assert_eq!(fired(&decision).join(" "), expected, "{seconds} s");
    }
}

#[test]
fn a_rule_is_armed_by_another_for_the_next_exchange() {
    let scope = scope(
        "tool_faults:
           - { id: first, mode: empty, methods: POST }
           - { id: second, mode: slow, armed_by: { rule: first } }",
    );
    let calls = [get("http://x/"), post("http://x/", ""), get("http://x/")];
    let found = calls.map(|call| fired(&send(&scope, &call)).join(" "));
    assert_eq!(found, ["", "first", "second"]);
}

#[test]
fn a_rule_is_armed_by_an_exchange_and_by_how_it_was_answered() {
    let chaos = "tool_faults:
        - { id: late, mode: slow, armed_by: { match_url: 'http://x/login' } }
        - { id: paid, mode: slow, armed_by: { methods: POST, status: 2xx } }";
    let scope = scope(chaos);
    let send_and_answer = |request: &Request, status| {
        let snapshot = scope.snapshot();
        let mut decision = send_at(&snapshot, request, Duration::ZERO);
        if decision.awaits_response() {
            snapshot.on_response(&mut decision, status, Duration::ZERO);
        }
        fired(&decision).join(" ")
    };
    for (request, status, expected) in [
        (get("http://x/"), 200, ""),
        (post("http://x/pay", ""), 500, ""),
        (get("http://x/login"), 200, ""),
        (get("http://x/"), 200, "late"),
        (post("http://x/pay", ""), 201, "late"),
        (get("http://x/"), 200, "late paid"),
    ] {
        assert_eq!(send_and_answer(&request, status), expected, "{request:?}");
    }
}

#[test]
fn every_reason_is_given() {
    let scope = scope(
        "tool_faults:
           - { id: a, mode: slow, after_calls: 2 }
           - { id: b, mode: slow, limit: 0 }
           - { id: c, mode: slow, probability: 0 }
           - { id: d, mode: slow, probability: 0.000001 }
           - { id: e, mode: slow, armed_by: { rule: a } }
           - { id: f, mode: slow, window: { after: 1m } }
           - { id: g, mode: slow, window: { after: 500ms, for: 1s } }
           - { id: h, mode: slow, every: 3 }
           - { id: i, mode: slow, calls: [2, 3] }",
    );
    let elapsed = Duration::from_secs(3);
    let decision = send_at(&scope.snapshot(), &get("http://x/"), elapsed);
    insta::assert_snapshot!(outcomes(&decision).join("\n"));
    assert!(decision.plan.is_empty());
    let ordinals: Vec<_> = decision
        .verdicts
        .iter()
        .map(|verdict| verdict.ordinal)
        .collect();
    assert_eq!(ordinals, [1; 9]);
}

#[test]
fn an_edit_keeps_the_counters_of_what_it_leaves_alone() {
    let before = "tool_faults: [{ id: a, mode: slow, after_calls: 2 }, { id: b, mode: slow, after_calls: 2 }]";
    let after = "tool_faults: [{ id: b, mode: stale, after_calls: 2 }, { id: a, mode: slow, after_calls: 2 }]";
    let scope = scope(before);
    let began_before = scope.snapshot();
    let call = |_| fired(&send(&scope, &get("http://x/"))).join(" ");
    assert_eq!([1, 2].map(call), ["", ""]);
    scope.replace_rules(rules(after));
    // `a` has let its two pass; `b` says something else now and begins again.
    assert_eq!([3, 4, 5].map(call), ["a", "a", "b a"]);
    // An exchange keeps the rules it began with.
    let old = send_at(&began_before, &get("http://x/"), Duration::ZERO);
    assert_eq!(fired(&old).join(" "), "a b");
}

#[test]
fn at_most_sixty_four_rules_that_did_not_fire_are_listed() {
    let rules = "{ mode: slow, limit: 0 }, ".repeat(100);
    let scope = scope(&format!(
        "tool_faults: [{rules} {{ id: last, mode: slow }}]"
    ));
    let decision = send(&scope, &get("http://x/"));
    assert_eq!((decision.verdicts.len(), decision.more), (65, 36));
    assert_eq!(fired(&decision), ["last"]);
}
