//! Recordings and tapes of scopes: what their exchanges have to look at besides rules.

use std::sync::Arc;

use squall_journal::quota::OverQuota;
use squall_profiles::activation::Observe;

use super::table::ScopeTable;
use super::{Chaos, ReadDepth, ScopeChaos};
use crate::lock::lock;
use crate::tape::{Playing, Recording, Tapes};

impl Chaos {
    /// What is recorded and played back.
    pub fn tapes(&self) -> &Tapes {
        &self.tapes
    }

    /// The tape that answers in a scope, if any does.
    pub(crate) fn tape_of(&self, scope: &ScopeChaos) -> Option<Arc<Playing>> {
        (scope.reads() == ReadDepth::More)
            .then(|| self.tapes.playing(scope.scope()))
            .flatten()
    }

    /// Records what begins from now on in the recording's scopes.
    pub fn start_recording(&self, recording: Arc<Recording>) {
        let _keeping = lock(&self.keeping);
        self.tapes.record(recording);
        self.mark(&self.table.load());
    }

    /// Ends a recording: exchanges that have begun are in it when they end. Whether it ran.
    pub fn stop_recording(&self, id: &str) -> bool {
        let _keeping = lock(&self.keeping);
        let ran = self.tapes.stop(id);
        self.mark(&self.table.load());
        ran
    }

    /// Answers the scope's exchanges from a tape from now on, if its workspace may play one more.
    pub fn play(&self, scope: &str, tape: Arc<Playing>) -> Result<(), OverQuota> {
        let _keeping = lock(&self.keeping);
        let table = self.table.load();
        self.tapes.play(scope, tape, |scope| table.owner(scope))?;
        self.mark(&table);
        Ok(())
    }

    /// Takes the scope's tape away: its exchanges go to their upstreams again.
    pub fn take_out_tape(&self, scope: &str) {
        let _keeping = lock(&self.keeping);
        self.tapes.take_out(scope);
        self.mark(&self.table.load());
    }

    /// Makes the exchanges of every scope look at what concerns them.
    pub(super) fn mark(&self, table: &ScopeTable) {
        for scope in table.all() {
            scope.mark(concerned(&self.tapes, scope));
        }
    }
}

/// Whether a scope's exchanges have something to look at beside what the journal reads.
pub(super) fn concerned(tapes: &Tapes, scope: &ScopeChaos) -> bool {
    scope.observe() == Observe::Bodies || tapes.concern(scope.scope())
}
