//! Closed activations of a continuing run: the invocation is over, but late calls may still arrive.
//!
//! ```text
//! put_for_run ──▶ exchanges ──▶ close_for_run ──▶ what comes late: no rules, counted apart ──▶ forget_closed
//!      go_on_for_run: another scope, the same counters ──┘
//! ```

use std::sync::Arc;
use std::time::Instant;

use squall_journal::activation::{ActivationRecord, Change};

use super::{Chaos, RunMark, ScopeChaos};
use crate::lock::lock;

impl Chaos {
    /// Activates for a scope what is or was in force in another one, for the same run. Counters,
    /// windows and attempts continue, but the activation has a new id.
    pub fn go_on_for_run(
        &self,
        scope: &str,
        former: &ScopeChaos,
        run: &Arc<RunMark>,
    ) -> (Arc<ScopeChaos>, ActivationRecord) {
        let mut keeping = lock(&self.keeping);
        let id = self.next_id(Instant::now());
        let fresh = ScopeChaos::going_on(former, scope, &id);
        self.put_in(fresh.counted_for(Some(run)), &mut keeping)
    }

    /// Closes an activation of a run. Later exchanges of its scope match no rule and are counted by
    /// the returned activation. `None`: it is no longer in force.
    pub fn close_for_run(&self, own: &Arc<ScopeChaos>) -> Option<Arc<ScopeChaos>> {
        let mut keeping = lock(&self.keeping);
        let table = self.table.load();
        let found = table.find(own.scope());
        found.filter(|found| Arc::ptr_eq(found, own))?;
        let rest = Arc::new(ScopeChaos::rest(own, &self.next_id(Instant::now())));
        let after = table.with(Arc::clone(&rest));
        let (was, now) = (self.record(own), self.record(&rest));
        self.swap(after, &mut keeping);
        self.publish(Change::Ended, None, Some(&was), now);
        Some(rest)
    }

    /// Ends a run's activations, in one scope or in all; the run itself continues. Suspended
    /// activations resume. Returns the number of ended ones.
    pub fn end_for_run(&self, scope: Option<&str>, run: &Arc<RunMark>) -> usize {
        let is_its = |own: &ScopeChaos| own.run().is_some_and(|of| Arc::ptr_eq(of, run));
        let table = self.table.load_full();
        let its = table.all().filter(|own| is_its(own));
        let scopes = its.filter(|own| scope.is_none_or(|scope| **own.scope() == *scope));
        let ended = scopes
            .filter(|own| {
                self.resume(own) || self.end_quietly(own.scope(), None, |found| is_its(found))
            })
            .count();
        if scope.is_none() {
            self.forget_closed(is_its);
        }
        ended
    }

    /// Resumes the activation that a run's activation suspended, with its counters and time to
    /// live. `false`: it suspended none, or is no longer in force.
    fn resume(&self, of_run: &Arc<ScopeChaos>) -> bool {
        let Some(suspended) = of_run.suspended() else {
            return false;
        };
        let mut keeping = lock(&self.keeping);
        let table = self.table.load();
        let found = table.find(of_run.scope());
        if !found.is_some_and(|found| Arc::ptr_eq(found, of_run)) {
            return false;
        }
        let again = Arc::new(ScopeChaos::resumed(suspended));
        self.swap(table.with(Arc::clone(&again)), &mut keeping);
        self.deadlines.notify_one();
        self.publish(Change::Started, None, None, self.record(&again));
        true
    }

    /// Removes closed scopes of runs that `forgets` selects. Later traffic there follows the
    /// parent's activation.
    pub fn forget_closed(&self, forgets: impl Fn(&ScopeChaos) -> bool) {
        let mut keeping = lock(&self.keeping);
        let after = self.table.load().without_rests(forgets);
        self.swap(after, &mut keeping);
    }
}
