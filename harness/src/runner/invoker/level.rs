//! Invokes the agent at a level of load.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures_util::future::try_join_all;
use tokio::sync::mpsc;

use super::super::jobs::InvocationJob;
use super::super::plan::LoadLimits;
use super::super::result::InvocationResult;
use super::super::{JobResult, RunError};
use super::{Invoker, Slot, taken_in_turn};
use crate::agents::InvocationPlace;
use crate::reach::Seen;

impl Invoker<'_, '_> {
    /// Executes the invocations of a level of load. One activation in `scope` is continued by all, so they share its
    /// counters and limits. If calls carry no scope, they are seen only under this activation, and returned.
    pub(in crate::runner) async fn work_in_level<'p>(
        &self,
        jobs: Vec<InvocationJob<'p>>,
        limits: LoadLimits,
        slots: &[Slot],
        scope: &str,
        done: mpsc::Sender<JobResult<'p>>,
    ) -> Result<Option<Seen>, RunError> {
        let Some(first) = jobs.first() else {
            return Ok(None);
        };
        let (slots, shared) = match slots {
            [Slot::Shared(shared)] => (vec![slots[0].clone(); limits.at_once], Some(&**shared)),
            own => (own.iter().take(limits.at_once).cloned().collect(), None),
        };
        let scope = shared.unwrap_or(scope);
        let wanted = self.wanted(first, &InvocationPlace::shared(scope));
        let level = self.begin(scope, wanted).await?;
        // `None`: there is no limit.
        let until = Instant::now().checked_add(limits.within);
        let take = taken_in_turn(jobs);
        let work = async |slot: &Slot| {
            while let Some(job) = take() {
                let result = if until.is_some_and(|until| Instant::now() >= until) {
                    self.report_progress(InvocationResult::left_out()).await
                } else if shared.is_some() {
                    let result = self.invoke_unseen(slot, &job).await;
                    self.report_progress(result).await
                } else {
                    let mut previous = Some(level.clone());
                    self.invoke(slot, &job, &mut previous, None).await?.0
                };
                let _ = done.try_send((job, Arc::new(result)));
            }
            Ok::<_, RunError>(())
        };
        try_join_all(slots.iter().map(work)).await?;
        let seen = self.seen(&level).await?;
        self.leave(scope).await?;
        Ok(shared.map(|_| {
            let rules_applied = &self.tally.rules_applied;
            rules_applied.fetch_add(seen.applied().count() as u64, Ordering::Relaxed);
            seen
        }))
    }

    /// Invokes the agent under the chaos in force. Its calls cannot be told from those of other invocations.
    async fn invoke_unseen(&self, slot: &Slot, job: &InvocationJob<'_>) -> InvocationResult {
        // A job of a level is one conversation.
        let invocation = self.invocations(slot, job).swap_remove(0);
        if let Err(error) = self.driver.reset(&invocation.place).await {
            return InvocationResult::not_reset(error);
        }
        self.tally.invocations.fetch_add(1, Ordering::Relaxed);
        self.report_tally();
        let answer = self.driver.ask(&invocation).await;
        InvocationResult::unseen(answer, invocation.place)
    }
}
