//! The account of a POST stays open until it is known what came of its rules elsewhere.

use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use squall_profiles::plan::VerdictIndex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::{Exchange, Instead};
use crate::broken::Ledger;
use crate::mcp_sessions::{Awaited, Session, Told};

impl Exchange {
    /// Keeps the account open until it is known what came of the rules.
    pub(super) fn settles(
        &self,
        session: &Arc<Session>,
        awaited: &[Arc<Awaited>],
        instead: Option<&Instead>,
        told: UnboundedReceiver<Told>,
    ) {
        let mut verdicts: Vec<VerdictIndex> = awaited
            .iter()
            .flat_map(|answer| answer.verdicts())
            .collect();
        verdicts.extend(
            instead
                .filter(|instead| instead.says.is_some())
                .map(|instead| instead.verdict),
        );
        verdicts.sort_unstable();
        verdicts.dedup();
        for verdict in &verdicts {
            self.log.will_plant(*verdict);
        }
        if verdicts.is_empty() {
            return;
        }
        let waiting = Waiting {
            told,
            open: verdicts
                .into_iter()
                .map(|verdict| (verdict, None))
                .collect(),
            session: Arc::downgrade(session),
            awaited: awaited.iter().map(Arc::downgrade).collect(),
            // What is held back has come.
            age: self.sessions().bounds().age
                + awaited.iter().map(|it| it.held()).sum::<Duration>(),
        };
        let log = Rc::clone(&self.log);
        tokio::task::spawn_local(async move {
            let waited = settle(waiting, &*log).await;
            log.waited(waited);
        });
    }
}

/// An account that waits for what comes of its rules.
struct Waiting {
    told: UnboundedReceiver<Told>,
    /// Rules of which nothing is known yet, or only why they did nothing so far.
    open: Vec<(VerdictIndex, Option<String>)>,
    session: Weak<Session>,
    awaited: Vec<Weak<Awaited>>,
    age: Duration,
}

/// Writes down what comes of the rules, until all is known or the answers are overdue. For how long
/// it waited for others.
async fn settle(mut waiting: Waiting, ledger: &dyn Ledger) -> Duration {
    let began = Instant::now();
    let mut delayed = Duration::ZERO;
    loop {
        match tokio::time::timeout_at(began + waiting.age, waiting.told.recv()).await {
            Ok(Some(Told::Applied(verdict))) => {
                ledger.applied(verdict);
                waiting.open.retain(|(open, _)| *open != verdict);
            }
            Ok(Some(Told::Bypassed(verdict, why))) => {
                let open = waiting.open.iter_mut();
                for (_, reason) in open.filter(|(open, _)| *open == verdict) {
                    *reason = Some(why.clone());
                }
            }
            Ok(Some(Told::Delayed(by))) => {
                delayed += by;
                ledger.delayed(by);
            }
            Ok(Some(Told::Withdrawn)) => return Duration::ZERO,
            Ok(None) => break,
            Err(_) => {
                waiting.overdue();
                break;
            }
        }
    }
    for (verdict, why) in waiting.open {
        let why = why.unwrap_or_else(|| "the answer never came".to_owned());
        ledger.bypassed(verdict, why);
    }
    began.elapsed().saturating_sub(delayed)
}

impl Waiting {
    fn overdue(&mut self) {
        if let Some(session) = self.session.upgrade() {
            for answer in self.awaited.iter().filter_map(Weak::upgrade) {
                session.forget(&answer);
            }
        }
        let why = format!("no answer came within {} s", self.age.as_secs());
        for (_, reason) in &mut self.open {
            reason.get_or_insert_with(|| why.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    use super::*;
    use crate::carry_out::testing::{Remembered, paused};

    fn waiting(verdicts: &[VerdictIndex]) -> (UnboundedSender<Told>, Waiting) {
        let (to, told) = unbounded_channel();
        let waiting = Waiting {
            told,
            open: verdicts.iter().map(|verdict| (*verdict, None)).collect(),
            session: Weak::new(),
            awaited: Vec::new(),
            age: Duration::from_mins(5),
        };
        (to, waiting)
    }

    #[test]
    fn one_answer_that_was_changed_is_enough() {
        paused(async {
            let ledger = Remembered::default();
            let (to, waiting) = waiting(&[3, 4]);
            let no = |verdict| Told::Bypassed(verdict, "no text".to_owned());
            for told in [no(3), Told::Applied(3), no(3), no(4)] {
                to.send(told).unwrap();
            }
            drop(to);
            settle(waiting, &ledger).await;
            assert_eq!(*ledger.applied.borrow(), [3]);
            assert_eq!(*ledger.bypassed.borrow(), [(4, "no text".to_owned())]);
        });
    }

    #[test]
    fn what_is_overdue_is_bypassed_and_what_came_before_stays() {
        paused(async {
            let ledger = Remembered::default();
            let (to, waiting) = waiting(&[0, 1]);
            to.send(Told::Delayed(Duration::from_secs(2))).unwrap();
            to.send(Told::Applied(0)).unwrap();
            let waited = settle(waiting, &ledger).await;
            assert_eq!(waited, Duration::from_secs(298));
            assert_eq!(ledger.waited(), Duration::from_secs(2));
            assert_eq!(*ledger.applied.borrow(), [0]);
            let why = "no answer came within 300 s".to_owned();
            assert_eq!(*ledger.bypassed.borrow(), [(1, why)]);
            assert!(to.send(Told::Applied(1)).is_err());
        });
    }

    #[test]
    fn an_answer_that_came_with_the_post_is_told_of_there() {
        paused(async {
            let ledger = Remembered::default();
            let (to, waiting) = waiting(&[0]);
            to.send(Told::Withdrawn).unwrap();
            settle(waiting, &ledger).await;
            assert!(ledger.applied.borrow().is_empty() && ledger.bypassed.borrow().is_empty());
        });
    }
}
