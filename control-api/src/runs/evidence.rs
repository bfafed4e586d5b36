//! Bounds the traffic of failed invocations that a run stores.

use std::collections::BTreeSet;

use squall_harness::run::{CellRecord, CellState};
use squall_journal::id::ExchangeId;
use squall_journal::tape::Recorded;

/// Most bytes of heads and bodies that a run stores.
const BYTES: usize = 32 << 20;

/// Exchanges that were considered, and the bytes of the stored ones.
#[derive(Debug, Default)]
pub(super) struct EvidenceBudget {
    looked_at: BTreeSet<ExchangeId>,
    bytes: usize,
}

impl EvidenceBudget {
    /// The exchanges of a cell's failed invocations that were not considered before.
    pub(super) fn wanted(&mut self, cell: &CellRecord) -> Vec<ExchangeId> {
        let failed = cell.evidence.iter();
        let failed = failed.filter(|invocation| invocation.state == Some(CellState::Failed));
        let ids = failed.flat_map(|invocation| &invocation.exchanges);
        let ids = ids.filter_map(|id| id.parse().ok());
        ids.filter(|id| self.looked_at.insert(*id)).collect()
    }

    /// Whether one more fits; if so, it is counted.
    pub(super) fn has_room_for(&mut self, recorded: &Recorded) -> bool {
        let bytes = self.bytes + recorded.weight();
        let fits = bytes <= BYTES;
        if fits {
            self.bytes = bytes;
        }
        fits
    }
}
