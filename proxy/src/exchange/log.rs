//! What one exchange writes down about itself, from its head to the end of its answer.
//!
//! Everything that carries the exchange holds a reference: the exchange itself, the request's body,
//! the answer's body. When the last one is gone the exchange is over, however it ended, and its note
//! goes to the journal. So nothing that was begun is ever lost from it.

mod bytes;
mod canaries;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use squall_dialects::Tally;
use squall_dialects::mcp::Asked;
use squall_journal::record::Outcome;
use squall_profiles::activation::Decision;
use squall_profiles::dice::{Dice, RuleKey};
use squall_profiles::facts::Kind;
use squall_profiles::fault::StreamFault;
use squall_profiles::fingerprint::Fingerprint;
use squall_profiles::plan::{Edit, Outcome as RuleOutcome, Plan, Planting, Verdict, VerdictIndex};

use super::connection::Connection;
use super::worker::{OpenExchange, Worker};
use crate::abort::Abort;
use crate::chaos::ScopeChaos;
use crate::egress::BodySearch;
use crate::faults::{Context, Ledger};
use crate::http1::Waits;
use crate::recorder::{Answering, CallTap, ExchangeNote, McpTraffic, Meter, ModelTraffic, Traffic};

/// The running account of one exchange.
pub(crate) struct ExchangeLog {
    worker: Rc<Worker>,
    waits: Waits,
    listed: Cell<Option<usize>>,
    /// Only this log has it until it is recorded.
    note: RefCell<Option<Arc<ExchangeNote>>>,
    verdicts: RefCell<Vec<Verdict>>,
    /// Verdicts whose part of the plan only takes time: they leave the outcome `ok`.
    delays: RefCell<Vec<VerdictIndex>>,
    /// Rules whose changes of earlier exchanges were made again.
    again: RefCell<Vec<Verdict>>,
    /// Hears whether a model answers, where it is told something else of tools' results.
    tells: RefCell<Option<Box<Answering>>>,
    /// What rules plant once they are applied.
    canaries: RefCell<Vec<Planting>>,
    started: Instant,
    injected: Cell<Duration>,
    /// Time spent waiting for the agent or the upstream, which is not Squall's own.
    waited: Cell<Duration>,
    /// What Squall itself had added when the answer's head went on to the agent.
    overhead: Cell<Option<Duration>>,
    request_bytes: Cell<u64>,
    response_bytes: Cell<u64>,
    outcome: Cell<Option<Outcome>>,
    announced: Cell<bool>,
    /// What is kept of the bytes of a model call, and of an exchange that is recorded.
    traffic: RefCell<Option<Box<Traffic>>>,
    /// What a rule has read of the answer that it let pass.
    heard: RefCell<Option<Box<Tally>>>,
    mcp: RefCell<Option<Box<McpTraffic>>>,
    /// The beginning of its answer may show that it is the event stream of an MCP session.
    may_begin_session: Cell<bool>,
    /// The calls of a request that calls several tools.
    calls: RefCell<Option<Box<Asked>>>,
    /// Reads the call at once, where a rule with a budget matches it.
    meter: RefCell<Option<Box<Meter>>>,
    /// Hears which tools the model calls, where a rule may ask for their results later.
    heard_calls: RefCell<Option<Box<CallTap>>>,
    /// What is kept of the answer is copied: on HTTP/2 a piece that nobody holds any more is one
    /// that was sent, and a break waits for that.
    copies: Cell<bool>,
    /// Under which the exchange is: it knows which canaries were planted.
    chaos: Arc<ScopeChaos>,
    /// Looks for them in the request's body, once there are any.
    search: RefCell<Option<Box<BodySearch>>>,
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
            verdicts: RefCell::default(),
            delays: RefCell::default(),
            canaries: RefCell::default(),
            again: RefCell::default(),
            tells: RefCell::new(None),
            started: note.started,
            note: RefCell::new(Some(Arc::new(note))),
            injected: Cell::default(),
            waited: Cell::default(),
            overhead: Cell::default(),
            request_bytes: Cell::new(0),
            response_bytes: Cell::new(0),
            outcome: Cell::new(None),
            announced: Cell::new(false),
            traffic: RefCell::new(None),
            heard: RefCell::new(None),
            mcp: RefCell::new(None),
            may_begin_session: Cell::new(false),
            calls: RefCell::new(None),
            meter: RefCell::new(None),
            heard_calls: RefCell::new(None),
            copies: Cell::new(false),
            chaos,
            search: RefCell::default(),
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
    pub(crate) fn context(self: &Rc<Self>, connection: &Connection, method: &Method) -> Context {
        Context {
            ledger: Rc::clone(self) as Rc<dyn Ledger>,
            agent: connection.agent().clone(),
            method: method.clone(),
            seed: self.seed(),
            account: self.account(),
            inspect: self.worker.engine.inspect.clone(),
        }
    }

    /// What made-up variety depends on: different for every exchange, the same when the exchange is.
    /// Where no rule draws, exchanges are told apart by which matching call they are.
    fn seed(&self) -> u64 {
        let activation = self.chaos.activation();
        let verdicts = self.verdicts.borrow();
        let decided = verdicts
            .iter()
            .find(|verdict| matches!(verdict.outcome, RuleOutcome::Chosen));
        let (rule, call) = decided.map_or(("", 0), |verdict| (&*verdict.rule.id, verdict.ordinal));
        let key = RuleKey::new(activation.seed, &activation.key, rule);
        let (fingerprint, attempt) = self
            .note
            .borrow()
            .as_ref()
            .map_or((None, None), |note| (note.fingerprint, note.attempt));
        let attempt = attempt.unwrap_or(call);
        Dice::new(key, fingerprint.unwrap_or(Fingerprint(0)), attempt).next_choice()
    }

    /// What made-up names of the agent's account depend on: the same as long as the seed is.
    fn account(&self) -> u64 {
        let key = RuleKey::new(self.chaos.activation().seed, "", "");
        Dice::new(key, Fingerprint(0), 0).next_choice()
    }

    /// Writes something down.
    pub(crate) fn note(&self, write: impl FnOnce(&mut ExchangeNote)) {
        if let Some(note) = self.note.borrow_mut().as_mut().and_then(Arc::get_mut) {
            write(note);
        }
    }

    /// Takes down what was decided; the plan's verdicts move here, where their outcome is kept.
    pub(crate) fn decided(&self, decision: &mut Decision) {
        *self.delays.borrow_mut() = delays_alone(&decision.plan);
        *self.meter.borrow_mut() = decision.charge().map(Meter::new).map(Box::new);
        self.verdicts
            .borrow_mut()
            .clone_from(&decision.plan.verdicts);
        self.canaries
            .borrow_mut()
            .clone_from(&decision.plan.canaries);
        self.note(|note| {
            note.fingerprint = decision.fingerprint;
            note.attempt = decision.attempt;
            note.verdicts_more = decision.more;
            // A name that only the rules of a file give to an upstream.
            if note.tool.is_none() && note.kind == Kind::Tool {
                let mut rules = decision
                    .plan
                    .verdicts
                    .iter()
                    .filter(|verdict| verdict.ordinal > 0);
                note.tool = rules.find_map(|verdict| verdict.rule.tool().map(Arc::from));
            }
        });
    }

    /// Takes down what the upstream's status has changed: verdicts that were added, and earlier ones
    /// that a later rule has put out of work. What was carried out stays so.
    pub(crate) fn decided_more(&self, plan: &Plan) {
        let mut verdicts = self.verdicts.borrow_mut();
        for (known, now) in verdicts.iter_mut().zip(&plan.verdicts) {
            if known.outcome == RuleOutcome::Chosen {
                known.outcome.clone_from(&now.outcome);
            }
        }
        let known = verdicts.len();
        verdicts.extend(plan.verdicts.iter().skip(known).cloned());
        *self.delays.borrow_mut() = delays_alone(plan);
        self.canaries.borrow_mut().clone_from(&plan.canaries);
    }

    /// Takes down what a later stage of a connection's life says of further rules.
    pub(crate) fn found_more(&self, verdicts: Vec<Verdict>) {
        self.verdicts.borrow_mut().extend(verdicts);
    }

    /// Takes down rules whose earlier changes were made again, beside what they do here.
    pub(crate) fn applied_again(&self, again: Vec<Verdict>) {
        let metrics = &self.worker.engine.metrics;
        for verdict in &again {
            metrics.fault_applied(&verdict.rule, self.chaos().scope());
        }
        *self.again.borrow_mut() = again;
    }

    /// What was chosen and not carried out so far never will be.
    pub(crate) fn bypass_rest(&self, why: &str) {
        for verdict in self.verdicts.borrow_mut().iter_mut() {
            if verdict.outcome == RuleOutcome::Chosen {
                verdict.outcome = RuleOutcome::Bypassed(why.to_owned());
            }
        }
    }

    /// Modes of the rules that were carried out, or are about to be.
    pub(crate) fn modes_in_work(&self) -> Vec<&'static str> {
        let verdicts = self.verdicts.borrow();
        let in_work = verdicts.iter().filter(|verdict| {
            matches!(verdict.outcome, RuleOutcome::Applied | RuleOutcome::Chosen)
        });
        in_work.map(|verdict| verdict.rule.mode).collect()
    }

    /// Time spent waiting for somebody else.
    pub(crate) fn waited(&self, time: Duration) {
        self.waited.set(self.waited.get() + time);
    }

    /// The answer's head goes on to the agent. What comes after it goes at the pace of the upstream and
    /// the agent, which is not Squall's.
    pub(crate) fn head_passes(&self) {
        self.overhead.set(Some(self.own_time()));
    }

    /// Time since the beginning in which nobody was waited for.
    fn own_time(&self) -> Duration {
        let others = self.injected.get() + self.waited.get();
        self.started.elapsed().saturating_sub(others)
    }

    /// The agent got this status.
    pub(crate) fn answered(&self, status: StatusCode) {
        self.note(|note| note.status = Some(status));
    }

    /// The exchange tells a model something else of tools' results, and its answer begins well: once it
    /// has come to its end, the model knows them.
    pub(crate) fn tells(&self, answering: Answering) {
        *self.tells.borrow_mut() = Some(Box::new(answering));
    }

    /// The last of the answer goes to the agent now, and nothing is missing of it.
    pub(crate) fn sent_whole(&self) {
        self.sent_all();
        if let Some(request) = self.tells.take().and_then(|answering| answering.end()) {
            self.chaos().told().answered(request);
        }
    }

    /// The answer was passed on to its end.
    pub(crate) fn complete(&self) {
        self.sent_whole();
        self.end(Outcome::Ok, None);
    }

    /// The exchange ended otherwise; the first word counts.
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
        let scope = self.chaos().scope();
        let why = format!("what was in force for the scope `{scope}` is over");
        self.end(Outcome::Denied, Some(why.clone()));
        Abort::close(why)
    }

    /// Does `work` unless what is in force for the scope is over meanwhile.
    pub(crate) async fn unless_over<T, E: From<Abort>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(over) = self.chaos().over() else {
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
        note.duration = self.started.elapsed();
        note.injected = self.injected.get();
        note.overhead = self.overhead.get().unwrap_or_else(|| self.own_time());
        note.request_bytes = self.request_bytes.get();
        note.response_bytes = self.response_bytes.get();
        note.verdicts.clone_from(&self.verdicts.borrow());
        note.verdicts.extend_from_slice(&self.again.borrow());
        if let Some(asked) = self.calls.borrow().as_deref() {
            let tools = asked.tools();
            let named = called(asked, &note.verdicts);
            note.calls(named.as_deref(), &tools);
        }
    }

    /// A rule that did more than take time was applied.
    fn was_changed(&self) -> bool {
        let delays = self.delays.borrow();
        let again = !self.again.borrow().is_empty();
        again
            || self
                .verdicts
                .borrow()
                .iter()
                .enumerate()
                .any(|(index, verdict)| {
                    verdict.outcome == RuleOutcome::Applied
                        && !delays.iter().any(|delay| usize::from(*delay) == index)
                })
    }
}

impl OpenExchange for ExchangeLog {
    fn announce_if_older_than(&self, age: Duration) {
        if self.announced.get() || self.started.elapsed() < age {
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
        // Nobody said how it ended: whoever waited for the answer is gone.
        let said = self.outcome.get().unwrap_or(Outcome::ClientGone);
        note.outcome = match said {
            Outcome::Ok | Outcome::ClientGone if self.was_changed() => Outcome::Injected,
            other => other,
        };
        note.mcp = self.mcp.take();
        if let Some((llm, tokens)) = self.meter.take().and_then(|meter| meter.finish()) {
            note.spend(llm.model.as_deref(), tokens);
            note.llm = Some(Box::new(llm));
            note.traffic = self.traffic.take();
            if let Some(traffic) = &mut note.traffic {
                traffic.model = None;
            }
        } else {
            note.traffic = self.traffic.take();
            // Of an answer that was changed by another rule, or cut off, the agent got other bytes.
            if note.outcome == Outcome::Ok
                && let Some(heard) = self.heard.take()
                && let Some(model) = note.traffic.as_mut().and_then(|it| it.model.as_mut())
            {
                model.was_heard(heard);
            }
        }
        self.worker.engine.recorder.record(kept);
        self.chaos.exchange_ends(true);
    }
}

impl Ledger for ExchangeLog {
    fn applied(&self, index: VerdictIndex) {
        let mut verdicts = self.verdicts.borrow_mut();
        if let Some(verdict) = verdicts.get_mut(usize::from(index))
            && verdict.outcome != RuleOutcome::Applied
        {
            verdict.outcome = RuleOutcome::Applied;
            let metrics = &self.worker.engine.metrics;
            metrics.fault_applied(&verdict.rule, self.chaos().scope());
            drop(verdicts);
            self.plant(index);
        }
    }

    fn bypassed(&self, verdict: VerdictIndex, why: String) {
        if let Some(verdict) = self.verdicts.borrow_mut().get_mut(usize::from(verdict)) {
            verdict.outcome = RuleOutcome::Bypassed(why);
        }
    }

    fn told_of(&self, verdict: VerdictIndex, tools: Vec<String>) {
        if let Some(verdict) = self.verdicts.borrow_mut().get_mut(usize::from(verdict)) {
            let mut all = verdict.tools_told_of().to_vec();
            all.extend(
                tools
                    .into_iter()
                    .filter(|tool| !all.contains(tool))
                    .collect::<Vec<_>>(),
            );
            verdict.told_of = Some(all.into());
        }
    }

    fn counted_anew(&self) {
        self.of_model(ModelTraffic::counted_anew);
        if let Some(meter) = self.meter.borrow_mut().as_mut() {
            meter.counted_anew();
        }
    }

    fn heard(&self, tally: Box<Tally>) {
        *self.heard.borrow_mut() = Some(tally);
    }

    fn waited(&self, by: Duration) {
        ExchangeLog::waited(self, by);
    }

    fn delayed(&self, by: Duration) {
        self.injected.set(self.injected.get() + by);
        self.worker.engine.metrics.delayed(by);
    }
}

/// The tool that a request of several calls is listed under: the first that is called, unless rules
/// were applied about others alone.
fn called(asked: &Asked, verdicts: &[Verdict]) -> Option<String> {
    let applied = verdicts
        .iter()
        .filter(|verdict| verdict.outcome == RuleOutcome::Applied);
    let meant: Vec<String> = applied
        .flat_map(|verdict| verdict.rule.calls_meant(asked))
        .filter_map(|call| call.tool)
        .collect();
    let first = asked.tools().first().map(|tool| (*tool).to_owned())?;
    if meant.contains(&first) {
        return Some(first);
    }
    meant.into_iter().next().or(Some(first))
}

/// The verdicts of a plan whose part only takes time.
fn delays_alone(plan: &Plan) -> Vec<VerdictIndex> {
    if plan.is_empty() {
        return Vec::new();
    }
    let shape = &plan.shape;
    let slow = |edit: &Edit| {
        let Edit::Stream(fault) = edit else {
            return false;
        };
        matches!(fault, StreamFault::Slow { .. } | StreamFault::Stall { .. })
    };
    let slow_streams = plan
        .edits
        .iter()
        .filter_map(|(verdict, edit)| slow(edit).then_some(*verdict));
    plan.wait_before
        .iter()
        .chain(&plan.wait_after)
        .map(|(verdict, _)| *verdict)
        .chain(shape.down.map(|(verdict, _)| verdict))
        .chain(shape.up.map(|(verdict, _)| verdict))
        .chain(shape.slices.map(|(verdict, _)| verdict))
        .chain(shape.slow_close.map(|(verdict, _)| verdict))
        .chain(slow_streams)
        .collect()
}
