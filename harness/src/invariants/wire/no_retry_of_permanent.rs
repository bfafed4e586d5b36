//! `no_retry_of_permanent`: what will never work is not tried again unchanged.

use super::{Narrow, failed_for, holds, is_nameless, no_retries, wire};
use crate::invariants::{Check, Kind, Subject, Verdict};
use crate::trace::Class;

pub(super) const NO_RETRY_OF_PERMANENT: Kind = wire("no_retry_of_permanent", |fields| {
    Some(Box::new(NoRetry(Narrow::read(fields)?)))
});

#[derive(Debug)]
struct NoRetry(Narrow);

impl Check for NoRetry {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let mut failures = 0;
        for attempts in self.0.calls(subject.trace) {
            for pair in attempts.windows(2) {
                let unchanged = pair[0].identity.is_none() || pair[0].identity == pair[1].identity;
                if failed_for(pair[0], Class::Permanent) && unchanged {
                    let why = pair[0].failure.as_ref().map(|failure| failure.why.as_str());
                    return Verdict::Fails(format!(
                        "{}: {}, and {} asked the same again",
                        pair[0].name(),
                        why.unwrap_or_default(),
                        pair[1].id
                    ));
                }
            }
            failures += usize::from(attempts.iter().any(|one| failed_for(one, Class::Permanent)));
        }
        let nameless =
            |one: &&crate::trace::Attempt| is_nameless(one) && failed_for(one, Class::Permanent);
        if self.0.attempts(subject.trace).any(|one| nameless(&one)) {
            return no_retries(&self.0, subject.trace);
        }
        match failures {
            0 => Verdict::Insufficient("nothing failed for good".to_owned()),
            failures => holds(
                subject.trace,
                format!("{failures} permanent errors were left alone"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn the_same_again_after_a_permanent_error_fails() {
        let written = "{type: no_retry_of_permanent}";
        let post = |body: &str, status| Sent::post("https://t.test/", body).status(status);
        let quota = || post("{}", 429).answer_body(r#"{"error":{"code":"insufficient_quota"}}"#);
        for (sent, expected) in [
            (vec![post("{}", 401), post("{}", 401)], Fails),
            (vec![post("{}", 422), post("{\"a\":1}", 200)], Holds),
            (vec![post("{}", 400)], Holds),
            (vec![quota(), quota()], Fails),
            // Official clients try these again.
            (vec![post("{}", 409), post("{}", 409)], Unproven),
            (vec![post("{}", 501), post("{}", 501)], Unproven),
            (
                vec![
                    quota().injected("quota_exhausted", json!({})),
                    post("{}", 200),
                ],
                Fails,
            ),
            (vec![post("{}", 503), post("{}", 200)], Unproven),
            (vec![post("{}", 200), post("{}", 200)], Unproven),
            (
                vec![post("", 404).unread(), post("", 404).unread()],
                Unproven,
            ),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
    }
}
