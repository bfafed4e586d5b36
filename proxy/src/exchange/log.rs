//! What one exchange writes down about itself, from its head to the end of its answer.
//!
//! Everything that carries the exchange holds a reference: the exchange itself, the request's body,
//! the answer's body. When the last one is gone the exchange is over, however it ended, and its note
//! goes to the journal. So nothing that was begun is ever lost from it.

mod canaries;
mod taps;
mod verdicts;

use std::cell::{Cell, RefCell};
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

/// The running account of one exchange.
pub(crate) struct ExchangeLog {
    worker: Rc<ExchangeWorker>,
    waits: Waits,
    listed: Cell<Option<usize>>,
    /// Under which the exchange is.
    chaos: Arc<ScopeChaos>,
    /// Only this log has it until it is recorded.
    note: RefCell<Option<Arc<ExchangeNote>>>,
    verdicts: RefCell<Verdicts>,
    timing: Timing,
    outcome: Cell<Option<Outcome>>,
    announced: Cell<bool>,
    /// What reads its bytes as they pass.
    taps: RefCell<Taps>,
}

/// Where the time of an exchange went.
struct Timing {
    started: Instant,
    /// Held back by faults.
    injected: Cell<Duration>,
    /// Spent waiting for the agent or the upstream.
    waited: Cell<Duration>,
    /// What Squall itself had added when the answer's head went on to the agent.
    overhead: Cell<Option<Duration>>,
}

impl Timing {
    /// Time since the beginning in which nobody was waited for.
    fn own(&self) -> Duration {
        let others = self.injected.get() + self.waited.get();
        self.started.elapsed().saturating_sub(others)
    }
}

impl ExchangeLog {
    /// Begins the account of an exchange under `chaos`.
    pub(crate) fn open(
        connection: &Connection,
        note: ExchangeNote,
        chaos: Arc<ScopeChaos>,
    ) -> Rc<Self> {
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

    /// From now on it waits for the agent to send or to take something; false: for others.
    pub(crate) fn waits_for_agent(&self, waits: bool) {
        self.waits.for_agent(waits);
    }

    /// What is in force for the exchange.
    pub(crate) fn chaos(&self) -> &ScopeChaos {
        &self.chaos
    }

    /// What those who carry out a plan on this exchange need to know.
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
            seed: self.seed(),
            account: Dice::new(account, Fingerprint(0), 0).next_choice(),
            inspect: self.worker.engine.inspect.clone(),
        }
    }

    /// What synthetic variety depends on: different for every exchange, the same when the exchange is.
    /// Where no rule draws, exchanges are told apart by which matching call they are.
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

    /// Writes something down.
    pub(crate) fn note(&self, write: impl FnOnce(&mut ExchangeNote)) {
        if let Some(note) = self.note.borrow_mut().as_mut().and_then(Arc::get_mut) {
            write(note);
        }
    }

    /// Takes down what was decided.
    pub(crate) fn decided(&self, decision: &mut Decision) {
        self.taps.borrow_mut().meter(decision.charge());
        *self.verdicts.borrow_mut() = Verdicts::of(decision);
        self.note(|note| {
            note.fingerprint = decision.fingerprint;
            note.attempt = decision.attempt;
            note.verdicts_more = decision.more;
            // A name that only the rules of a file give to an upstream.
            if note.tool.is_none() && note.kind == Kind::Tool {
                let mut rules = decision
                    .verdicts
                    .iter()
                    .filter(|verdict| verdict.ordinal > 0);
                note.tool = rules.find_map(|verdict| verdict.rule.tool().map(Arc::from));
            }
        });
    }

    /// Takes down what the upstream's status has changed.
    pub(crate) fn decided_more(&self, decision: &Decision) {
        self.verdicts.borrow_mut().update(decision);
    }

    /// Takes down what a later stage of a connection's life says of further rules.
    pub(crate) fn found_more(&self, verdicts: Vec<RuleVerdict>) {
        self.verdicts.borrow_mut().all.extend(verdicts);
    }

    /// Takes down rules whose earlier changes were made again, beside what they do here.
    pub(crate) fn applied_again(&self, again: Vec<RuleVerdict>) {
        let metrics = &self.worker.engine.metrics;
        for verdict in &again {
            metrics.fault_applied(&verdict.rule, self.chaos.scope());
        }
        self.verdicts.borrow_mut().again = again;
    }

    /// What was chosen and not carried out so far never will be.
    pub(crate) fn bypass_rest(&self, why: &str) {
        self.verdicts.borrow_mut().bypass_rest(why);
    }

    /// Modes of the rules that were carried out, or are about to be.
    pub(crate) fn modes_in_work(&self) -> Vec<&'static str> {
        self.verdicts.borrow().modes_in_work()
    }

    /// Time spent waiting for somebody else.
    pub(crate) fn waited(&self, time: Duration) {
        self.timing.waited.set(self.timing.waited.get() + time);
    }

    /// The answer's head goes on to the agent. What comes after it goes at the pace of the upstream and
    /// the agent, which is not Squall's.
    pub(crate) fn head_passes(&self) {
        self.timing.overhead.set(Some(self.timing.own()));
    }

    /// The agent got this status.
    pub(crate) fn answered(&self, status: StatusCode) {
        self.note(|note| note.status = Some(status));
    }

    /// The last of the answer goes to the agent now, and nothing is missing of it.
    pub(crate) fn sent_whole(&self) {
        self.sent_all();
        let answering = self.taps.borrow_mut().answering.take();
        if let Some(request) = answering.and_then(|answering| answering.end()) {
            self.chaos.told().answered(request);
        }
    }

    /// The answer was passed on to its end.
    pub(crate) fn complete(&self) {
        self.sent_whole();
        self.end(Outcome::Ok, None);
    }

    /// The exchange ended otherwise; the first call counts.
    pub(crate) fn end(&self, outcome: Outcome, error: Option<String>) {
        if self.outcome.get().is_none() {
            self.outcome.set(Some(outcome));
            if error.is_some() {
                self.note(|note| note.error = error);
            }
        }
    }

    /// Notes that the end of what was in force ended the exchange, and gives that end.
    pub(crate) fn is_over(&self) -> Abort {
        let scope = self.chaos.scope();
        let why = format!("what was in force for the scope `{scope}` is over");
        self.end(Outcome::Denied, Some(why.clone()));
        Abort::close(why)
    }

    /// Does `work` unless what is in force for the scope is over meanwhile.
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

    /// Takes everything back: other accounts will speak for this one.
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
        self.body_ended();
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
        // Nobody reported how it ended: whoever waited for the answer is gone.
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

    fn heard(&self, tally: Box<Tally>) {
        self.taps.borrow_mut().heard = Some(tally);
    }

    fn waited(&self, by: Duration) {
        ExchangeLog::waited(self, by);
    }

    fn delayed(&self, by: Duration) {
        self.timing.injected.set(self.timing.injected.get() + by);
        self.worker.engine.metrics.delayed(by);
    }
}
