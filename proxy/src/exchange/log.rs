//! The log of one exchange, from the request's head to the end of its response.
//!
//! The exchange, the request's body and the response's body each hold a reference. Dropping the
//! last one ends the exchange and sends its note to the journal, so no started exchange is lost.

mod canaries;
mod taps;
mod verdicts;

use std::cell::{Cell, RefCell, RefMut};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use squall_dialects::Tally;
use squall_journal::record::Outcome;
use squall_profiles::decide::Decision;
use squall_profiles::dice::{Dice, RuleKey};
use squall_profiles::facts::Kind;
use squall_profiles::fingerprint::Fingerprint;
use squall_profiles::plan::VerdictIndex;
use squall_profiles::verdict::RuleVerdict;

pub(super) use self::taps::MODEL_BYTES;
use self::taps::Taps;
use self::verdicts::Verdicts;
use super::connection::Connection;
use super::worker::{ExchangeWorker, OpenExchange};
use crate::abort::Abort;
use crate::chaos::ScopeChaos;
use crate::faults::{FaultContext, Ledger};
use crate::http1::Waits;
use crate::recorder::ExchangeNote;

/// The log of one exchange in progress.
pub(crate) struct ExchangeLog {
    worker: Rc<ExchangeWorker>,
    waits: Waits,
    listed: Cell<Option<usize>>,
    /// The chaos of the exchange's scope.
    chaos: Arc<ScopeChaos>,
    /// Not shared until it is recorded.
    note: RefCell<Option<Arc<ExchangeNote>>>,
    verdicts: RefCell<Verdicts>,
    timing: Timing,
    outcome: Cell<Option<Outcome>>,
    announced: Cell<bool>,
    /// Observers of the bytes that pass.
    taps: RefCell<Taps>,
}

/// How the exchange spent its time.
struct Timing {
    started: Instant,
    /// Delays injected by faults.
    injected: Cell<Duration>,
    /// Time spent waiting for the agent or the upstream.
    waited: Cell<Duration>,
    /// Squall's own time until the response's head was passed on.
    overhead: Cell<Option<Duration>>,
}

impl Timing {
    /// Time since the start, without injected delays and waits for others.
    fn own(&self) -> Duration {
        let others = self.injected.get() + self.waited.get();
        self.started.elapsed().saturating_sub(others)
    }
}

impl ExchangeLog {
    /// Opens the log of an exchange under `chaos`.
    pub(crate) fn open(
        connection: &Connection,
        mut note: ExchangeNote,
        chaos: Arc<ScopeChaos>,
    ) -> Rc<Self> {
        note.peer = Some(Arc::clone(connection.control.peer()));
        chaos.exchange_begins();
        let worker = &connection.worker;
        let log = Rc::new(Self {
            worker: Rc::clone(worker),
            waits: Waits::on(&connection.control),
            listed: Cell::new(None),
            chaos,
            timing: Timing {
                started: note.started,
                injected: Cell::default(),
                waited: Cell::default(),
                overhead: Cell::default(),
            },
            note: RefCell::new(Some(Arc::new(note))),
            verdicts: RefCell::default(),
            outcome: Cell::new(None),
            announced: Cell::new(false),
            taps: RefCell::default(),
        });
        let listed: Weak<dyn OpenExchange> = Rc::downgrade(&log) as _;
        log.listed.set(Some(worker.opened(listed)));
        log
    }

    /// Sets whether the exchange now waits for the agent to send or receive, or for another party.
    pub(crate) fn waits_for_agent(&self, waits: bool) {
        self.waits.for_agent(waits);
    }

    /// The chaos in force for the exchange.
    pub(crate) fn chaos(&self) -> &ScopeChaos {
        &self.chaos
    }

    /// The context for executing a plan on this exchange.
    pub(crate) fn context(
        self: &Rc<Self>,
        connection: &Connection,
        method: &Method,
    ) -> FaultContext {
        let account = RuleKey::new(self.chaos.activation().seed, "", "");
        FaultContext {
            ledger: Rc::clone(self) as Rc<dyn Ledger>,
            agent: connection.agent().clone(),
            method: method.clone(),
            on_websocket: connection.ingress.carrier().is_some(),
            seed: self.seed(),
            account: Dice::new(account, Fingerprint(0), 0).next_choice(),
            inspect: self.worker.engine.inspect.clone(),
        }
    }

    /// Seed of synthetic variety: differs between exchanges, and repeats with the same exchange. If
    /// no rule draws, it uses the ordinal of the matching call.
    fn seed(&self) -> u64 {
        let activation = self.chaos.activation();
        let verdicts = self.verdicts.borrow();
        let (rule, call) = verdicts.first_chosen().unwrap_or_default();
        let key = RuleKey::new(activation.seed, &activation.key, rule);
        let (fingerprint, attempt) = self
            .note
            .borrow()
            .as_ref()
            .map_or((None, None), |note| (note.fingerprint, note.attempt));
        let attempt = attempt.unwrap_or(call);
        Dice::new(key, fingerprint.unwrap_or(Fingerprint(0)), attempt).next_choice()
    }

    /// Writes into the note.
    pub(crate) fn note(&self, write: impl FnOnce(&mut ExchangeNote)) {
        if let Some(note) = self.note.borrow_mut().as_mut().and_then(Arc::get_mut) {
            write(note);
        }
    }

    /// Records the decision.
    pub(crate) fn decided(&self, decision: &mut Decision) {
        self.taps.borrow_mut().meter(decision.charge());
        *self.verdicts.borrow_mut() = Verdicts::of(decision);
        self.note(|note| {
            note.fingerprint = decision.fingerprint;
            note.attempt = decision.attempt;
            note.verdicts_more = decision.more;
            // A tool name that only the rules of a file give to a URL.
            if note.tool.is_none() && note.kind == Kind::Tool {
                let mut rules = decision
                    .verdicts
                    .iter()
                    .filter(|verdict| verdict.ordinal > 0);
                note.tool = rules.find_map(|verdict| verdict.rule.tool().map(Arc::from));
            }
        });
    }

    /// The verdicts of its rules.
    pub(crate) fn verdicts(&self) -> RefMut<'_, Verdicts> {
        self.verdicts.borrow_mut()
    }

    /// Adds rules whose earlier changes were repeated here.
    pub(crate) fn applied_again(&self, again: Vec<RuleVerdict>) {
        let metrics = &self.worker.engine.metrics;
        for verdict in &again {
            metrics.fault_applied(&verdict.rule, self.chaos.scope());
        }
        self.verdicts.borrow_mut().again = again;
    }

    /// Adds time spent waiting for another party.
    pub(crate) fn waited(&self, time: Duration) {
        self.timing.waited.set(self.timing.waited.get() + time);
    }

    /// The response's head is passed on. Later delays depend on the upstream and the agent, not on
    /// Squall.
    pub(crate) fn head_passes(&self) {
        self.timing.overhead.set(Some(self.timing.own()));
    }

    /// Records the status that the agent got.
    pub(crate) fn answered(&self, status: StatusCode) {
        self.note(|note| note.status = Some(status));
    }

    /// The complete response is passed to the agent.
    pub(crate) fn sent_whole(&self) {
        self.sent_all();
        let answering = self.taps.borrow_mut().answering.take();
        if let Some(request) = answering.and_then(|answering| answering.end()) {
            self.chaos.changed_results().answered(request);
        }
    }

    /// The response was passed on completely.
    pub(crate) fn complete(&self) {
        self.sent_whole();
        self.end(Outcome::Ok, None);
    }

    /// The exchange ended with `outcome`; only the first call counts.
    pub(crate) fn end(&self, outcome: Outcome, error: Option<String>) {
        if self.outcome.get().is_none() {
            self.outcome.set(Some(outcome));
            if error.is_some() {
                self.note(|note| note.error = error);
            }
        }
    }

    /// Ends the exchange because its scope's activation ended; returns the abort.
    pub(crate) fn is_over(&self) -> Abort {
        let scope = self.chaos.scope();
        let why = format!("what was in force for the scope `{scope}` is over");
        self.end(Outcome::Denied, Some(why.clone()));
        Abort::close(why)
    }

    /// Runs `work` until it completes or the scope's activation ends.
    pub(crate) async fn unless_over<T, E: From<Abort>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(over) = self.chaos.over() else {
            return work.await;
        };
        tokio::select! {
            biased;
            done = work => done,
            () = over => Err(self.is_over().into()),
        }
    }

    /// Discards the note; other exchanges report for this one.
    pub(crate) fn forget(&self) {
        self.note.take();
    }

    fn fill(&self, note: &mut ExchangeNote) {
        note.duration = self.timing.started.elapsed();
        note.injected = self.timing.injected.get();
        note.overhead = self
            .timing
            .overhead
            .get()
            .unwrap_or_else(|| self.timing.own());
        note.verdicts = self.verdicts.borrow().listed();
        self.taps.borrow().fill(note);
    }
}

impl OpenExchange for ExchangeLog {
    fn announce_if_older_than(&self, age: Duration) {
        if self.announced.get() || self.timing.started.elapsed() < age {
            return;
        }
        self.announced.set(true);
        if let Some(note) = self.note.borrow().as_ref() {
            let mut note = ExchangeNote::clone(note);
            self.fill(&mut note);
            note.outcome = Outcome::Open;
            self.worker.engine.recorder.record(note);
        }
    }
}

impl Drop for ExchangeLog {
    fn drop(&mut self) {
        if let Some(listed) = self.listed.get() {
            self.worker.closed(listed);
        }
        let Some(mut kept) = self.note.take() else {
            self.chaos.exchange_ends(false);
            return;
        };
        let note = Arc::make_mut(&mut kept);
        self.fill(note);
        if self.waits.in_vain() {
            let patience = self.worker.engine.compiled().config.limits.idle_timeout;
            note.error = Some(format!(
                "the agent sent nothing and took nothing for {patience:?} (`proxy.limits.idle_timeout`)"
            ));
        }
        // Without a reported outcome, the agent has closed the connection.
        let outcome = self.outcome.get().unwrap_or(Outcome::ClientGone);
        note.outcome = match outcome {
            Outcome::Ok | Outcome::ClientGone if self.verdicts.get_mut().changed() => {
                Outcome::Injected
            }
            other => other,
        };
        let traffic = self.taps.take().finish(note);
        self.worker.engine.recorder.record_with(kept, traffic);
        self.chaos.exchange_ends(true);
    }
}

impl Ledger for ExchangeLog {
    fn applied(&self, index: VerdictIndex) {
        let applied = self.verdicts.borrow_mut().apply(index);
        if let Some(rule) = applied {
            let metrics = &self.worker.engine.metrics;
            metrics.fault_applied(&rule, self.chaos.scope());
            self.plant(index, &rule);
        }
    }

    fn bypassed(&self, verdict: VerdictIndex, why: String) {
        self.verdicts.borrow_mut().bypass(verdict, why);
    }

    fn changed_results(&self, verdict: VerdictIndex, tools: Vec<String>) {
        self.verdicts.borrow_mut().changed_results(verdict, tools);
    }

    fn counted_anew(&self) {
        self.taps.borrow_mut().counted_anew();
    }

    fn tallied(&self, tally: Box<Tally>) {
        self.taps.borrow_mut().tally = Some(tally);
    }

    fn ended_by_rule(&self) {
        self.end(Outcome::Injected, None);
    }

    fn waited(&self, by: Duration) {
        ExchangeLog::waited(self, by);
    }

    fn delayed(&self, by: Duration) {
        self.timing.injected.set(self.timing.injected.get() + by);
        self.worker.engine.metrics.delayed(by);
    }
}
