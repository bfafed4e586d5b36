//! Recordings and tapes of scopes, which their exchanges check in addition to rules.

use std::sync::Arc;

use squall_journal::quota::OverQuota;

use super::table::ScopeTable;
use super::{Chaos, ScopeChaos};
use crate::lock::lock;
use crate::tape::{Playing, Recording, Tapes};

impl Chaos {
    /// All recordings and tapes.
    pub fn tapes(&self) -> &Tapes {
        &self.tapes
    }

    /// The tape that responds in a scope, if any.
    pub(crate) fn tape_of(&self, scope: &ScopeChaos) -> Option<Arc<Playing>> {
        scope
            .captures()
            .then(|| self.tapes.playing(scope.scope()))
            .flatten()
    }

    /// Records exchanges of the recording's scopes that start from now on.
    pub fn start_recording(&self, recording: Arc<Recording>) {
        let _keeping = lock(&self.keeping);
        self.tapes.record(recording);
        self.mark(&self.table.load());
    }

    /// Ends a recording; exchanges in progress are added when they end. Returns whether it existed.
    pub fn stop_recording(&self, id: &str) -> bool {
        let _keeping = lock(&self.keeping);
        let ran = self.tapes.stop(id);
        self.mark(&self.table.load());
        ran
    }

    /// Plays a tape in the scope from now on, if its workspace's quota permits.
    pub fn play(&self, scope: &str, tape: Arc<Playing>) -> Result<(), OverQuota> {
        let _keeping = lock(&self.keeping);
        let table = self.table.load();
        self.tapes.play(scope, tape, |scope| table.owner(scope))?;
        self.mark(&table);
        Ok(())
    }

    /// Plays a tape in a scope of a run from now on.
    pub fn play_in_run(&self, scope: &str, tape: Arc<Playing>) {
        let _keeping = lock(&self.keeping);
        self.tapes.play_in_run(scope, tape);
        self.mark(&self.table.load());
    }

    /// Removes the scope's tape; its exchanges use their upstreams again.
    pub fn take_out_tape(&self, scope: &str) {
        let _keeping = lock(&self.keeping);
        self.tapes.take_out(scope);
        self.mark(&self.table.load());
    }

    /// Sets for every scope whether its exchanges check recordings and tapes.
    pub(super) fn mark(&self, table: &ScopeTable) {
        for scope in table.all() {
            scope.mark(self.tapes.concern(scope.scope()));
        }
    }
}
