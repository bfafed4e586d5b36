//! Promises about chance: a seed replays, and nobody moves another's luck.

use std::collections::BTreeSet;
use std::sync::Mutex;

use proptest::prelude::*;
use squall_profiles::activation::Activation;

use crate::scope::*;

/// A rule that fires with a probability.
fn rule(id: &str, probability: f64) -> String {
    format!("{{ id: {id}, mode: slow, probability: {probability} }}")
}

fn tool_faults(rules: &[String]) -> String {
    format!("tool_faults: [{}]", rules.join(", "))
}

/// Draws of one rule, by request.
fn draws(scope: &Activation, id: &str, requests: &[Request]) -> Vec<Option<(u32, u64)>> {
    let draw = |request: &Request| {
        let decision = send(scope, request);
        let verdict = decision
            .verdicts
            .iter()
            .find(|verdict| verdict.rule.id == id)?;
        Some((verdict.drawn?.value, decision.attempt?))
    };
    requests.iter().map(draw).collect()
}

fn requests(numbers: &[u8]) -> Vec<Request> {
    numbers
        .iter()
        .map(|n| post("http://x/", &format!("{{\"n\": {n}}}")))
        .collect()
}

proptest! {
    #[test]
    fn the_same_seed_and_key_give_the_same_draws_in_any_order(
        seed: u64,
        key in "[a-z/0-9]{0,8}",
        numbers in prop::collection::btree_set(any::<u8>(), 1..40),
        shuffle: u64,
    ) {
        let set = rules(&tool_faults(&[rule("a", 0.5)]));
        let forth: Vec<u8> = numbers.into_iter().collect();
        let mut back = forth.clone();
        back.sort_by_key(|n| u64::from(*n).wrapping_mul(shuffle | 1));
        let one = draws(&activation(set.clone(), seed, &key), "a", &requests(&forth));
        let other = draws(&activation(set, seed, &key), "a", &requests(&back));
        let sorted = |numbers: Vec<u8>, draws: Vec<_>| -> BTreeSet<_> {
            numbers.into_iter().zip(draws).collect()
        };
        prop_assert_eq!(sorted(forth, one), sorted(back, other));
    }

    #[test]
    fn g15_editing_one_rule_moves_no_others_draws(
        seed: u64,
        numbers in prop::collection::vec(0u8..4, 1..40),
        edited in prop_oneof![
            Just(None),
            Just(Some("{ id: b, mode: error, probability: 1 }".to_owned())),
            Just(Some("{ id: b, mode: error, limit: 3, probability: 0.9 }".to_owned())),
            Just(Some("{ id: b, mode: slow, jitter_ms: 5, methods: GET }".to_owned())),
            Just(Some("{ id: c, mode: stale, probability: 0.1 }".to_owned())),
        ],
    ) {
        let before = [rule("b", 0.3), rule("a", 0.5)];
        let after: Vec<_> = edited.into_iter().chain([rule("a", 0.5)]).collect();
        let requests = requests(&numbers);
        let one = draws(&activation(rules(&tool_faults(&before)), seed, "k"), "a", &requests);
        let other = draws(&activation(rules(&tool_faults(&after)), seed, "k"), "a", &requests);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn another_seed_key_or_attempt_gives_other_draws(seed: u64) {
        let set = rules(&tool_faults(&[rule("a", 0.5)]));
        let twice = requests(&[1, 1, 2, 3]);
        let base = draws(&activation(set.clone(), seed, "k"), "a", &twice);
        prop_assert_ne!(&base, &draws(&activation(set.clone(), seed ^ 1, "k"), "a", &twice));
        prop_assert_ne!(&base, &draws(&activation(set, seed, "l"), "a", &twice));
        prop_assert_eq!((base[0].unwrap().1, base[1].unwrap().1), (1, 2));
    }
}

/// Makes `calls` calls from 64 threads at once and gives what became of them.
fn at_once<T: Send>(calls: usize, look: impl Fn(usize) -> T + Sync) -> Vec<T> {
    const THREADS: usize = 64;
    let results = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (results, look) = (&results, &look);
            threads.spawn(move || {
                let mine: Vec<T> = (thread..calls).step_by(THREADS).map(look).collect();
                results.lock().expect("no thread panics").extend(mine);
            });
        }
    });
    results.into_inner().expect("no thread panics")
}

#[test]
fn concurrency_changes_no_draw() {
    let set = rules(&tool_faults(&[rule("a", 0.5)]));
    let request = |n: usize| post("http://x/", &format!("{{\"n\": {n}}}"));
    let alone = activation(set.clone(), 7, "k");
    let one: BTreeSet<_> = (0..2000)
        .map(|n| (n, draws(&alone, "a", &[request(n)])[0]))
        .collect();
    let crowded = activation(set, 7, "k");
    let other: BTreeSet<_> = at_once(2000, |n| (n, draws(&crowded, "a", &[request(n)])[0]))
        .into_iter()
        .collect();
    assert_eq!(one, other);
}

#[test]
fn counters_are_exact_under_concurrency() {
    let scope = scope("tool_faults: [{ id: a, mode: slow, after_calls: 100, limit: 50 }]");
    let seen = at_once(6400, |_| {
        let decision = send(&scope, &get("http://x/"));
        (decision.verdicts[0].ordinal, !fired(&decision).is_empty())
    });
    let ordinals: BTreeSet<u64> = seen.iter().map(|(ordinal, _)| *ordinal).collect();
    assert_eq!(ordinals, (1..=6400).collect());
    assert_eq!(seen.iter().filter(|(_, fired)| *fired).count(), 50);
    assert!(seen.iter().all(|(ordinal, fired)| !fired || *ordinal > 100));
}

/// Share of 5,000 requests that fire, against five standard errors of the binomial distribution.
/// The seed is fixed, so this either always holds or never.
#[test]
fn observed_rates_lie_within_binomial_bounds() {
    const CALLS: u32 = 5_000;
    for (probability, exact) in [
        (0.0, true),
        (0.01, false),
        (0.25, false),
        (0.5, false),
        (0.99, false),
        (1.0, true),
    ] {
        for key in ["retries of one request", "requests of their own"] {
            let scope = activation(rules(&tool_faults(&[rule("a", probability)])), 42, key);
            let hits = (0..CALLS).filter(|n| {
                let n = if key == "retries of one request" {
                    0
                } else {
                    *n
                };
                !fired(&send(
                    &scope,
                    &post("http://x/", &format!("{{\"n\": {n}}}")),
                ))
                .is_empty()
            });
            let found = f64::from(u32::try_from(hits.count()).unwrap());
            let expected = f64::from(CALLS) * probability;
            let error = (expected * (1.0 - probability)).sqrt();
            let tolerance = if exact { 0.0 } else { 5.0 * error };
            assert!(
                (found - expected).abs() <= tolerance,
                "{probability}, {key}: {found}"
            );
        }
    }
}

#[test]
fn nothing_is_fingerprinted_that_no_draw_needs() {
    for (rule, drawn) in [
        ("{ mode: error }", false),
        ("{ mode: error, probability: 1 }", false),
        ("{ mode: error, probability: 0 }", false),
        ("{ mode: error, probability: 0.5 }", true),
        ("{ mode: slow, jitter_ms: 1 }", true),
        ("{ mode: malicious_response }", true),
        ("{ mode: error, probability: 0.5, methods: PUT }", false),
    ] {
        let decision = send(&scope(&format!("tool_faults: [{rule}]")), &get("http://x/"));
        assert_eq!(
            (decision.fingerprint.is_some(), decision.attempt.is_some()),
            (drawn, drawn),
            "{rule}"
        );
    }
}
