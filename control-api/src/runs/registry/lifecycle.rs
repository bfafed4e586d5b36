//! The life of a run, from the queue to its end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use squall_harness::run::{RunRecord, RunState};
use squall_harness::runner::{RunContext, RunResult};
use tokio::time::timeout;

use super::super::active::{ActiveRun, RunReporter};
use super::super::agent_files::agent_files;
use super::super::mutants::StoredMutants;
use super::super::reach::workspace_scope;
use super::super::scope_of;
use super::super::stop::StopReason;
use super::end::ending;
use super::{Lane, Runs};

use crate::tasks;

/// How long a run waits for approval, and then for its turn.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// The reason of a run that waited too long.
const UNAPPROVED: &str = "it waited for approval for 24 hours, the longest time that a run waits";
const NO_TURN: &str = "it waited for its turn for 24 hours, the longest time that a run waits";

impl Runs {
    /// Executes a run, from the queue to its end.
    pub(super) async fn live(self: Arc<Self>, run: Arc<ActiveRun>) {
        let lane = self.lane(&run.workspace);
        let turn = async {
            let approved = run.approved.cancelled();
            timeout(LONGEST_WAIT, approved)
                .await
                .map_err(|_| UNAPPROVED)?;
            // Workspace first: runs that wait for their own workspace do not block others.
            let turn = async {
                if run.spec.part_of.is_some() {
                    // The spread run has a turn.
                    return None;
                }
                Some((lane.turns.acquire().await, self.turns.acquire().await))
            };
            timeout(LONGEST_WAIT, turn).await.map_err(|_| NO_TURN)
        };
        let turn = run.mark.cut().run_until_cancelled(turn).await;
        if let Some(Err(why)) = turn {
            self.stop(&run, StopReason::Waited(why));
        }
        let mut result = None;
        if let Some(Ok(_turns)) = turn {
            let start = |record: &mut RunRecord| record.started_at = Some(self.log.now());
            if run.move_on(RunState::Running, start).await {
                result = self.carry_out(&run, &lane).await;
            }
        }
        self.reach.close(&run.id);
        self.conclude(&run, result).await;
        if run.spec.spreads {
            self.delete_queue(&run).await;
        }
        self.forget(&run);
    }

    /// The result, or an error; `None`: it was stopped.
    async fn carry_out(
        &self,
        run: &Arc<ActiveRun>,
        lane: &Lane,
    ) -> Option<Result<RunResult, String>> {
        let context = RunContext {
            run: &run.id,
            scope: &scope_of(&run.workspace, &run.id),
            reach: Arc::clone(&self.reach) as _,
            tell: &RunReporter(Arc::clone(run)),
            mutants: &StoredMutants {
                store: &self.log.store,
                workspace: &run.workspace,
            },
            shared_scope: workspace_scope(&run.workspace),
            exclusive: &lane.exclusive,
            approved: run.mark.is_approved(),
        };
        let working = async {
            if run.spec.spreads {
                return self.spread(run).await;
            }
            let result = self.parts.executor.run(&run.spec, context).await;
            let mut result = result.map_err(|error| error.to_string())?;
            let (agent, modules) = (run.spec.suite.agent.clone(), self.parts.modules.clone());
            let files = tokio::task::spawn_blocking(move || agent_files(&agent, &modules));
            result.documents = files.await.unwrap_or_default();
            Ok(result)
        };
        let working = AssertUnwindSafe(working).catch_unwind();
        let in_time = async {
            match self.parts.chaos.longest() {
                Some(longest) => tokio::time::sleep(longest).await,
                None => std::future::pending().await,
            }
        };
        let done = tokio::select! {
            biased;
            () = run.mark.cut().cancelled() => return None,
            done = working => done,
            () = in_time => {
                let why = "safety.ttl: it took longer than chaos may be in force";
                self.stop(run, StopReason::Ttl(why.to_owned()));
                return None;
            }
        };
        match done {
            // Another client ended its chaos.
            Ok(Err(_)) if run.mark.why().is_some() => None,
            Ok(done) => Some(done),
            Err(_) => Some(Err(
                "Squall failed in the middle of it; the log says how".to_owned()
            )),
        }
    }

    async fn conclude(&self, run: &ActiveRun, result: Option<Result<RunResult, String>>) {
        tasks::flushed(&self.log.recorder).await;
        // Exchanges that the store rejects count as lost, too.
        if let Some(journal) = &self.parts.journal {
            journal.settled().await;
        }
        let stopped = run.stopped();
        let (state, reason) = match &result {
            Some(Ok(result)) => ending(result, run.mark.lost()),
            Some(Err(_)) => (RunState::Errored, None),
            None => {
                let why = stopped.as_ref().map(|stopped| stopped.why().to_owned());
                (RunState::Cancelled, why)
            }
        };
        let fill = |record: &mut RunRecord| {
            record.finished_at = Some(self.log.now());
            record.coverage = run.coverage_so_far();
            record.reason = reason;
            let is_judged = matches!(state, RunState::Passed | RunState::Failed);
            record.passed = is_judged.then_some(state == RunState::Passed);
            match result {
                Some(Ok(result)) => result.write_into(record),
                Some(Err(error)) => record.error = Some(error),
                None => {}
            }
            let texts = record.warnings.iter_mut().chain(&mut record.reason);
            for text in texts.chain(&mut record.error) {
                run.redact(text);
            }
            for text in record.made_of() {
                run.redact(text);
            }
        };
        let before = run.record();
        run.move_on(state, fill).await;
        let record = run.record();
        let kind = record.kind.as_str();
        // A spread run is counted as a whole.
        let is_whole = record.part_of.is_none();
        if record.state.is_over() && is_whole {
            let state = record.state.as_str();
            self.parts.metrics.runs().ended(kind, state, record.score);
        }
        if let Some(stopped) = stopped.filter(|_| is_whole) {
            self.parts.metrics.runs().cut_short(kind, stopped.label());
            tracing::info!(run = run.id, "the run was ended: {}", stopped.why());
            // A cancelling call has its own audit entry.
            if stopped != StopReason::Cancelled {
                let change = (&before, &record);
                self.note(&run.workspace, "run ended", change, stopped.why());
            }
        }
    }
}
