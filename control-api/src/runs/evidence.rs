//! What a run keeps of the traffic of invocations that failed.

use std::collections::BTreeSet;

use squall_harness::run::{CellRecord, CellState};
use squall_journal::id::ExchangeId;
use squall_journal::tape::Recorded;

/// Greatest sum of heads and bodies that a run keeps, bytes.
const BYTES: usize = 32 << 20;

/// Which exchanges were looked at, and how many bytes of them are kept.
#[derive(Debug, Default)]
pub(super) struct EvidenceBudget {
    looked_at: BTreeSet<ExchangeId>,
    bytes: usize,
}

impl EvidenceBudget {
    /// The exchanges of a cell's failed invocations that were not looked at yet.
    pub(super) fn wanted(&mut self, cell: &CellRecord) -> Vec<ExchangeId> {
        let failed = cell.evidence.iter();
        let failed = failed.filter(|invocation| invocation.state == Some(CellState::Failed));
        let ids = failed.flat_map(|invocation| &invocation.exchanges);
        let ids = ids.filter_map(|id| id.parse().ok());
        ids.filter(|id| self.looked_at.insert(*id)).collect()
    }

    /// Whether one more fits; it counts then.
    pub(super) fn has_room_for(&mut self, recorded: &Recorded) -> bool {
        let bytes = self.bytes + recorded.weight();
        let fits = bytes <= BYTES;
        if fits {
            self.bytes = bytes;
        }
        fits
    }
}
