//! Requests to approve or cancel a run.

use std::sync::Arc;

use squall_harness::run::{RunRecord, RunState};

use super::super::active::ActiveRun;
use super::super::stop::StopReason;
use super::super::unknown;
use super::{PATIENCE, Runs};
use crate::problem::ApiProblem;

impl Runs {
    /// Approves a run; it then starts as soon as fewer than the maximum are in progress.
    pub(crate) async fn approve(
        &self,
        workspace: &str,
        id: &str,
        by: Option<&str>,
    ) -> Result<RunRecord, ApiProblem> {
        let run = self.executed_here(workspace, id, not_awaiting).await?;
        let record = run.record();
        if record.state != RunState::AwaitingApproval {
            return Err(ApiProblem::conflict(not_awaiting(record.state)));
        }
        if run.approved.is_cancelled() {
            let why = "the run is approved already; it starts when it is its turn";
            return Err(ApiProblem::conflict(why));
        }
        let turns = [&self.turns, &*self.lane(workspace).turns];
        let has_a_turn = turns.iter().all(|turns| turns.available_permits() > 0);
        let mut changes = self.changes();
        let begun = async {
            run.approve(by).await;
            while has_a_turn
                && run.record().state == RunState::AwaitingApproval
                && changes.changed().await.is_ok()
            {}
        };
        // It cannot be written while the store is away.
        let _ = tokio::time::timeout(PATIENCE, begun).await;
        Ok(run.record())
    }

    /// Cancels a run, its chaos first, and waits for its end. Returns the run before and after.
    pub(crate) async fn cancel(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<(RunRecord, RunRecord), ApiProblem> {
        let run = self.executed_here(workspace, id, is_over).await?;
        let before = run.shown();
        self.stop(&run, StopReason::Cancelled);
        // While the store is away its end cannot be written. Its chaos has ended all the same, and its state has
        // the reason.
        let _ = tokio::time::timeout(PATIENCE, run.over.cancelled()).await;
        let record = run.shown();
        match record.state {
            // It ended at the same moment for another reason.
            over if over.is_over() && over != RunState::Cancelled => {
                Err(ApiProblem::conflict(is_over(over)))
            }
            _ => Ok((before, record)),
        }
    }

    /// A run that this daemon executes. For a finished run the error is `why_not`.
    async fn executed_here(
        &self,
        workspace: &str,
        id: &str,
        why_not: fn(RunState) -> String,
    ) -> Result<Arc<ActiveRun>, ApiProblem> {
        if let Some(run) = self.own(workspace, id) {
            return Ok(run);
        }
        let found = self.find(workspace, id).await?;
        let run = found.ok_or_else(|| unknown(id))?;
        Err(ApiProblem::conflict(if run.state.is_over() {
            why_not(run.state)
        } else {
            format!(
                "the run is executed by the daemon {}; send the request to that one",
                run.daemon
            )
        }))
    }
}

fn not_awaiting(state: RunState) -> String {
    format!(
        "the run is {}; only one that is awaiting_approval can be approved",
        state.as_str()
    )
}

fn is_over(state: RunState) -> String {
    format!("the run is over: it is {}", state.as_str())
}
