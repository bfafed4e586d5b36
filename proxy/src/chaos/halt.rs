//! The safety halt: it ends all chaos when too many faults or failures occur.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use squall_journal::record::Outcome;
use squall_profiles::verdict::VerdictOutcome;

use super::Chaos;
use crate::lock::lock;
use crate::recorder::{ExchangeNote, ExchangeObserver};

/// Limits of the safety halt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halt {
    /// Most faults applied within `over`; `None`: any number.
    pub faults: Option<u64>,
    /// Largest share, 0 to 1, of exchanges within `over` that failed without an applied rule;
    /// checked from 20 exchanges on. `None`: any share.
    pub error_share: Option<f64>,
    /// The period to check, up to now. Default 60 s.
    pub over: Duration,
}

/// Fewest exchanges for a share: a single failure is no trend.
const FEWEST: u64 = 20;

/// Number of parts of the period; counts of expired parts are dropped.
const PARTS: u32 = 60;

/// Most scopes that the log names.
const NAMED: usize = 20;

/// Checks the limits at the end of every exchange.
pub(super) fn install(chaos: &Arc<Chaos>) {
    let observer = HaltObserver {
        chaos: Arc::downgrade(chaos),
        window: Mutex::default(),
    };
    chaos.recorder.observe(Box::new(observer));
}

struct HaltObserver {
    chaos: Weak<Chaos>,
    window: Mutex<RecentCounts>,
}

impl ExchangeObserver for HaltObserver {
    fn ended(&self, note: &Arc<ExchangeNote>) {
        let Some(chaos) = self.chaos.upgrade() else {
            return;
        };
        let Some(halt) = chaos.halt() else { return };
        let at = note.started + note.duration;
        let mut window = lock(&self.window);
        window.add(&halt, at, Counts::of(note));
        if let Some(reason) = window.reason(&halt) {
            // Later activations start with empty counts.
            *window = RecentCounts::default();
            drop(window);
            chaos.halt_because(&reason);
        }
    }
}

impl Chaos {
    /// The limits; `None` if there are none, or nothing is in force.
    fn halt(&self) -> Option<Halt> {
        let halt = lock(&self.keeping).defaults.halt?;
        self.table.load().own().next().map(|_| halt)
    }

    /// Ends all chaos of all scopes, and logs it.
    fn halt_because(&self, reason: &str) {
        let table = self.table.load_full();
        let mut scopes: Vec<_> = table.own().map(|own| own.scope().to_string()).collect();
        if self.end_all(Some(reason)) == 0 {
            return;
        }
        if let Some(more) = scopes.len().checked_sub(NAMED).filter(|more| *more > 0) {
            scopes.truncate(NAMED);
            scopes.push(format!("{more} more"));
        }
        tracing::warn!(scopes = scopes.join(", "), reason, "all chaos was ended");
    }
}

/// Counts of a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    exchanges: u64,
    faults: u64,
    /// Failures without an applied rule.
    own_failures: u64,
}

impl Counts {
    fn of(note: &ExchangeNote) -> Self {
        let faults = note
            .verdicts
            .iter()
            .filter(|v| v.outcome == VerdictOutcome::Applied)
            .count();
        let failed = match note.outcome {
            Outcome::UpstreamError => true,
            Outcome::Ok => note.status.is_some_and(|status| status.is_server_error()),
            Outcome::Open
            | Outcome::Injected
            | Outcome::ClientGone
            | Outcome::ClientRejectedCa
            | Outcome::Denied => false,
        };
        Self {
            exchanges: 1,
            faults: faults as u64,
            own_failures: u64::from(failed && faults == 0),
        }
    }

    fn add(&mut self, other: Self) {
        self.exchanges += other.exchanges;
        self.faults += other.faults;
        self.own_failures += other.own_failures;
    }
}

/// Counts of the recent period, in parts.
#[derive(Debug, Default)]
struct RecentCounts {
    parts: VecDeque<(Instant, Counts)>,
}

impl RecentCounts {
    fn add(&mut self, halt: &Halt, at: Instant, counts: Counts) {
        while self
            .parts
            .front()
            .is_some_and(|(began, _)| *began + halt.over <= at)
        {
            self.parts.pop_front();
        }
        match self.parts.back_mut() {
            Some((began, part)) if at < *began + halt.over / PARTS => part.add(counts),
            _ => self.parts.push_back((at, counts)),
        }
    }

    /// Why chaos must end now, if it must.
    fn reason(&self, halt: &Halt) -> Option<String> {
        let mut all = Counts::default();
        for (_, part) in &self.parts {
            all.add(*part);
        }
        let over = halt.over.as_secs_f64();
        if halt.faults.is_some_and(|most| all.faults > most) {
            return Some(format!(
                "safety.halt: {} faults within {over} s",
                all.faults
            ));
        }
        let share = halt.error_share?;
        #[expect(clippy::cast_precision_loss, reason = "counts of a minute are small")]
        let failed = all.own_failures as f64 / all.exchanges as f64;
        (all.exchanges >= FEWEST && failed >= share).then(|| {
            format!(
                "safety.halt: {} of {} exchanges within {over} s failed with no rule applied",
                all.own_failures, all.exchanges
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALT: Halt = Halt {
        faults: Some(3),
        error_share: Some(0.5),
        over: Duration::from_mins(1),
    };

    fn window(counts: &[(u64, Counts)]) -> RecentCounts {
        let start = Instant::now();
        let mut window = RecentCounts::default();
        for (seconds, counts) in counts {
            window.add(&HALT, start + Duration::from_secs(*seconds), *counts);
        }
        window
    }

    #[test]
    fn too_many_faults_within_the_window_end_chaos() {
        let fault = Counts {
            exchanges: 1,
            faults: 1,
            own_failures: 0,
        };
        for (at, halts) in [
            (&[0, 1, 2][..], false),
            (&[0, 1, 2, 3], true),
            (&[0, 1, 2, 61], false), // the first two are forgotten
            (&[0, 20, 40, 59], true),
        ] {
            let counts: Vec<_> = at.iter().map(|at| (*at, fault)).collect();
            assert_eq!(window(&counts).reason(&HALT).is_some(), halts, "{at:?}");
        }
    }

    #[test]
    fn a_share_is_judged_only_over_enough_exchanges() {
        for (exchanges, own_failures, halts) in [
            (19, 19, false),
            (20, 9, false),
            (20, 10, true),
            (100, 50, true),
            (100, 49, false),
        ] {
            let counts = Counts {
                exchanges,
                faults: 0,
                own_failures,
            };
            assert_eq!(
                window(&[(0, counts)]).reason(&HALT).is_some(),
                halts,
                "{counts:?}"
            );
        }
    }

    #[test]
    fn the_reason_says_what_was_counted() {
        let counts = Counts {
            exchanges: 40,
            faults: 0,
            own_failures: 30,
        };
        assert_eq!(
            window(&[(0, counts)]).reason(&HALT).as_deref(),
            Some("safety.halt: 30 of 40 exchanges within 60 s failed with no rule applied")
        );
    }
}
