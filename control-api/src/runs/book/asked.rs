//! What is asked of a run that is there: a yes, or its end.

use squall_harness::run::{RunRecord, RunState};

use super::super::stop::Stop;
use super::{PATIENCE, Runs};
use crate::store::StoreError;

/// Why a run was not approved.
#[derive(Debug)]
pub(crate) enum NotApproved {
    /// There is none of that id.
    Unknown,
    /// It waits for nobody's yes.
    NotAsked(RunState),
    /// It has been approved, and waits for its turn.
    Already,
    /// Another daemon executes it.
    Elsewhere(String),
    /// The store cannot be asked.
    Store(StoreError),
}

/// Why a run was not cancelled.
#[derive(Debug)]
pub(crate) enum NotCancelled {
    /// There is none of that id.
    Unknown,
    /// It is over.
    Over(RunState),
    /// Another daemon executes it.
    Elsewhere(String),
    /// The store cannot be asked.
    Store(StoreError),
}

impl Runs {
    /// Says yes to a run that waits for it: it then runs, unless as many as may are under way.
    pub(crate) async fn approve(
        &self,
        workspace: &str,
        id: &str,
        by: Option<&str>,
    ) -> Result<RunRecord, NotApproved> {
        let Some(run) = self.own(workspace, id) else {
            return match self.find(workspace, id).await.map_err(NotApproved::Store)? {
                None => Err(NotApproved::Unknown),
                Some(run) if run.state.is_over() => Err(NotApproved::NotAsked(run.state)),
                Some(run) => Err(NotApproved::Elsewhere(run.daemon)),
            };
        };
        let record = run.record();
        match record.state {
            RunState::AwaitingApproval if run.approved.is_cancelled() => Err(NotApproved::Already),
            RunState::AwaitingApproval => {
                let turns = [&self.turns, &*self.lane(workspace).turns];
                let has_a_turn = turns.iter().all(|turns| turns.available_permits() > 0);
                let mut changes = self.changes();
                let begun = async {
                    run.approve(by, self.now()).await;
                    while has_a_turn
                        && run.record().state == RunState::AwaitingApproval
                        && changes.changed().await.is_ok()
                    {}
                };
                // A store that is away keeps that from being written.
                let _ = tokio::time::timeout(PATIENCE, begun).await;
                Ok(run.record())
            }
            other => Err(NotApproved::NotAsked(other)),
        }
    }

    /// Ends a run, its chaos first, and waits for its end: what it was before, and is now.
    pub(crate) async fn cancel(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<(RunRecord, RunRecord), NotCancelled> {
        let Some(run) = self.own(workspace, id) else {
            return match self
                .find(workspace, id)
                .await
                .map_err(NotCancelled::Store)?
            {
                None => Err(NotCancelled::Unknown),
                Some(run) if run.state.is_over() => Err(NotCancelled::Over(run.state)),
                Some(run) => Err(NotCancelled::Elsewhere(run.daemon)),
            };
        };
        let before = run.shown();
        self.stop(&run, Stop::Cancelled);
        // A store that is away keeps its end from being written; its chaos has ended all the same, and it says
        // why in the state it is written in.
        let _ = tokio::time::timeout(PATIENCE, run.over.cancelled()).await;
        let record = run.shown();
        match record.state {
            // It was just about to end otherwise.
            over if over.is_over() && over != RunState::Cancelled => Err(NotCancelled::Over(over)),
            _ => Ok((before, record)),
        }
    }
}
