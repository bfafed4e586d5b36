//! Waiting, with chance.

use std::time::Duration;

use serde_json::{Value, json};
use squall_documents::Fields;

use crate::amounts;
use crate::changes::{ResultChange, WaitPoint};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::plan::{Bypass, Plan, PlannedAnswer, VerdictIndex};

/// Holds an exchange back.
///
/// Waits `fixed` plus a draw from `0..=jitter`, so never less than `fixed`; zero does nothing.
/// Model: the delay of Envoy's HTTP fault filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Delay {
    /// Wait given to every exchange the rule is applied to; `delay_ms` in files.
    fixed: Duration,
    /// Greatest extra wait, in microsecond steps; `jitter_ms` in files, default 0.
    jitter: Duration,
    /// Shape of the draw; default `uniform`.
    distribution: Distribution,
}

squall_documents::named! {
    /// How the extra wait spreads over `0..=jitter`. All of it is integer arithmetic, the same on every
    /// machine.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    enum Distribution {
        /// Every wait is as likely as every other.
        #[default]
        Uniform = "uniform",
        /// A bell over the whole of it: mean a half of `jitter`, standard deviation a sixth (the sum of
        /// three uniform draws).
        Normal = "normal",
        /// A heavy tail: half the waits are below 1 % of `jitter`, one in ten above 8 %, one in a
        /// hundred above half (a Pareto law of shape 1, cut off at a hundred times its least value).
        Pareto = "pareto",
        /// Nothing, but all of `jitter` for one exchange in twenty.
        Spike = "spike",
    }
}

impl Delay {
    /// Reads `delay_ms`, `jitter_ms` and `distribution`; `default` stands for an absent `delay_ms`.
    fn read(fields: &mut Fields<'_, '_>, default: Duration) -> Self {
        let about = "Milliseconds to wait, or to hold before closing.";
        let fixed = amounts::millis(fields, "delay_ms", about);
        let about = "Greatest extra wait in milliseconds; default 0.";
        let jitter = amounts::millis(fields, "jitter_ms", about);
        let about = "Shape of the extra wait; default `uniform`.";
        let distribution = fields.word("distribution", about, "distribution", Distribution::NAMES);
        if fields.has("distribution") && !fields.has("jitter_ms") {
            let message = "`distribution` shapes the extra wait; write `jitter_ms` beside it";
            fields.error("distribution", message);
        }
        Self {
            fixed: fixed.unwrap_or(default),
            jitter: jitter.unwrap_or_default(),
            distribution: distribution.unwrap_or_default(),
        }
    }

    /// How long this exchange waits.
    fn draw(&self, dice: &mut Dice) -> Duration {
        let jitter = whole_micros(self.jitter);
        if jitter == 0 {
            return self.fixed;
        }
        self.fixed + Duration::from_micros(self.distribution.draw(jitter, dice))
    }

    /// A fault that writes such a wait into a plan.
    fn fault(
        self,
        write: impl Fn(&mut Plan, VerdictIndex, Duration) -> Result<(), Bypass> + Send + Sync + 'static,
    ) -> Fault {
        let mut parameters = json!({ "delay_ms": millis(self.fixed) });
        let is_random = !self.jitter.is_zero();
        if is_random {
            parameters["jitter_ms"] = millis(self.jitter);
            parameters["distribution"] = json!(self.distribution.as_str());
        }
        Fault::new(parameters, move |plan, by, _, dice| {
            write(plan, by, self.draw(dice))
        })
        .drawing(is_random)
    }
}

const NO_WAIT: &str = "the delay is 0 ms";

/// Holds the exchange back; `default` stands for an absent `delay_ms`.
pub(super) fn wait(fields: &mut Fields<'_, '_>, default: Duration) -> Fault {
    let delay = Delay::read(fields, default);
    let about = "Before the request is forwarded (default), or after the response's head has come.";
    let point = fields.word("at", about, "place", WaitPoint::NAMES);
    let point = point.unwrap_or_default();
    let mut fault = delay.fault(move |plan, by, wait| {
        if wait.is_zero() {
            return Err(NO_WAIT.into());
        }
        plan.wait(by, point, wait);
        Ok(())
    });
    if point == WaitPoint::Response {
        fault.parameters.insert("at".into(), json!("response"));
    }
    fault
}

/// Holds the exchange and then closes it without a response; default 30,000 ms.
pub(super) fn hold(fields: &mut Fields<'_, '_>) -> Fault {
    let delay = Delay::read(fields, Duration::from_secs(30));
    let fault = delay.fault(|plan, by, wait| plan.answer(by, PlannedAnswer::Hold(wait)));
    fault.in_results(move |_, _, dice| {
        let seconds = delay.draw(dice).as_secs_f64();
        ResultChange::Failure(format!(
            "The tool did not answer: timed out after {seconds} seconds."
        ))
    })
}

/// Delays the end of the message; default 1,000 ms.
pub(super) fn close_slowly(fields: &mut Fields<'_, '_>) -> Fault {
    let delay = Delay::read(fields, Duration::from_secs(1));
    delay.fault(|plan, by, wait| {
        if wait.is_zero() {
            return Err(NO_WAIT.into());
        }
        plan.close_slowly(by, wait)
    })
}

impl Distribution {
    /// An extra wait in `0..=jitter`.
    fn draw(self, jitter: u64, dice: &mut Dice) -> u64 {
        match self {
            Self::Uniform => dice.below(jitter + 1),
            Self::Normal => {
                let sum: u64 = (0..3).map(|_| dice.below(jitter + 1)).sum();
                (sum + 1) / 3
            }
            Self::Pareto => {
                const CUT: u128 = 100;
                let of = 1u128 << 32;
                let drawn = u128::from(dice.below((1 << 32) + 1));
                // The inverse of the law's distribution function, scaled onto the jitter.
                let extra = u128::from(jitter) * drawn / (CUT * of - (CUT - 1) * drawn);
                u64::try_from(extra).expect("at most the jitter")
            }
            Self::Spike => match dice.below(20) {
                0 => jitter,
                _ => 0,
            },
        }
    }
}

fn whole_micros(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros()).expect("at most a day")
}

/// A duration in milliseconds, as a whole number where it is one.
pub(super) fn millis(duration: Duration) -> Value {
    let micros = duration.as_micros();
    if micros.is_multiple_of(1000) {
        json!(u64::try_from(micros / 1000).expect("at most a day"))
    } else {
        json!(duration.as_secs_f64() * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::RuleKey;
    use crate::fingerprint::Fingerprint;

    fn extras(distribution: Distribution) -> Vec<u64> {
        let delay = Delay {
            fixed: Duration::from_micros(50),
            jitter: Duration::from_millis(1),
            distribution,
        };
        let key = RuleKey::new(7, "key", "rule");
        let draw = |n| {
            let wait = delay.draw(&mut Dice::new(key, Fingerprint(n), 1));
            whole_micros(wait.checked_sub(delay.fixed).unwrap())
        };
        let mut extras: Vec<_> = (0..10_000).map(draw).collect();
        extras.sort_unstable();
        extras
    }

    /// Quantiles of 10,000 draws from a fixed seed; the bands are several standard errors wide.
    #[test]
    fn every_distribution_keeps_its_shape_and_its_bounds() {
        for (distribution, at, low, high) in [
            (Distribution::Uniform, 0.5, 470, 530),
            (Distribution::Uniform, 0.9, 880, 920),
            (Distribution::Normal, 0.5, 480, 520),
            (Distribution::Normal, 0.9, 700, 740),
            (Distribution::Normal, 0.1, 260, 300),
            (Distribution::Pareto, 0.5, 8, 12),
            (Distribution::Pareto, 0.9, 70, 100),
            (Distribution::Pareto, 0.99, 380, 620),
            (Distribution::Spike, 0.9, 0, 0),
            (Distribution::Spike, 0.96, 1000, 1000),
        ] {
            let extras = extras(distribution);
            assert!(extras[9_999] <= 1000, "{distribution:?}");
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an index"
            )]
            let found = extras[(at * 10_000.0) as usize];
            assert!(
                (low..=high).contains(&found),
                "{distribution:?} at {at}: {found}"
            );
        }
    }

    #[test]
    fn without_jitter_nothing_is_drawn() {
        let delay = Delay {
            fixed: Duration::from_millis(5),
            jitter: Duration::ZERO,
            distribution: Distribution::Normal,
        };
        let mut dice = Dice::new(RuleKey::new(1, "", ""), Fingerprint(1), 1);
        let before = format!("{dice:?}");
        assert_eq!(delay.draw(&mut dice), Duration::from_millis(5));
        assert_eq!(format!("{dice:?}"), before);
    }
}
