//! `honours_retry_after`: a retry is not earlier than the response requested.
//!
//! Synthetic responses count like real ones. Tolerance: 50 ms or 5 %, whichever is larger.

use std::time::Duration;

use super::{Narrow, holds, no_retries};
use crate::invariants::{Check, InvariantKind, Verdict};
use crate::trace::gap;

pub(super) const HONOURS_RETRY_AFTER: InvariantKind =
    InvariantKind::wire("honours_retry_after", |fields| {
        let narrow = Narrow::read(fields)?;
        Some(Check::new(move |subject| {
            let (mut waits, mut announced) = (0, 0);
            for attempts in narrow.calls(subject.trace) {
                for pair in attempts.windows(2) {
                    let Some(wait) = pair[0].retry_after else {
                        continue;
                    };
                    waits += 1;
                    let pause = gap(pair[0], pair[1]);
                    if pause + Duration::from_millis(50).max(wait / 20) < wait {
                        return Verdict::fails(format!(
                            "{} asked for {} ms; {} came after {} ms",
                            pair[0].name(),
                            wait.as_millis(),
                            pair[1].id,
                            pause.as_millis()
                        ))
                        .at(pair[0]);
                    }
                }
                let with_wait = attempts.iter().filter(|one| one.retry_after.is_some());
                announced += with_wait.count();
            }
            match (waits, announced) {
                (0, 0) => Verdict::insufficient("no response had a `Retry-After`"),
                (0, _) => no_retries(&narrow, subject.trace),
                (waits, _) => holds(
                    subject.trace,
                    format!("retries that waited as long as `Retry-After` says: {waits}"),
                ),
            }
        }))
    });

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn an_early_retry_fails_and_a_late_one_does_not() {
        let limited = || {
            Sent::get("https://t.test/")
                .status(429)
                .answer_header("Retry-After", "2")
        };
        let again = |at: u64| Sent::get("https://t.test/").at(at);
        let written = "{type: honours_retry_after}";
        // The response ended after 10 ms.
        for (at, expected) in [
            (2010, Holds),
            (1911, Holds),
            (1909, Fails),
            (20, Fails),
            (9000, Holds),
        ] {
            assert_eq!(
                judged(written, &[limited().at(0), again(at)]),
                expected,
                "{at}"
            );
        }
        // The request is at 12:00:00.900, and the response requests a retry at 12:00:02. The server's clock may
        // differ from the proxy's.
        let dated = |date: &[&str]| {
            let mut sent = Sent::get("https://t.test/").status(503).at(0);
            sent.record.started_at = "2026-11-22T12:00:00.890Z".into();
            let sent = sent.answer_header("Retry-After", "Sun, 22 Nov 2026 12:00:02 GMT");
            let add = |sent: Sent, date: &&str| sent.answer_header("Date", date);
            date.iter().fold(sent, add)
        };
        for (date, at, expected) in [
            (&[][..], 1110, Holds),
            (&[], 1000, Fails),
            (&["Sun, 22 Nov 2026 12:00:00 GMT"], 1110, Holds),
            (&["Sun, 22 Nov 2026 12:00:00 GMT"], 900, Fails),
        ] {
            let sent = [dated(date), again(at)];
            assert_eq!(judged(written, &sent), expected, "{date:?} {at}");
        }
        assert_eq!(judged(written, &[limited()]), Unproven);
        assert_eq!(judged(written, &[again(0)]), Unproven);
        let of_the_rule = limited()
            .injected("rate_limit", json!({ "retry_after": 5.0 }))
            .at(0);
        assert_eq!(judged(written, &[of_the_rule, again(2010)]), Holds);
    }
}
