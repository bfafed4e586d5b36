//! One run that is not over yet.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use squall_harness::reach::Pending;
use squall_harness::run::{CellRecord, CoverageRecord, RunEvent, RunRecord, RunState};
use squall_harness::runner::Tell;
use squall_journal::redact::Redactor;
use squall_journal::tape::{Recorded, redact};
use squall_journal::timestamp;
use squall_proxy::chaos::RunMark;
use squall_proxy::recorder::Recorder;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::kept::Kept;
use super::runner::Order;
use super::stop::{OVER, Stop};
use crate::store::{RecordedRow, RunEventRow, RunStep, Store};

/// How long it waits to write again while the store is away.
const AGAIN: Duration = Duration::from_millis(500);

/// Most bytes of a text that is kept as evidence.
const TEXT: usize = 64 << 10;

/// One run that is not over yet.
pub(super) struct Ongoing {
    me: Weak<Self>,
    pub(super) order: Order,
    pub(super) workspace: String,
    pub(super) mark: Arc<RunMark>,
    /// Why it ends before its end; the first word counts.
    stopped: OnceLock<Stop>,
    /// Cancelled once somebody has said yes.
    pub(super) approved: CancellationToken,
    /// Cancelled once it is over.
    pub(super) over: CancellationToken,
    store: Store,
    recorder: Recorder,
    changed: watch::Sender<()>,
    coverage: Mutex<CoverageRecord>,
    kept: Mutex<Kept>,
    /// Knows what the suite's variables stand for, too.
    redactor: Redactor,
    /// As it is written so far. Looked at without waiting for what is being written.
    record: Mutex<RunRecord>,
    /// Held while something is written, for as long as the store is away.
    written: tokio::sync::Mutex<Written>,
}

/// How far it is written.
struct Written {
    state: RunState,
    /// Number of the last thing that happened.
    last: i64,
}

/// What is to be written.
enum News<'a> {
    /// It has come further.
    Step(RunStep<'a>),
    /// The daemon tells what happened, and which exchanges show why.
    Told(&'a str, &'a RunEventRow, &'a [RecordedRow]),
}

/// What it is made of.
pub(super) struct Parts {
    pub(super) order: Order,
    pub(super) workspace: String,
    pub(super) mark: Arc<RunMark>,
    pub(super) store: Store,
    pub(super) recorder: Recorder,
    /// Told when something has happened.
    pub(super) changed: watch::Sender<()>,
    pub(super) record: RunRecord,
    /// Things that have happened in it.
    pub(super) happened: usize,
}

impl Ongoing {
    /// A run that is being written down, with what happened in it first.
    pub(super) fn new(parts: Parts) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            redactor: parts
                .recorder
                .redactor()
                .and(&parts.order.suite.expanded.redactor()),
            order: parts.order,
            workspace: parts.workspace,
            mark: parts.mark,
            stopped: OnceLock::new(),
            approved: CancellationToken::new(),
            over: CancellationToken::new(),
            store: parts.store,
            recorder: parts.recorder,
            changed: parts.changed,
            coverage: Mutex::default(),
            kept: Mutex::default(),
            written: tokio::sync::Mutex::new(Written {
                state: parts.record.state,
                last: i64::try_from(parts.happened).unwrap_or(i64::MAX),
            }),
            record: Mutex::new(parts.record),
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.order.id
    }

    /// The run as it is written; the cells so far.
    pub(super) fn record(&self) -> RunRecord {
        self.locked_record().clone()
    }

    /// The run as it is told to those who ask: with what was tried so far, and once it is stopped, with why.
    pub(super) fn shown(&self) -> RunRecord {
        let mut record = self.record();
        if !record.state.is_over() {
            record.coverage = self.coverage_so_far();
            record.reason = self.stopped().map(|why| why.why().to_owned());
        }
        record
    }

    fn locked_record(&self) -> MutexGuard<'_, RunRecord> {
        // Whole between any two statements.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it before its end: its chaos cannot be put in force any more.
    pub(super) fn stop(&self, why: Stop) {
        let text = why.why().to_owned();
        let _ = self.stopped.set(why);
        self.mark.cut_short(&text);
    }

    /// Why it ends before its end; `None` while it does not.
    pub(super) fn stopped(&self) -> Option<Stop> {
        let of_chaos = || {
            let why = self.mark.why().filter(|why| *why != OVER);
            why.map(Stop::of_chaos)
        };
        self.stopped.get().cloned().or_else(of_chaos)
    }

    /// Moves it to a state, and writes that with what `record` makes of it. `false` when it may not become that.
    pub(super) async fn move_on(&self, to: RunState, record: impl FnOnce(&mut RunRecord)) -> bool {
        let mut written = self.written.lock().await;
        if !written.state.may_become(to) {
            return false;
        }
        let mut after = self.record();
        after.state = to;
        record(&mut after);
        let mut events = Vec::new();
        let mut happened = |name: &str, data: &Value| {
            events.push(RunEventRow {
                ordinal: written.last + 1 + i64::try_from(events.len()).unwrap_or(0),
                name: name.to_owned(),
                data: data.to_string(),
            });
        };
        if after.state.is_over() {
            happened(
                "score",
                &json!({ "score": after.score, "scores": after.scores }),
            );
        }
        happened("state", &json!(self.event(&after)));
        if after.state.is_over() {
            happened("done", &done(&after));
        }
        let step = RunStep {
            from: written.state,
            record: &after,
            events: &events,
        };
        let is_ours = self.write(News::Step(step)).await;
        written.state = to;
        if !is_ours {
            self.stop(Stop::Lease);
            return true;
        }
        written.last += i64::try_from(events.len()).unwrap_or(0);
        let event = json!(self.event(&after)).to_string();
        *self.locked_record() = after;
        self.recorder.publish_run(&self.order.scope, &event);
        true
    }

    /// Somebody says yes to it. That is told at once, and written as soon as the store takes it.
    pub(super) async fn approve(&self, by: Option<&str>, at: String) {
        {
            let mut record = self.locked_record();
            record.approved_at = Some(at);
            record.approved_by = by.map(str::to_owned);
        }
        self.mark.approve();
        self.approved.cancel();
        let _turn = self.written.lock().await;
        let record = self.record();
        // Once it has come further, that was written with it.
        if record.state == RunState::AwaitingApproval {
            let step = RunStep {
                from: record.state,
                record: &record,
                events: &[],
            };
            if !self.write(News::Step(step)).await {
                self.stop(Stop::Lease);
            }
        }
    }

    /// Writes down what happened. What cannot be written because the store is away is written when it is
    /// back.
    async fn told(&self, name: &str, data: String, exchanges: &[RecordedRow]) {
        let mut written = self.written.lock().await;
        let event = RunEventRow {
            ordinal: written.last + 1,
            name: name.to_owned(),
            data,
        };
        let daemon = self.locked_record().daemon.clone();
        if self.write(News::Told(&daemon, &event, exchanges)).await {
            written.last += 1;
        } else {
            self.stop(Stop::Lease);
        }
    }

    /// Carried to its end, even if the runner is dropped in the middle: what is counted is what is written.
    fn tell(
        &self,
        name: &'static str,
        data: &Value,
        exchanges: Vec<RecordedRow>,
    ) -> Pending<'static, ()> {
        let (me, data) = (self.me.upgrade(), data.to_string());
        Box::pin(async move {
            let Some(me) = me else { return };
            let telling = tokio::spawn(async move { me.told(name, data, &exchanges).await });
            if let Err(error) = telling.await {
                std::panic::resume_unwind(error.into_panic());
            }
        })
    }

    /// Writes until it is written; `false` when the run is not this daemon's any more.
    async fn write(&self, news: News<'_>) -> bool {
        let mut away = false;
        loop {
            let written = match &news {
                News::Step(step) => self.store.advance_run(step.clone()).await,
                News::Told(daemon, event, exchanges) => {
                    let events = std::slice::from_ref(*event);
                    let told = (self.store).tell_of_run(self.id(), daemon, events, exchanges);
                    told.await
                }
            };
            match written {
                Ok(is_ours) => {
                    self.changed.send_replace(());
                    return is_ours;
                }
                Err(error) => {
                    if !std::mem::replace(&mut away, true) {
                        tracing::warn!(run = self.id(), "the run waits for the store: {error}");
                    }
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    fn event(&self, record: &RunRecord) -> RunEvent {
        let at = timestamp::rfc3339(self.recorder.unix_ms(Instant::now()));
        event_of(record, at)
    }

    /// What was tried so far.
    pub(super) fn coverage_so_far(&self) -> CoverageRecord {
        self.locked_coverage().clone()
    }

    fn locked_coverage(&self) -> MutexGuard<'_, CoverageRecord> {
        // Whole between any two statements.
        self.coverage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes secrets out of a text: what the suite's variables stand for, and what looks like one.
    pub(super) fn redact(&self, text: &mut String) {
        self.redactor.text(text, TEXT);
    }

    /// Heads and bodies of the exchanges that show why a cell has failed, as far as they were not kept yet.
    fn shown_by(&self, cell: &CellRecord) -> Vec<RecordedRow> {
        let wanted = self.locked_kept().wanted(cell);
        let mut rows = Vec::new();
        for id in wanted {
            let note = self.recorder.exchange(id);
            let recorded = note.and_then(|note| {
                let is_own = note
                    .run
                    .as_ref()
                    .is_some_and(|run| **run.id() == *self.id());
                note.recorded.clone().filter(|_| is_own)
            });
            let Some(recorded) = recorded else { continue };
            if self.locked_kept().has_room_for(&recorded) {
                let mut recorded = Recorded::clone(&recorded);
                redact::recorded(&self.redactor, None, &mut recorded);
                rows.push(RecordedRow::of(&recorded));
            }
        }
        rows
    }

    fn locked_kept(&self) -> MutexGuard<'_, Kept> {
        // Whole between any two statements.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes secrets out of what an agent was asked and has answered.
    fn redact_cell(&self, cell: &mut CellRecord) {
        let evidence = cell.evidence.iter_mut().flat_map(|one| {
            let told = one.answer.as_mut().into_iter().chain(&mut one.reason);
            std::iter::once(&mut one.prompt).chain(told)
        });
        for text in cell.reason.iter_mut().chain(evidence) {
            self.redact(text);
        }
    }
}

impl Tell for Ongoing {
    fn progress(&self, done: u64, of: u64) -> Pending<'_, ()> {
        self.tell("progress", &json!({ "done": done, "of": of }), Vec::new())
    }

    fn cell(&self, mut cell: CellRecord) -> Pending<'_, ()> {
        self.redact_cell(&mut cell);
        Box::pin(async move {
            let telling = self.tell("cell", &json!(cell), self.shown_by(&cell));
            self.locked_record().cells.push(cell);
            telling.await;
        })
    }

    fn coverage(&self, coverage: CoverageRecord) {
        let mut so_far = self.locked_coverage();
        let before = std::mem::replace(&mut *so_far, coverage);
        so_far.and_tried(before.agent_invocations, before.rules_applied);
    }

    fn tried(&self, invocations: u64, rules_applied: u64) {
        self.locked_coverage().and_tried(invocations, rules_applied);
    }
}

/// How far a run is, for those who stream it.
pub(super) fn event_of(record: &RunRecord, at: String) -> RunEvent {
    RunEvent {
        at,
        id: record.id.clone(),
        kind: record.kind,
        name: record.name.clone(),
        state: record.state,
        score: record.score,
        reason: record.error.clone().or_else(|| record.reason.clone()),
    }
}

/// What is said when a run is over.
pub(super) fn done(record: &RunRecord) -> Value {
    json!({
        "state": record.state,
        "score": record.score,
        "passed": record.passed,
        "coverage": record.coverage,
        "error": record.error,
        "reason": record.reason,
    })
}
