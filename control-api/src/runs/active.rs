//! A run that is not over.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use squall_harness::reach::Pending;
use squall_harness::run::{
    CellRecord, CoverageRecord, ExplorationRecord, LoadRecord, RunEvent, RunRecord, RunState,
};
use squall_harness::runner::{RunSpec, Tell};
use squall_journal::redact::Redactor;
use squall_journal::tape::{Recorded, redact};
use squall_journal::timestamp;
use squall_proxy::chaos::RunMark;
use squall_proxy::recorder::Recorder;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::evidence::EvidenceBudget;
use super::scope_of;
use super::stop::{OVER, StopReason};
use crate::lock;
use crate::store::{RecordedRow, RunEventRow, RunStep, Store, StoreError};
use crate::tasks;

/// Pause before a retry while the store is away.
const AGAIN: Duration = Duration::from_millis(500);

/// Longest text in the evidence, bytes.
const TEXT: usize = 64 << 10;

/// Stores events of runs, and publishes them to streams.
#[derive(Clone)]
pub(super) struct RunLog {
    pub(super) store: Store,
    pub(super) recorder: Recorder,
    /// Changes when an event of any run is stored.
    pub(super) changed: watch::Sender<()>,
}

impl RunLog {
    pub(super) fn now(&self) -> String {
        timestamp::rfc3339(self.recorder.unix_ms(Instant::now()))
    }

    /// Publishes a run's state to the streams of all events.
    pub(super) fn publish(&self, workspace: &str, event: &RunEvent) {
        let scope = scope_of(workspace, &event.id);
        (self.recorder).publish_run(&scope, &json!(event).to_string());
    }
}

/// A run that is not over.
pub(super) struct ActiveRun {
    pub(super) id: String,
    pub(super) spec: RunSpec,
    pub(super) workspace: String,
    pub(super) mark: Arc<RunMark>,
    /// Set once the store has it.
    pub(super) is_stored: AtomicBool,
    /// Why it is stopped early; the first reason counts.
    stopped: OnceLock<StopReason>,
    /// Cancelled once it is approved.
    pub(super) approved: CancellationToken,
    /// Cancelled once it is over.
    pub(super) over: CancellationToken,
    log: RunLog,
    coverage: Mutex<CoverageRecord>,
    evidence: Mutex<EvidenceBudget>,
    /// Its secrets include the values of the suite's variables.
    redactor: Redactor,
    /// The state that was last written. Readable during a write.
    record: Mutex<RunRecord>,
    /// Held during a write, for as long as the store is away.
    written: tokio::sync::Mutex<Written>,
}

/// How far it is written.
struct Written {
    state: RunState,
    /// Number of the last event.
    last: i64,
}

impl ActiveRun {
    /// A new run, whose first events, up to number `last`, are written.
    pub(super) fn new(
        record: RunRecord,
        last: i64,
        spec: RunSpec,
        workspace: String,
        mark: Arc<RunMark>,
        log: RunLog,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: record.id.clone(),
            redactor: (log.recorder.redactor()).and(&spec.suite.redactor),
            spec,
            workspace,
            mark,
            is_stored: AtomicBool::new(false),
            stopped: OnceLock::new(),
            approved: CancellationToken::new(),
            over: CancellationToken::new(),
            log,
            coverage: Mutex::default(),
            evidence: Mutex::default(),
            written: tokio::sync::Mutex::new(Written {
                state: record.state,
                last,
            }),
            record: Mutex::new(record),
        })
    }

    /// The run as it was last written; its cells so far.
    pub(super) fn record(&self) -> RunRecord {
        lock(&self.record).clone()
    }

    /// The run as clients see it: with its coverage so far and, once it is stopped, the reason.
    pub(super) fn shown(&self) -> RunRecord {
        let mut record = self.record();
        if !record.state.is_over() {
            record.coverage = self.coverage_so_far();
            record.reason = self.stopped().map(|why| why.why().to_owned());
        }
        record
    }

    /// Stops it early: from then on no chaos can be put in force for it.
    pub(super) fn stop(&self, why: StopReason) {
        let text = why.why().to_owned();
        let _ = self.stopped.set(why);
        self.mark.cut_short(&text);
    }

    /// Why it is stopped early; `None` while it is not.
    pub(super) fn stopped(&self) -> Option<StopReason> {
        let of_chaos = || {
            let why = self.mark.why().filter(|why| *why != OVER);
            why.map(StopReason::of_chaos)
        };
        self.stopped.get().cloned().or_else(of_chaos)
    }

    /// Changes its state, and writes the run after `record` has changed it. `false` if the transition is not
    /// allowed.
    pub(super) async fn move_on(&self, to: RunState, record: impl FnOnce(&mut RunRecord)) -> bool {
        let mut written = self.written.lock().await;
        if !written.state.may_become(to) {
            return false;
        }
        let mut after = self.record();
        after.state = to;
        record(&mut after);
        let event = event_of(&after, self.log.now());
        let mut events = vec![("state", json!(event))];
        if to.is_over() {
            let score = json!({ "score": after.score, "scores": after.scores });
            events.insert(0, ("score", score));
            events.push(("done", done(&after)));
        }
        let events = event_rows(written.last, &events);
        let step = RunStep {
            from: written.state,
            record: &after,
            events: &events,
        };
        let is_ours = self.write_step(step).await;
        written.state = to;
        if is_ours {
            written.last += i64::try_from(events.len()).unwrap_or(0);
            *lock(&self.record) = after;
            self.log.publish(&self.workspace, &event);
        }
        true
    }

    /// Approves it. Clients see that at once; it is written as soon as the store accepts it.
    pub(super) async fn approve(&self, by: Option<&str>) {
        {
            let mut record = lock(&self.record);
            record.approved_at = Some(self.log.now());
            record.approved_by = by.map(str::to_owned);
        }
        self.mark.approve();
        self.approved.cancel();
        // In a later state it was written together with that state.
        self.write_record(RunState::AwaitingApproval).await;
    }

    /// Writes the run while it is in this state.
    async fn write_record(&self, state: RunState) {
        let _turn = self.written.lock().await;
        let record = self.record();
        if record.state == state {
            let step = RunStep {
                from: record.state,
                record: &record,
                events: &[],
            };
            self.write_step(step).await;
        }
    }

    /// Writes a step; `false`, and the run is stopped, when it no longer belongs to this daemon.
    async fn write_step(&self, step: RunStep<'_>) -> bool {
        self.write(|| self.log.store.advance_run(step.clone()))
            .await
    }

    /// Writes an event, and the exchanges that are its evidence.
    async fn write_event(&self, name: &str, data: Value, exchanges: &[RecordedRow]) {
        let mut written = self.written.lock().await;
        let events = event_rows(written.last, &[(name, data)]);
        let daemon = lock(&self.record).daemon.clone();
        let store = &self.log.store;
        let write = || store.add_run_events(&self.id, &daemon, &events, exchanges);
        if self.write(write).await {
            written.last += 1;
        }
    }

    /// Retries until the store has written it; `false`, and the run is stopped, when it no longer belongs to this
    /// daemon.
    async fn write<F: Future<Output = Result<bool, StoreError>>>(
        &self,
        write: impl Fn() -> F,
    ) -> bool {
        let mut away = false;
        loop {
            match write().await {
                Ok(is_ours) => {
                    self.log.changed.send_replace(());
                    if !is_ours {
                        self.stop(StopReason::Lease);
                    }
                    return is_ours;
                }
                Err(error) => {
                    if !std::mem::replace(&mut away, true) {
                        tracing::warn!(run = self.id, "the run waits for the store: {error}");
                    }
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// The coverage so far.
    pub(super) fn coverage_so_far(&self) -> CoverageRecord {
        lock(&self.coverage).clone()
    }

    /// Redacts a text: values of the suite's variables, and whatever looks like a secret.
    pub(super) fn redact(&self, text: &mut String) {
        self.redactor.text(text, TEXT);
    }

    /// Heads and bodies of exchanges that explain a failed cell, without those stored before.
    fn shown_by(&self, cell: &CellRecord) -> Vec<RecordedRow> {
        let wanted = lock(&self.evidence).wanted(cell);
        let mut rows = Vec::new();
        for note in (wanted.into_iter()).filter_map(|id| self.log.recorder.exchange(id)) {
            let is_own = (note.run.as_ref()).is_some_and(|run| run.id() == self.mark.id());
            let Some(recorded) = note.recorded.as_deref().filter(|_| is_own) else {
                continue;
            };
            if lock(&self.evidence).has_room_for(recorded) {
                let mut recorded = Recorded::clone(recorded);
                redact::recorded(&self.redactor, None, &mut recorded);
                rows.push(RecordedRow::of(&recorded));
            }
        }
        rows
    }

    /// Redacts the prompts and responses of an agent.
    fn redact_cell(&self, cell: &mut CellRecord) {
        let evidence = cell.evidence.iter_mut().flat_map(|one| {
            let texts = one.answer.as_mut().into_iter().chain(&mut one.reason);
            let mutant = one.mutant.iter_mut().flat_map(|mutant| mutant.texts_mut());
            std::iter::once(&mut one.prompt).chain(texts).chain(mutant)
        });
        for text in cell.reason.iter_mut().chain(evidence) {
            self.redact(text);
        }
    }
}

/// Reports the harness's events of a run.
pub(super) struct RunReporter(pub(super) Arc<ActiveRun>);

impl RunReporter {
    /// Continues to its end even if the run is dropped meanwhile, so that counts match what is written.
    fn report(
        &self,
        name: &'static str,
        data: Value,
        exchanges: Vec<RecordedRow>,
    ) -> Pending<'static, ()> {
        let run = Arc::clone(&self.0);
        Box::pin(tasks::spawned(async move {
            run.write_event(name, data, &exchanges).await;
        }))
    }
}

impl Tell for RunReporter {
    fn progress(&self, done: u64, of: u64) -> Pending<'_, ()> {
        self.report("progress", json!({ "done": done, "of": of }), Vec::new())
    }

    fn cell(&self, mut cell: CellRecord) -> Pending<'_, ()> {
        self.0.redact_cell(&mut cell);
        Box::pin(async move {
            let report = self.report("cell", json!(cell), self.0.shown_by(&cell));
            lock(&self.0.record).cells.push(cell);
            report.await;
        })
    }

    fn explored(&self, exploration: ExplorationRecord) {
        lock(&self.0.record).exploration = Some(exploration);
        let run = Arc::clone(&self.0);
        // A later run can then continue it even if the daemon is killed.
        tokio::spawn(async move { run.write_record(RunState::Running).await });
    }

    fn loaded(&self, load: LoadRecord) {
        lock(&self.0.record).load = Some(load);
    }

    fn coverage(&self, coverage: CoverageRecord) {
        let mut so_far = lock(&self.0.coverage);
        let before = std::mem::replace(&mut *so_far, coverage);
        so_far.and_tried(before.agent_invocations, before.rules_applied);
    }

    fn tried(&self, invocations: u64, rules_applied: u64) {
        lock(&self.0.coverage).and_tried(invocations, rules_applied);
    }
}

/// The rows of events, numbered after `last`.
pub(super) fn event_rows(last: i64, events: &[(&str, Value)]) -> Vec<RunEventRow> {
    let numbered = (last + 1..).zip(events);
    let row = |(ordinal, (name, data)): (i64, &(&str, Value))| RunEventRow {
        ordinal,
        name: (*name).to_owned(),
        data: data.to_string(),
    };
    numbered.map(row).collect()
}

/// The state of a run, for streams.
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

/// The data of the `done` event.
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
