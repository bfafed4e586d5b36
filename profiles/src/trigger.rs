//! The trigger of a rule: when a matching rule fires.
//!
//! Except for the draw, it depends on the ordinal of the call and the time since activation; both
//! are arguments. Conditions are checked in this order: `window`, `armed_by`, `calls`,
//! `after_calls`, `every`, the allowance (`rpm`, `tpm`) or the budget, the draw, `limit`. Calls are
//! counted in any case.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::dice::MILLION;
use crate::matching::Match;
use crate::prices::Usd;
use squall_documents::Position;

/// When a matching rule fires: all conditions must hold.
#[derive(Debug, Default)]
pub(crate) struct Trigger {
    pub(crate) chance: Chance,
    pub(crate) after_calls: u64,
    pub(crate) every: Option<NonZeroU64>,
    pub(crate) limit: Option<u64>,
    pub(crate) calls: Option<Arc<[u64]>>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
                return Err(NotDrawn::Window {
                    elapsed,
                    after,
                    open_for,
                });
            }
        }
        if self.armed_by.is_some() && !armed {
            return Err(NotDrawn::NotArmed);
        }
        if let Some(calls) = self.calls.as_ref().filter(|calls| !calls.contains(&call)) {
            return Err(NotDrawn::Calls {
                call,
                calls: calls.clone(),
            });
        }
        if call <= self.after_calls {
            return Err(NotDrawn::AfterCalls {
                call,
                pass: self.after_calls,
            });
        }
        match self.every {
            Some(every) if call % every != 0 => Err(NotDrawn::Every {
                call,
                every: every.get(),
            }),
            _ => Ok(()),
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

/// Why the trigger of an eligible rule did not fire. `Display` prints the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotDrawn {
    /// `after_calls` skips the first calls.
    AfterCalls {
        /// The number of this call.
        call: u64,
        /// The number of skipped calls.
        pass: u64,
    },
    /// `every` selects other calls.
    Every {
        /// The number of this call.
        call: u64,
        /// It fires on multiples of this number.
        every: u64,
    },
    /// `calls` lists other calls.
    Calls {
        /// The number of this call.
        call: u64,
        /// The calls it fires on.
        calls: Arc<[u64]>,
    },
    /// `limit` is reached.
    Limit {
        /// Most times it may fire.
        limit: u64,
    },
    /// The time is outside of its `window`.
    Window {
        /// Time since activation.
        elapsed: Duration,
        /// When the window opens.
        after: Duration,
        /// How long it stays open; `None`: unlimited.
        open_for: Option<Duration>,
    },
    /// The event in `armed_by` has not happened.
    NotArmed,
    /// Its allowance per minute is not exceeded: `rpm` or `tpm`.
    Allowed,
    /// Its budget is not exhausted: `after_tokens` and `after_usd`.
    WithinBudget {
        /// Used and permitted tokens.
        tokens: Option<(u64, u64)>,
        /// Used and permitted cost.
        cost: Option<(Usd, Usd)>,
    },
    /// Its probability is 0.
    Impossible,
    /// The draw was not below the rule's probability; both in parts per million.
    Drew {
        /// The drawn value.
        value: u32,
        /// The threshold: it fires below this.
        below: u32,
    },
}

impl fmt::Display for NotDrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterCalls { call, pass } => {
                write!(
                    f,
                    "call {call}: `after_calls: {pass}` lets the first {pass} pass"
                )
            }
            Self::Every { call, every } => {
                write!(
                    f,
                    "call {call}: `every: {every}` fires on calls {every}, {} …",
                    2 * every
                )
            }
            Self::Calls { call, calls } => {
                let listed: Vec<_> = calls.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "call {call} is not one of `calls: [{}]`",
                    listed.join(", ")
                )
            }
            Self::Limit { limit } => write!(f, "fired {limit} times already, its `limit`"),
            Self::Window {
                elapsed,
                after,
                open_for,
            } => {
                let (elapsed, opens) = (Seconds(*elapsed), Seconds(*after));
                write!(
                    f,
                    "{elapsed} after activation: its `window` opens at {opens}"
                )?;
                match open_for {
                    Some(span) => write!(f, " and closes at {}", Seconds(*after + *span)),
                    None => Ok(()),
                }
            }
            Self::NotArmed => f.write_str("what `armed_by` names has not happened yet"),
            Self::Allowed => f.write_str("within what `rpm` and `tpm` allow"),
            Self::WithinBudget { tokens, cost } => {
                let tokens =
                    tokens.map(|(used, most)| format!("{used} of `after_tokens: {most}` used up"));
                let cost = cost.map(|(spent, most)| {
                    format!("{spent} of `after_usd: {}` spent", most.dollars())
                });
                let parts: Vec<_> = tokens.into_iter().chain(cost).collect();
                f.write_str(&parts.join(", "))
            }
            Self::Impossible => f.write_str("its probability is 0"),
            Self::Drew { value, below } => {
                write!(f, "drew {}, fires below {}", Share(*value), Share(*below))
            }
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
struct Share(u32);

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
    fn a_trigger_fires_on_the_calls_it_names() {
        for (trigger, fires) in [
            (Trigger::default(), vec![1, 2, 3, 4, 5, 6]),
            (
                Trigger {
                    after_calls: 2,
                    ..Trigger::default()
                },
                vec![3, 4, 5, 6],
            ),
            (
                Trigger {
                    every: NonZeroU64::new(3),
                    ..Trigger::default()
                },
                vec![3, 6],
            ),
            (
                Trigger {
                    calls: Some([1, 3].into()),
                    ..Trigger::default()
                },
                vec![1, 3],
            ),
            (
                Trigger {
                    after_calls: 2,
                    every: NonZeroU64::new(2),
                    ..Trigger::default()
                },
                vec![4, 6],
            ),
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
