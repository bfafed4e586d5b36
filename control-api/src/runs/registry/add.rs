//! Accepts a run: checks, writes and queues it.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use squall_harness::agents::agent_name;
use squall_harness::run::{RunRecord, RunState};
use squall_harness::runner::RunSpec;
use squall_journal::quota::{OverQuota, Quota};

use super::super::active::{ActiveRun, event_of, event_rows};
use super::super::approval;
use super::Runs;
use super::lease::lease_ms;
use crate::problem::Detail;
use crate::store::{NewRun, StoreError};
use crate::tasks;

/// Unfinished runs, the waiting ones included. Each holds its suite.
const UNFINISHED: Quota = Quota {
    what: "runs that are not over",
    each: 100,
    all: 400,
    remedy: "wait until one of them is, or cancel one",
};

/// Why a run was not accepted.
#[derive(Debug)]
pub(crate) enum NotAdded {
    /// It is invalid.
    Wrong(Vec<Detail>),
    /// Too many runs are unfinished.
    Full(OverQuota),
    /// It could not be written.
    Store(StoreError),
}

impl Runs {
    /// Accepts a run: writes and queues it, even if the client disconnects.
    pub(crate) async fn add(
        self: &Arc<Self>,
        workspace: &str,
        spec: RunSpec,
    ) -> Result<RunRecord, NotAdded> {
        let wrong = self.executor.check(&spec).into_iter();
        let wrong: Vec<_> = wrong
            .map(|error| Detail::at(error.pointer, error.message))
            .collect();
        if !wrong.is_empty() {
            return Err(NotAdded::Wrong(wrong));
        }
        tasks::spawned(Arc::clone(self).write_and_queue(workspace.to_owned(), spec)).await
    }

    async fn write_and_queue(
        self: Arc<Self>,
        workspace: String,
        spec: RunSpec,
    ) -> Result<RunRecord, NotAdded> {
        let approval = self.approval.load_full();
        let waits = approval::is_wanted(&approval, &spec.name, &spec.suite).await;
        let mut record = self.new_record(&spec);
        let mark = self.reach.open(&record.id, &workspace);
        // One transaction, so that the store cannot fail between the two.
        let states = [RunState::Queued, RunState::AwaitingApproval];
        let mut events = Vec::new();
        for state in &states[..=usize::from(waits)] {
            record.state = *state;
            events.push(event_of(&record, record.created_at.clone()));
        }
        let named: Vec<_> = events.iter().map(|event| ("state", json!(event))).collect();
        let rows = event_rows(0, &named);
        let run = ActiveRun::new(
            record.clone(),
            i64::try_from(rows.len()).unwrap_or(i64::MAX),
            spec,
            workspace,
            mark,
            self.log.clone(),
        );
        {
            let mut active = self.active();
            let held = active.values().map(|run| &run.workspace);
            if let Err(over) = UNFINISHED.check(&run.workspace, held) {
                self.reach.close(&run.id);
                return Err(NotAdded::Full(over));
            }
            active.insert(run.id.clone(), Arc::clone(&run));
        }
        let new = NewRun {
            workspace: &run.workspace,
            record: &record,
            lease_ms: lease_ms(),
            events: &rows,
        };
        if let Err(error) = self.log.store.add_run(new).await {
            self.forget(&run);
            return Err(NotAdded::Store(error));
        }
        for event in &events {
            self.log.publish(&run.workspace, event);
        }
        if !waits {
            run.approved.cancel();
        }
        tokio::spawn(self.live(run));
        Ok(record)
    }

    fn new_record(&self, spec: &RunSpec) -> RunRecord {
        let recorder = &self.log.recorder;
        let mut agent = agent_name(&spec.suite.agent);
        let redactor = recorder.redactor().and(&spec.suite.redactor);
        redactor.text(&mut agent, usize::MAX);
        let id = recorder.begin(Instant::now()).to_string();
        RunRecord {
            created_at: self.log.now(),
            daemon: self.daemon.clone(),
            agent: Some(agent),
            ..spec.record(&id)
        }
    }
}
