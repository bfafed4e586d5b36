//! The account of a POST stays open until it is known what came of its rules elsewhere.

use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use squall_profiles::plan::VerdictIndex;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::{Exchange, Instead};
use crate::broken::Ledger as _;
use crate::exchange_log::ExchangeLog;
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
        tokio::task::spawn_local(settle(waiting, Rc::clone(&self.log)));
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

/// Writes down what comes of the rules, until all is known or the answers are overdue.
async fn settle(mut waiting: Waiting, log: Rc<ExchangeLog>) {
    let began = Instant::now();
    let mut delayed = Duration::ZERO;
    loop {
        match tokio::time::timeout_at(began + waiting.age, waiting.told.recv()).await {
            Ok(Some(Told::Applied(verdict))) => {
                log.applied(verdict);
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
                log.delayed(by);
            }
            Ok(Some(Told::Withdrawn)) => return,
            Ok(None) => break,
            Err(_) => {
                waiting.overdue();
                break;
            }
        }
    }
    log.waited(began.elapsed().saturating_sub(delayed));
    for (verdict, why) in waiting.open {
        let why = why.unwrap_or_else(|| "the answer never came".to_owned());
        log.bypassed(verdict, why);
    }
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
