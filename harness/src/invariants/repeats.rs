//! `variance`, `outliers`: how much the repeats of one prompt in one scenario differ.

use squall_documents::Fields;
use statrs::statistics::Statistics as _;

use super::measures::{Measure, Measured, quantile};
use super::{Check, InvariantKind, Subject, Verdict};

/// `max`: the largest sample standard deviation, in percent of the mean.
pub(super) const VARIANCE: InvariantKind = InvariantKind::answer("variance", |fields| {
    let of = measure(fields);
    let about = "The largest standard deviation of the repeats, in percent of their mean.";
    let most = fields.real("max", about, 0.0..=f64::MAX, " percent");
    fields.require(
        "max",
        "the largest standard deviation in percent of the mean",
    );
    let (of, most) = (of?, most?);
    Some(over_repeats(of, 3, move |values, _| {
        let mean = values.iter().mean();
        let share = match values.iter().std_dev() {
            none if none <= 0.0 => 0.0,
            deviation => deviation / mean * 100.0,
        };
        let name = of.as_str();
        let reason = format!(
            "{name} of {} repeats: mean {}, standard deviation {share:.1} % of it, at most {most} %",
            values.len(),
            rounded(mean)
        );
        Verdict::of(share <= most, reason)
    }))
});

/// `fences`: how many interquartile ranges outside the quartiles a value may be (J. W. Tukey, 1977).
pub(super) const OUTLIERS: InvariantKind = InvariantKind::answer("outliers", |fields| {
    let of = measure(fields);
    let about = "How far outside the quartiles, in interquartile ranges; default 1.5.";
    let fences = fields.real("fences", about, 0.0..=1000.0, " interquartile ranges");
    let (of, fences) = (of?, fences.unwrap_or(1.5));
    Some(over_repeats(of, 5, move |values, own| {
        let (low, high) = (quantile(values, 0.25), quantile(values, 0.75));
        let reach = (high - low) * fences;
        let (low, high) = (low - reach, high + reach);
        let reason = format!(
            "{} {}; the fences of {} repeats are {} and {}",
            of.as_str(),
            rounded(own),
            values.len(),
            rounded(low),
            rounded(high)
        );
        // Interpolation between equal values rounds.
        let margin = own.abs() * 1e-9;
        Verdict::of(low - margin <= own && own <= high + margin, reason)
    }))
});

/// At most six decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn measure(fields: &mut Fields<'_, '_>) -> Option<Measure> {
    let of = fields.word("of", "What is measured.", "measure", Measure::NAMES);
    fields.require("of", "`latency`, `length`, `cost` or `calls`");
    of
}

/// A check of the values of all repeats, and of this one.
fn over_repeats(
    of: Measure,
    least: usize,
    judge: impl Fn(&[f64], f64) -> Verdict + Send + Sync + 'static,
) -> Check {
    let check = Check::new(move |subject: &Subject<'_>| {
        let own = Measured::of(subject.answer, subject.trace, subject.prices);
        let values = subject.repeats.iter().filter_map(|one| one.value(of));
        let values: Vec<_> = values.collect();
        let name = of.as_str();
        match own.value(of) {
            None => Verdict::insufficient(format!(
                "the {name} of this invocation is unknown: calls or tokens are missing, or a model has no price"
            )),
            Some(_) if values.len() < least => Verdict::insufficient(format!(
                "{} with a known {name}, at least {least} are needed; pass `--repeat {least}` or more",
                crate::count::count(values.len() as u64, "repeat")
            )),
            Some(_) if of == Measure::Calls && values.iter().all(|calls| *calls <= 0.0) => {
                Verdict::insufficient("no call of the agent came through the proxy")
            }
            Some(own) => judge(&values, own),
        }
    });
    Check {
        repeats: least,
        ..check
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::answer::AgentAnswer;
    use crate::invariants::measures::Measured;
    use crate::invariants::testing::{Outcome, Outcome::*, errors_of, invariant, subject};
    use crate::invariants::{Prices, Subject};
    use crate::trace::Trace;

    fn answer((ms, text): &(u64, &str)) -> AgentAnswer {
        AgentAnswer {
            latency: Duration::from_millis(*ms),
            ..AgentAnswer::of(*text)
        }
    }

    /// The verdict on each repeat.
    fn judged(written: &str, repeats: &[(u64, &str)]) -> Vec<Outcome> {
        let invariant = invariant(written);
        let answers: Vec<_> = repeats.iter().map(answer).collect();
        let of = |answer| Measured::of(answer, &Trace::default(), &Prices::default());
        let measured: Vec<_> = answers.iter().map(of).collect();
        let repeats = &*measured;
        let judge = |subject: &Subject<'_>| {
            (&invariant.judge(&Subject {
                repeats,
                ..*subject
            }))
                .into()
        };
        answers
            .iter()
            .map(|one| subject("hello", one, None, judge))
            .collect()
    }

    #[test]
    #[rustfmt::skip]
    fn repeats_that_differ_too_much_fail_all_of_them() {
        let steady = [(100, "four"), (110, "four"), (90, "four")];
        let erratic = [(100, "four"), (100, ""), (400, "sixteen letters!")];
        for (written, repeats, expected) in [
            ("{type: variance, of: latency, max: 10}", &steady[..], Holds),
            ("{type: variance, of: latency, max: 9.9}", &steady, Fails),
            ("{type: variance, of: latency, max: 50}", &erratic, Fails),
            ("{type: variance, of: length, max: 0}", &steady, Holds),
            ("{type: variance, of: length, max: 100}", &erratic, Fails),
            ("{type: variance, of: length, max: 0, negate: true}", &erratic, Holds),
            ("{type: variance, of: calls, max: 0}", &steady, Unproven),
            ("{type: variance, of: cost, max: 0}", &steady, Unproven),
            ("{type: variance, of: length, max: 0}", &steady[..2], Unproven),
        ] {
            assert_eq!(judged(written, repeats), vec![expected; repeats.len()], "{written}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn only_the_repeat_outside_the_fences_fails() {
        let five = |last| [(100, "a"), (104, "a"), (96, "a"), (102, "a"), (last, "a")];
        let with_last = |last| [Holds, Holds, Holds, Holds, last];
        let latency = "{type: outliers, of: latency}";
        for (written, last, expected) in [
            (latency, 98, Holds),
            (latency, 500, Fails),
            (latency, 1, Fails),
            ("{type: outliers, of: latency, fences: 100}", 500, Holds),
            ("{type: outliers, of: length}", 500, Holds),
        ] {
            assert_eq!(judged(written, &five(last)), with_last(expected), "{written} {last}");
        }
        assert_eq!(judged(latency, &five(500)[1..]), [Unproven; 4]);
    }

    #[test]
    fn a_measure_and_a_limit_are_required() {
        for (written, expected) in [
            ("{type: variance, of: latency}", "`max`"),
            ("{type: variance, max: 3}", "`of`"),
            ("{type: outliers, of: size}", "`size`"),
        ] {
            let errors = errors_of(written);
            assert!(errors[0].contains(expected), "{written}: {errors:?}");
        }
    }
}
