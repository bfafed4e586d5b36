//! The trigger of a rule: when a matching rule fires.
//!
//! Except for the draw, it depends on the ordinal of the call and the time since activation; both
//! are arguments. Conditions are checked in this order: `window`, `armed_by`, `calls`,
//! `after_calls`, `every`, the allowance (`rpm`, `tpm`) or the budget, the draw, `limit`. Calls are
//! counted in any case.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::dice::MILLION;
use crate::matching::Match;
use squall_documents::Position;

/// When a matching rule fires: all conditions must hold.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    pub(crate) chance: Chance,
    pub(crate) after_calls: u64,
    pub(crate) every: Option<NonZeroU64>,
    pub(crate) limit: Option<u64>,
    pub(crate) calls: Option<Box<[u64]>>,
    pub(crate) window: Option<Window>,
    pub(crate) armed_by: Option<Box<ArmedBy>>,
}

/// Probability that a rule fires, in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chance {
    /// Constant.
    Fixed(u32),
    /// Changes linearly after activation, then stays constant.
    Ramp { from: u32, to: u32, over: Duration },
}

/// A period after activation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) after: Duration,
    /// `None`: unlimited.
    pub(crate) open_for: Option<Duration>,
}

/// An event in the scope that arms a rule.
#[derive(Debug)]
pub(crate) enum ArmedBy {
    /// The rule with this id fired.
    Rule { id: String, position: Position },
    /// A matching exchange took place; with a status: its upstream responded with it.
    Exchange(Match),
}

impl Default for Chance {
    fn default() -> Self {
        Self::Fixed(MILLION)
    }
}

impl Chance {
    /// The threshold for a draw at this time.
    pub(crate) fn at(self, elapsed: Duration) -> u32 {
        match self {
            Self::Fixed(below) => below,
            Self::Ramp { from, to, over } => {
                let Some(left) = over.checked_sub(elapsed) else {
                    return to;
                };
                let share = |value: u32, time: Duration| u128::from(value) * time.as_micros();
                let mixed = share(from, left) + share(to, elapsed);
                u32::try_from(mixed / over.as_micros().max(1)).expect("between the two ends")
            }
        }
    }

    /// Whether a draw may decide: the rule is neither always certain nor always impossible.
    pub(crate) fn draws(self) -> bool {
        match self {
            Self::Fixed(below) => 0 < below && below < MILLION,
            Self::Ramp { .. } => true,
        }
    }
}

impl Trigger {
    /// Whether the rule may fire on its `call`-th matching call at this time, apart from the draw
    /// and the limit.
    pub(crate) fn permits(
        &self,
        call: u64,
        elapsed: Duration,
        armed: bool,
    ) -> Result<(), NotDrawn> {
        if let Some(Window { after, open_for }) = self.window {
            let open = elapsed >= after && open_for.is_none_or(|span| elapsed < after + span);
            if !open {
                return Err(NotDrawn::Window(elapsed));
            }
        }
        if self.armed_by.is_some() && !armed {
            return Err(NotDrawn::NotArmed);
        }
        if self
            .calls
            .as_ref()
            .is_some_and(|calls| !calls.contains(&call))
        {
            return Err(NotDrawn::Calls);
        }
        if call <= self.after_calls {
            return Err(NotDrawn::AfterCalls);
        }
        match self.every {
            Some(every) if call % every != 0 => Err(NotDrawn::Every),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether it fires on every matching call, regardless of earlier ones.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.chance == Chance::Fixed(MILLION)
            && self.after_calls == 0
            && self.every.is_none_or(|every| every.get() == 1)
            && self.limit.is_none()
            && self.calls.is_none()
            && self.window.is_none()
            && self.armed_by.is_none()
    }

    /// Why it can never fire, if so.
    pub(crate) fn never_fires(&self) -> Option<String> {
        let never = match self.chance {
            Chance::Fixed(0) => Some("its probability is 0".to_owned()),
            Chance::Ramp { from: 0, to: 0, .. } => Some("its ramp stays at 0".to_owned()),
            Chance::Fixed(_) | Chance::Ramp { .. } => None,
        };
        let never =
            never.or_else(|| (self.limit == Some(0)).then(|| "its `limit` is 0".to_owned()));
        let closed = self.window.and_then(|window| window.open_for) == Some(Duration::ZERO);
        let never = never.or_else(|| closed.then(|| "its `window` is open for 0 ms".to_owned()));
        never.or_else(|| {
            let calls = self.calls.as_ref()?;
            let fires = |call: &u64| {
                *call > self.after_calls && self.every.is_none_or(|every| *call % every == 0)
            };
            let none = !calls.iter().any(fires);
            none.then(|| "`calls` lists none that `after_calls` and `every` let through".to_owned())
        })
    }
}

/// Why the trigger of an eligible rule did not fire: the part of it that did not hold.
/// [`RuleVerdict::not_drawn`](crate::verdict::RuleVerdict::not_drawn) gives the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDrawn {
    /// `after_calls` skips the first calls.
    AfterCalls,
    /// `every` selects other calls.
    Every,
    /// `calls` lists other calls.
    Calls,
    /// `limit` is reached.
    Limit,
    /// The time is outside of its `window`; the time since activation.
    Window(Duration),
    /// The event in `armed_by` has not happened.
    NotArmed,
    /// Its allowance per minute is not exceeded: `rpm` or `tpm`.
    Allowed,
    /// Its budget is not exhausted: `after_tokens` and `after_usd`.
    WithinBudget,
    /// Its probability is 0.
    Impossible,
    /// The draw was not below the rule's probability.
    Drew,
}

impl Trigger {
    /// Why it did not fire on its `call`-th matching call, as far as it depends on the trigger.
    pub(crate) fn sentence(&self, why: NotDrawn, call: u64) -> String {
        match why {
            NotDrawn::AfterCalls => {
                let pass = self.after_calls;
                format!("call {call}: `after_calls: {pass}` lets the first {pass} pass")
            }
            NotDrawn::Every => {
                let every = self.every.map_or(1, NonZeroU64::get);
                let twice = 2 * every;
                format!("call {call}: `every: {every}` fires on calls {every}, {twice} …")
            }
            NotDrawn::Calls => {
                let listed = self.calls.iter().flat_map(|calls| calls.iter());
                let listed: Vec<_> = listed.map(ToString::to_string).collect();
                let listed = listed.join(", ");
                format!("call {call} is not one of `calls: [{listed}]`")
            }
            NotDrawn::Limit => {
                let limit = self.limit.unwrap_or_default();
                format!("fired {limit} times already, its `limit`")
            }
            NotDrawn::Window(elapsed) => {
                let window = self.window.unwrap_or_default();
                let after = window.after;
                let closes = window.open_for.map_or_else(String::new, |span| {
                    format!(" and closes at {}", Seconds(after + span))
                });
                format!(
                    "{} after activation: its `window` opens at {}{closes}",
                    Seconds(elapsed),
                    Seconds(after)
                )
            }
            NotDrawn::NotArmed => "what `armed_by` names has not happened yet".to_owned(),
            NotDrawn::Allowed => "within what `rpm` and `tpm` allow".to_owned(),
            NotDrawn::WithinBudget => "its budget is not used up".to_owned(),
            NotDrawn::Impossible => "its probability is 0".to_owned(),
            NotDrawn::Drew => "the draw was not below its probability".to_owned(),
        }
    }
}

/// A time in seconds, to the millisecond, without trailing zeros.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:.3}", self.0.as_secs_f64());
        write!(
            f,
            "{} s",
            digits.trim_end_matches('0').trim_end_matches('.')
        )
    }
}

/// Parts per million as a decimal share, without trailing zeros.
pub(crate) struct Share(pub(crate) u32);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{}.{:06}", self.0 / MILLION, self.0 % MILLION);
        f.write_str(digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    #[rustfmt::skip]
    fn a_trigger_fires_on_the_calls_it_names() {
        for (trigger, fires) in [
            (Trigger::default(), vec![1, 2, 3, 4, 5, 6]),
            (Trigger { after_calls: 2, ..Trigger::default() }, vec![3, 4, 5, 6]),
            (Trigger { every: NonZeroU64::new(3), ..Trigger::default() }, vec![3, 6]),
            (Trigger { calls: Some([1, 3].into()), ..Trigger::default() }, vec![1, 3]),
            (Trigger { after_calls: 2, every: NonZeroU64::new(2), ..Trigger::default() }, vec![4, 6]),
        ] {
            let fired: Vec<_> = (1..=6)
                .filter(|call| trigger.permits(*call, SECOND, false).is_ok())
                .collect();
            assert_eq!(fired, fires, "{trigger:?}");
        }
    }

    #[test]
    fn a_window_is_open_from_its_beginning_to_before_its_end() {
        let window = Window {
            after: SECOND,
            open_for: Some(SECOND),
        };
        let trigger = Trigger {
            window: Some(window),
            ..Trigger::default()
        };
        for (millis, open) in [
            (0, false),
            (999, false),
            (1000, true),
            (1999, true),
            (2000, false),
        ] {
            let elapsed = Duration::from_millis(millis);
            assert_eq!(trigger.permits(1, elapsed, false).is_ok(), open, "{millis}");
        }
    }

    #[test]
    fn a_ramp_is_linear_and_then_stays() {
        let ramp = Chance::Ramp {
            from: 100_000,
            to: 900_000,
            over: 10 * SECOND,
        };
        for (seconds, below) in [(0, 100_000), (5, 500_000), (10, 900_000), (99, 900_000)] {
            assert_eq!(ramp.at(seconds * SECOND), below, "{seconds}");
        }
        let falling = Chance::Ramp {
            from: 1_000_000,
            to: 0,
            over: 4 * SECOND,
        };
        assert_eq!(falling.at(SECOND), 750_000);
    }
}
