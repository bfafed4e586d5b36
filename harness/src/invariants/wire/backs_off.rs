//! `backs_off`: retries have delays that are long enough and vary.
//!
//! It fails only on evidence: three or more gaps all under 50 ms, any number all under 5 ms, or four or more equal
//! gaps. Full jitter may produce any gap, so their order is not judged. Gaps that a response requested are not
//! judged either.

use std::time::Duration;

use super::{Narrow, holds, no_retries};
use crate::count::count;
use crate::invariants::{Check, InvariantKind, Verdict};
use crate::trace::{Attempt, gap};

const HURRIED: Duration = Duration::from_millis(50);
const AT_ONCE: Duration = Duration::from_millis(5);
/// Relative spread of gaps below which they count as equal.
const CONSTANT: f64 = 0.05;

pub(super) const BACKS_OFF: InvariantKind = InvariantKind::wire("backs_off", |fields| {
    let narrow = Narrow::read(fields)?;
    Some(Check::new(move |subject| {
        let calls: Vec<_> = narrow.calls(subject.trace).collect();
        let mut decided = false;
        for attempts in &calls {
            let gaps = gaps(attempts);
            if let Some(why) = hurry(&gaps) {
                return Verdict::fails(format!("{}: {why}", attempts[0].name())).at(attempts[0]);
            }
            // With fewer gaps, a short delay may be caused by jitter.
            decided |= gaps.len() >= 3;
        }
        if decided {
            return holds(subject.trace, "the gaps between retries show a pause");
        }
        if calls.iter().all(|attempts| attempts.len() < 2) {
            return no_retries(&narrow, subject.trace);
        }
        Verdict::insufficient("fewer than three gaps between retries prove nothing")
    }))
});

/// The gaps that no response requested.
fn gaps(attempts: &[&Attempt]) -> Vec<Duration> {
    let pairs = attempts.windows(2);
    let own = pairs.filter(|pair| pair[0].retry_after.is_none());
    own.map(|pair| gap(pair[0], pair[1])).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a handful")]
fn hurry(gaps: &[Duration]) -> Option<String> {
    let longest = gaps.iter().max()?;
    let retries = count(gaps.len(), "retry");
    if *longest < AT_ONCE {
        return Some(format!(
            "{retries} came at once, less than 5 ms after the failure"
        ));
    }
    if gaps.len() >= 3 && *longest < HURRIED {
        let ms = longest.as_millis();
        return Some(format!("{retries} came within {ms} ms each"));
    }
    let millis: Vec<f64> = gaps.iter().map(|gap| gap.as_secs_f64() * 1000.0).collect();
    let mean = millis.iter().sum::<f64>() / gaps.len() as f64;
    let variance = millis.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let constant = gaps.len() >= 4 && variance.sqrt() < CONSTANT * mean;
    constant.then(|| format!("{retries} came after the same sleep of {mean:.0} ms"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::{self, *};
    use crate::trace::testing::Sent;

    fn with_gaps(gaps: &[u64]) -> Outcome {
        let mut at = 0;
        let failing = |at| Sent::get("https://t.test/").status(503).at(at).took(10);
        let mut sent = vec![failing(0)];
        for gap in gaps {
            at += 10 + gap;
            sent.push(failing(at));
        }
        judged("{type: backs_off}", &sent)
    }

    #[test]
    fn only_evidence_counts() {
        for (gaps, expected) in [
            (&[][..], Unproven),
            (&[0], Fails),
            (&[4, 4], Fails),
            (&[20], Unproven),
            (&[20, 40], Unproven),
            (&[20, 30, 40], Fails),
            (&[500, 1000], Unproven),
            (&[500, 1000, 2000], Holds),
            (&[500, 500, 500], Holds),
            (&[500, 500, 500, 500], Fails),
            (&[500, 505, 498, 502], Fails),
            (&[1000, 3, 250, 700], Holds),
        ] {
            assert_eq!(with_gaps(gaps), expected, "{gaps:?}");
        }
    }

    #[test]
    fn a_pause_that_was_asked_for_says_nothing() {
        let limited = |at| {
            Sent::get("https://t.test/")
                .status(429)
                .answer_header("Retry-After", "1")
                .at(at)
        };
        let sent: Vec<_> = (0..6).map(|n| limited(n * 1010)).collect();
        assert_eq!(judged("{type: backs_off}", &sent), Unproven);
    }

    proptest! {
        /// Full jitter: each gap is uniform between 0 and its limit.
        #[test]
        fn full_jitter_is_never_flagged(draws in proptest::collection::vec(0.0..1.0_f64, 4..8), base in 200_u64..2000) {
            let bound = |n: usize| (base << n).min(20_000);
            #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let gaps: Vec<u64> = draws.iter().enumerate().map(|(n, draw)| (draw * bound(n) as f64) as u64).collect();
            // Excludes gaps that are all short or all equal by chance, which is very rare.
            prop_assume!(gaps.iter().max() > Some(&50));
            let (least, most) = (gaps.iter().min().copied().unwrap_or(0), gaps.iter().max().copied().unwrap_or(0));
            prop_assume!(most - least > most / 4);
            prop_assert_ne!(with_gaps(&gaps), Fails);
        }
    }
}
