//! How a run is taken: checked, written down, queued.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use squall_harness::run::{CoverageRecord, RunKind, RunRecord, RunState, ScoresRecord};
use squall_harness::scores::Bar;
use squall_harness::suite::Suite;
use squall_journal::quota::{OverQuota, Quota};

use super::super::agent_name::agent_name;
use super::super::approval;
use super::super::ongoing::{Ongoing, Parts, event_of};
use super::super::order::{FailOn, Wish};
use super::super::runner::{Order, Runner};
use super::super::scope_of;
use super::Runs;
use super::lease::lease_ms;
use crate::problem::Detail;
use crate::store::{NewRun, RunEventRow, StoreError};

/// Runs that are not over, those that wait included. Each holds its suite.
const UNFINISHED: Quota = Quota {
    what: "runs that are not over",
    each: 100,
    all: 400,
    remedy: "wait until one of them is, or cancel one",
};

/// Why a run was not taken.
#[derive(Debug)]
pub(crate) enum NotAdded {
    /// It makes no sense.
    Wrong(Vec<Detail>),
    /// There are too many that are not over.
    Full(OverQuota),
    /// It cannot be written down.
    Store(StoreError),
}

impl Runs {
    /// Takes a run: it is written down and queued.
    pub(crate) async fn add(
        self: &Arc<Self>,
        workspace: &str,
        wish: Wish,
    ) -> Result<RunRecord, NotAdded> {
        let now = Instant::now();
        let id = self.recorder.begin(now).to_string();
        let order = self.order(&id, workspace, &wish);
        let Some(runner) = self
            .runners
            .iter()
            .find(|runner| runner.kind() == wish.kind)
        else {
            return Err(NotAdded::Wrong(vec![self.no_runner(wish.kind)]));
        };
        let wrong = runner.check(&order);
        if !wrong.is_empty() {
            return Err(NotAdded::Wrong(wrong));
        }
        let record = self.new_record(wish, &order);
        let added = tokio::spawn(Arc::clone(self).write_and_queue(
            workspace.to_owned(),
            order,
            record,
            Arc::clone(runner),
        ));
        match added.await {
            Ok(added) => added,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Carried to its end, even if whoever asked for it has gone.
    async fn write_and_queue(
        self: Arc<Self>,
        workspace: String,
        order: Order,
        record: RunRecord,
        runner: Arc<dyn Runner>,
    ) -> Result<RunRecord, NotAdded> {
        let waits = self.needs_approval(&order, &record.name).await;
        let mark = self.reach.open(&order.id, &workspace);
        // Written at once, so that no store can go away between them.
        let states = [RunState::Queued, RunState::AwaitingApproval];
        let events: Vec<_> = states[..=usize::from(waits)]
            .iter()
            .map(|state| RunRecord {
                state: *state,
                ..record.clone()
            })
            .map(|record| event_of(&record, record.created_at.clone()))
            .collect();
        let record = RunRecord {
            state: events.last().map_or(record.state, |event| event.state),
            ..record
        };
        let run = Ongoing::new(Parts {
            order,
            workspace,
            mark,
            store: self.store.clone(),
            recorder: self.recorder.clone(),
            changed: self.changed.clone(),
            record: record.clone(),
            happened: events.len(),
        });
        {
            let mut ongoing = self.ongoing();
            let held = ongoing.values().map(|run| &run.workspace);
            if let Err(over) = UNFINISHED.check(&run.workspace, held) {
                self.reach.close(run.id());
                return Err(NotAdded::Full(over));
            }
            ongoing.insert(run.id().to_owned(), Arc::clone(&run));
        }
        let rows: Vec<_> = (1..)
            .zip(&events)
            .map(|(ordinal, event)| RunEventRow {
                ordinal,
                name: "state".to_owned(),
                data: json!(event).to_string(),
            })
            .collect();
        let new = NewRun {
            workspace: &run.workspace,
            record: &record,
            lease_ms: lease_ms(),
            events: &rows,
        };
        if let Err(error) = self.store.add_run(new).await {
            self.forget(&run);
            return Err(NotAdded::Store(error));
        }
        for row in &rows {
            self.recorder.publish_run(&run.order.scope, &row.data);
        }
        if !waits {
            run.approved.cancel();
        }
        let record = run.record();
        tokio::spawn(self.live(run, runner));
        Ok(record)
    }

    fn order(&self, id: &str, workspace: &str, wish: &Wish) -> Order {
        let (options, advanced) = (&wish.options, &wish.suite.advanced);
        let at_once = usize::try_from(advanced.concurrency).ok();
        let at_once = at_once
            .and_then(NonZeroUsize::new)
            .unwrap_or(NonZeroUsize::MIN);
        Order {
            id: id.to_owned(),
            kind: wish.kind,
            name: wish.name.clone(),
            scope: scope_of(workspace, id),
            suite: Arc::clone(&wish.suite),
            doubts: wish.doubts.clone(),
            chaos: wish.chaos.clone(),
            names_profile: options.profile.is_some(),
            seed: options.seed.or(advanced.seed).unwrap_or(self.chaos.seed()),
            concurrency: options.concurrency.unwrap_or(at_once),
            bar: Bar {
                least: options.min_score.or(advanced.min_score),
                strict: options.strict.unwrap_or(advanced.strict),
            },
            repeat: options.repeat.unwrap_or(1),
            baseline: wish.baseline.clone(),
            fails_if_worse: options.fail_on == Some(FailOn::Regression),
        }
    }

    fn new_record(&self, wish: Wish, order: &Order) -> RunRecord {
        RunRecord {
            id: order.id.clone(),
            kind: wish.kind,
            name: wish.name,
            state: RunState::Queued,
            score: None,
            passed: None,
            coverage: CoverageRecord::default(),
            scores: ScoresRecord::default(),
            cells: Vec::new(),
            scenarios: Vec::new(),
            recoveries: Vec::new(),
            stability: None,
            comparison: None,
            warnings: Vec::new(),
            checks: Vec::new(),
            seed: order.seed,
            created_at: self.now(),
            approved_at: None,
            approved_by: None,
            started_at: None,
            finished_at: None,
            error: None,
            reason: None,
            daemon: self.daemon.clone(),
            documents: wish.documents,
            agent: Some(self.agent_name(&wish.suite)),
            tester: wish.suite.certificate.tester.clone(),
            min_score: order.bar.least,
            pass_threshold: wish.suite.certificate.pass_threshold,
            certificate_format: wish.suite.certificate.format.map(str::to_owned),
            demands: Vec::new(),
        }
    }

    fn agent_name(&self, suite: &Suite) -> String {
        let mut name = agent_name(&suite.agent);
        let redactor = self.recorder.redactor().and(&suite.expanded.redactor());
        redactor.text(&mut name, usize::MAX);
        name
    }

    fn no_runner(&self, kind: RunKind) -> Detail {
        let there: Vec<_> = self
            .runners
            .iter()
            .map(|runner| runner.kind().as_str())
            .collect();
        Detail::at(
            "/kind",
            format!(
                "this version carries out no runs of kind `{}`; there are {}",
                kind.as_str(),
                there.join(", ")
            ),
        )
    }

    async fn needs_approval(&self, order: &Order, name: &str) -> bool {
        let approval = self.approval.load_full();
        approval::is_wanted(&approval, name, &order.suite).await
    }
}
