//! `no_retry_of_permanent`: a permanently failed request is not retried unchanged.

use super::{Narrow, failed_for, holds, is_nameless, no_retries};
use crate::count::count;
use crate::invariants::{Check, InvariantKind, Subject, Verdict};
use crate::trace::{Attempt, FailureClass};

pub(super) const NO_RETRY_OF_PERMANENT: InvariantKind =
    InvariantKind::wire("no_retry_of_permanent", |fields| {
        let narrow = Narrow::read(fields)?;
        Some(Check::new(move |subject| judged(subject, &narrow)))
    });

fn judged(subject: &Subject<'_>, narrow: &Narrow) -> Verdict {
    let is_permanent = |one: &Attempt| failed_for(one, FailureClass::Permanent);
    let (mut failures, mut unknown) = (0, false);
    for attempts in narrow.calls(subject.trace) {
        failures += usize::from(attempts.iter().any(|one| is_permanent(one)));
        for pair in attempts.windows(2) {
            if !is_permanent(pair[0]) || is_changed(pair[0], pair[1]) {
                continue;
            }
            let is_known = |one: &Attempt| one.identity.is_some() && one.credentials.is_some();
            if !is_known(pair[0]) || !is_known(pair[1]) {
                unknown = true;
                continue;
            }
            let why = pair[0].failure.as_ref().map(|failure| failure.why.as_str());
            return Verdict::fails(format!(
                "{}: {}; {} repeated the same request",
                pair[0].name(),
                why.unwrap_or_default(),
                pair[1].id
            ))
            .at(pair[0]);
        }
    }
    let mut attempts = narrow.attempts(subject.trace);
    if attempts.any(|one| is_nameless(one) && is_permanent(one)) {
        return no_retries(narrow, subject.trace);
    }
    if unknown {
        let reason = "whether the request was repeated with other credentials is not known";
        return Verdict::insufficient(reason);
    }
    match failures {
        0 => Verdict::insufficient("nothing failed for good"),
        failures => holds(
            subject.trace,
            format!("{} not retried", count(failures, "permanent error")),
        ),
    }
}

/// Whether a request differs from the previous one, even if only in its credentials.
fn is_changed(one: &Attempt, other: &Attempt) -> bool {
    let differ = |one: Option<u64>, other: Option<u64>| {
        one.zip(other).is_some_and(|(one, other)| one != other)
    };
    differ(one.identity, other.identity) || differ(one.credentials, other.credentials)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    #[rustfmt::skip]
    fn the_same_again_after_a_permanent_error_fails() {
        let written = "{type: no_retry_of_permanent}";
        let post = |body: &str, status| Sent::post("https://t.test/", body).status(status);
        let quota = || post("{}", 429).answer_body(r#"{"error":{"code":"insufficient_quota"}}"#);
        for (sent, expected) in [
            (vec![post("{}", 401), post("{}", 401)], Fails),
            (vec![post("{}", 422), post("{\"a\":1}", 200)], Holds),
            (vec![post("{}", 400)], Holds),
            (vec![quota(), quota()], Fails),
            // Official clients retry these.
            (vec![post("{}", 409), post("{}", 409)], Unproven),
            (vec![post("{}", 501), post("{}", 501)], Unproven),
            (vec![quota().injected("quota_exhausted", json!({})), post("{}", 200)], Fails),
            (vec![post("{}", 503), post("{}", 200)], Unproven),
            (vec![post("{}", 200), post("{}", 200)], Unproven),
            (vec![post("", 404).unread(), post("", 404).unread()], Unproven),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
    }

    #[test]
    fn a_content_filter_does_not_change_its_mind() {
        let filtered = |finish: &str| {
            let mut sent = Sent::model(r#"[{"role":"user","content":"x"}]"#);
            sent.record.llm.get_or_insert_default().finish = Some(finish.into());
            sent
        };
        let other = || Sent::model(r#"[{"role":"user","content":"y"}]"#);
        let written = "{type: no_retry_of_permanent}";
        for (sent, expected) in [
            (vec![filtered("filtered"), filtered("filtered")], Fails),
            (vec![filtered("filtered"), other()], Holds),
            (vec![filtered("done"), filtered("done")], Unproven),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
        let too_large = || {
            other()
                .status(429)
                .answer_body(r#"{"error":{"message":"Request too large for gpt-4o"}}"#)
        };
        assert_eq!(judged(written, &[too_large(), too_large()]), Fails);
    }

    #[test]
    fn a_key_says_nothing_of_a_body_that_was_not_read() {
        let keyed = || Sent::post("https://t.test/", "").unread().status(422);
        let keyed = || keyed().header("Idempotency-Key", "k");
        assert_eq!(
            judged("{type: no_retry_of_permanent}", &[keyed(), keyed()]),
            Unproven
        );
    }

    #[test]
    fn other_credentials_make_another_request() {
        let shown = |credentials| Sent::get("https://t.test/").status(401).shows(credentials);
        let written = "{type: no_retry_of_permanent}";
        for (first, second, expected) in [
            (Some(1), Some(2), Holds),
            (Some(1), Some(1), Fails),
            (Some(1), None, Unproven),
        ] {
            let sent = [shown(first), shown(second)];
            assert_eq!(judged(written, &sent), expected, "{first:?} {second:?}");
        }
    }
}
