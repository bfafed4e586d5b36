//! A run's life, from the queue to its end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use squall_harness::run::{RunRecord, RunState};
use tokio::time::timeout;

use super::super::ongoing::Ongoing;
use super::super::reach::workspace_scope;
use super::super::runner::{Runner, Tools};
use super::super::stop::Stop;
use super::end::{End, Outcome};
use super::{Lane, Runs};

/// How long a run waits for approval, and then for its turn.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// Why a run ends that waited too long.
const UNAPPROVED: &str = "it waited for approval for 24 hours, the longest time that a run waits";
const NO_TURN: &str = "it waited for its turn for 24 hours, the longest time that a run waits";

impl Runs {
    /// A run's life, from the queue to its end.
    pub(super) async fn live(self: Arc<Self>, run: Arc<Ongoing>, runner: Arc<dyn Runner>) {
        let lane = self.lane(&run.workspace);
        let turn = async {
            let approved = run.approved.cancelled();
            timeout(LONGEST_WAIT, approved)
                .await
                .map_err(|_| UNAPPROVED)?;
            // A workspace whose own turns are taken stands in nobody's way.
            let turn = async { (lane.turns.acquire().await, self.turns.acquire().await) };
            timeout(LONGEST_WAIT, turn).await.map_err(|_| NO_TURN)
        };
        let turn = run.mark.cut().run_until_cancelled(turn).await;
        if let Some(Err(why)) = turn {
            self.stop(&run, Stop::Waited(why));
        }
        let outcome = match turn {
            Some(Ok(_turns)) => {
                let at = self.now();
                let begun = run
                    .move_on(RunState::Running, |record| record.started_at = Some(at))
                    .await;
                if begun {
                    self.carry_out(&run, &*runner, &lane).await
                } else {
                    Outcome::Stopped
                }
            }
            _ => Outcome::Stopped,
        };
        self.reach.close(run.id());
        self.conclude(&run, outcome).await;
        self.forget(&run);
    }

    /// Until the runner is done, or the run is stopped.
    async fn carry_out(&self, run: &Ongoing, runner: &dyn Runner, lane: &Lane) -> Outcome {
        let tools = Tools {
            reach: Arc::clone(&self.reach) as _,
            tell: run,
            shared_scope: workspace_scope(&run.workspace).to_owned(),
            exclusive: Arc::clone(&lane.exclusive),
            approved: run.mark.is_approved(),
        };
        let working = AssertUnwindSafe(runner.run(&run.order, tools)).catch_unwind();
        let in_time = async {
            match self.chaos.longest() {
                Some(longest) => {
                    tokio::time::sleep(longest).await;
                    let why = "safety.ttl: it took longer than chaos may be in force";
                    self.stop(run, Stop::Ttl(why.to_owned()));
                }
                None => std::future::pending::<()>().await,
            }
        };
        tokio::select! {
            biased;
            () = run.mark.cut().cancelled() => Outcome::Stopped,
            done = working => match done {
                Ok(Ok(verdict)) => Outcome::Judged(Box::new(verdict)),
                // Its chaos was taken from under it.
                Ok(Err(_)) if run.mark.why().is_some() => Outcome::Stopped,
                Ok(Err(error)) => Outcome::Failed(error),
                Err(_) => Outcome::Panicked,
            },
            () = in_time => Outcome::Stopped,
        }
    }

    async fn conclude(&self, run: &Ongoing, outcome: Outcome) {
        let recorder = self.recorder.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || recorder.flush()).await {
            tracing::error!(%error, "the journal could not be waited for");
        }
        // What the store does not take counts too.
        if let Some(journal) = &self.journal {
            journal.settled().await;
        }
        let stopped = run.stopped();
        let lost = run.mark.lost();
        let End {
            state,
            verdict,
            error,
            reason,
        } = End::of(outcome, stopped.as_ref(), lost);
        let at = self.now();
        let coverage = run.coverage_so_far();
        let redacted = |mut text: String| {
            run.redact(&mut text);
            text
        };
        let fill = |record: &mut RunRecord| {
            record.finished_at = Some(at);
            record.coverage = coverage;
            record.error = error.map(&redacted);
            record.reason = reason.map(&redacted);
            let is_judged = matches!(state, RunState::Passed | RunState::Failed);
            record.passed = is_judged.then_some(state == RunState::Passed);
            if let Some(verdict) = verdict {
                record.score = verdict.score;
                record.scores = verdict.scores;
                record.scenarios = verdict.scenarios;
                record.demands = verdict.demands;
                record.documents.extend(verdict.documents);
                for text in record.made_of() {
                    run.redact(text);
                }
                record.recoveries = verdict.recoveries;
                record.stability = verdict.stability;
                record.comparison = verdict.comparison;
                record.warnings = verdict.warnings.into_iter().map(&redacted).collect();
                record.checks = verdict.checks;
            }
        };
        let before = run.record();
        run.move_on(state, fill).await;
        let record = run.record();
        if record.state.is_over() {
            self.metrics
                .runs()
                .ended(record.kind.as_str(), record.state.as_str(), record.score);
        }
        if let Some(stopped) = stopped {
            self.metrics
                .runs()
                .cut_short(run.order.kind.as_str(), stopped.label());
            tracing::info!(run = run.id(), "the run was ended: {}", stopped.why());
            // Who calls to cancel one is in the audit log with the call.
            if stopped != Stop::Cancelled {
                let change = (&before, &record);
                self.note(&run.workspace, "run ended", change, stopped.why());
            }
        }
    }
}
