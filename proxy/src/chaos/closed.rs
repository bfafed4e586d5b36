//! Activations of runs that are closed while the run goes on: an asking is over, and its calls may not be.
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
    /// Puts in force for a scope what is or was in force in another, for the same run: its counters, windows
    /// and attempts go on, in an activation with an id of its own.
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

    /// Closes an activation of a run: what comes in its scope from now on meets no rule, and is counted by
    /// what is given. `None`: it is not in force any more.
    pub fn close_for_run(&self, own: &Arc<ScopeChaos>) -> Option<Arc<ScopeChaos>> {
        let mut keeping = lock(&self.keeping);
        let table = self.table.load();
        let found = table.find(own.scope());
        found.filter(|found| Arc::ptr_eq(found, own))?;
        let rest = Arc::new(ScopeChaos::rest(own, &self.next_id(Instant::now())));
        let after = table.put(Arc::clone(&rest));
        let (was, now) = (self.record(own), self.record(&rest));
        self.swap(after, &mut keeping);
        self.tell(Change::Ended, None, Some(&was), now);
        Some(rest)
    }

    /// Ends what a run has put in force, in one scope or in all of them; the run itself goes on. What was in force
    /// there before is again. How many activations there were.
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

    /// Puts what a run's activation suspended in force again, counters and time to live as they were. `false`: it
    /// suspended nothing, or is not in force any more.
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
        self.swap(table.put(Arc::clone(&again)), &mut keeping);
        self.deadlines.notify_one();
        self.tell(Change::Started, None, None, self.record(&again));
        true
    }

    /// Forgets the named scopes that `forgets` picks of those where a run's activation was closed: what comes there
    /// is under what is above them.
    pub fn forget_closed(&self, forgets: impl Fn(&ScopeChaos) -> bool) {
        let mut keeping = lock(&self.keeping);
        let after = self.table.load().without_rests(forgets);
        self.swap(after, &mut keeping);
    }
}
