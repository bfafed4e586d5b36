//! `retries_bounded`: the maximum number of retries of a call.

use super::{Narrow, holds, is_nameless, no_retries};
use crate::count::count;
use crate::invariants::{Check, InvariantKind, Subject, Verdict};
use crate::trace::Attempt;

/// `max`: retries of one logical call, default 3 (RFC 9110 §9.2.2, and common practice of SDKs).
pub(super) const RETRIES_BOUNDED: InvariantKind =
    InvariantKind::wire("retries_bounded", |fields| {
        let narrow = Narrow::read(fields);
        let most = fields.whole("max", "Most retries; default 3.", 0..=1000, " retries");
        let (narrow, most) = (narrow?, most.unwrap_or(3));
        Some(Check::new(move |subject| judged(subject, &narrow, most)))
    });

fn judged(subject: &Subject<'_>, narrow: &Narrow, most: u64) -> Verdict {
    let calls: Vec<_> = narrow.calls(subject.trace).collect();
    let failed = |attempts: &Vec<&Attempt>| attempts.iter().any(|one| one.failure.is_some());
    let worst = calls.iter().max_by_key(|attempts| attempts.len());
    let Some(worst) = worst.filter(|attempts| attempts.len() > 1 || failed(attempts)) else {
        if calls.iter().any(failed) {
            return no_retries(narrow, subject.trace);
        }
        return Verdict::insufficient("nothing failed, so nothing had to be tried again");
    };
    let retries = worst.len() as u64 - 1;
    let reason = format!("{}: {}", worst[0].name(), count(retries, "retry"));
    if retries > most {
        return Verdict::fails(format!("{reason}; the limit is {most}")).at(worst[0]);
    }
    if narrow.attempts(subject.trace).any(is_nameless) {
        return no_retries(narrow, subject.trace);
    }
    holds(subject.trace, format!("{reason} of at most {most}"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    #[rustfmt::skip]
    fn retries_of_one_call_are_counted() {
        let failing = |count: usize| vec![Sent::get("https://t.test/a").status(503); count];
        let other = || Sent::get("https://t.test/b").status(503);
        for (written, sent, expected) in [
            ("{type: retries_bounded}", failing(4), Holds),
            ("{type: retries_bounded}", failing(5), Fails),
            ("{type: retries_bounded, max: 0}", failing(2), Fails),
            ("{type: retries_bounded, max: 0}", [failing(1), vec![other()]].concat(), Holds),
            ("{type: retries_bounded, max: 1, host: x.test}", failing(5), Unproven),
            ("{type: retries_bounded}", vec![Sent::get("https://t.test/")], Unproven),
        ] {
            assert_eq!(judged(written, &sent), expected, "{written} {}", sent.len());
        }
    }

    #[test]
    fn calls_are_told_apart_by_what_they_say_of_themselves() {
        let post = |key: &str| Sent::post("https://t.test/", "{}").header("Idempotency-Key", key);
        let keys =
            |keys: &[&str]| -> Vec<_> { keys.iter().map(|key| post(key).status(503)).collect() };
        let written = "{type: retries_bounded, max: 1}";
        assert_eq!(judged(written, &keys(&["a", "a", "a"])), Fails);
        assert_eq!(judged(written, &keys(&["a", "b", "a", "b"])), Holds);
        assert_eq!(judged(written, &keys(&["a", "b", "c", "d"])), Fails);
        let unread = vec![Sent::post("https://t.test/", "").unread().status(503); 5];
        assert_eq!(judged(written, &unread), Unproven);
        let bodies = ["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"];
        let posts = bodies.map(|body| Sent::post("https://t.test/", body).status(503));
        assert_eq!(judged(written, &posts), Holds);
        let overlapping: Vec<_> = (0..4)
            .map(|n| Sent::get("https://t.test/").status(503).at(n).took(500))
            .collect();
        assert_eq!(judged(written, &overlapping), Holds);
    }
}
