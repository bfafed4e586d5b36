//! Which canaries were planted in a scope, and where: what egress is measured by.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use squall_profiles::canary::Canary;

use crate::recorder::CanaryOrigin;

/// Canaries one activation remembers.
const REMEMBERED: usize = 4096;

/// The canaries that were planted under one activation. Nothing is looked for where there is none.
#[derive(Debug, Default)]
pub struct Planted {
    any: AtomicBool,
    table: Mutex<CanaryTable>,
}

#[derive(Debug, Default)]
struct CanaryTable {
    planted: HashMap<Canary, CanaryOrigin>,
    order: VecDeque<Canary>,
}

impl Planted {
    /// Whether there is any: one relaxed load, for every exchange of every scope.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Remembers a canary, and no longer the oldest one when there are too many. Whether one was
    /// forgotten. A canary that is planted again was planted there.
    pub fn plant(&self, canary: Canary, origin: CanaryOrigin) -> bool {
        let forgot = self.with(|table| table.plant(canary, origin, REMEMBERED));
        // After the table: who sees it looks into the table, and locks it.
        self.any.store(true, Ordering::Relaxed);
        forgot
    }

    /// Where a canary was planted, if it was and is remembered.
    pub fn origin(&self, canary: Canary) -> Option<CanaryOrigin> {
        self.with(|table| table.planted.get(&canary).cloned())
    }

    fn with<T>(&self, look: impl FnOnce(&mut CanaryTable) -> T) -> T {
        // The table is whole at every step: a panic elsewhere has left nothing half done in it.
        look(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CanaryTable {
    fn plant(&mut self, canary: Canary, origin: CanaryOrigin, remembered: usize) -> bool {
        if self.planted.insert(canary, origin).is_some() {
            return false;
        }
        self.order.push_back(canary);
        if self.order.len() <= remembered {
            return false;
        }
        let oldest = self.order.pop_front();
        oldest.is_some_and(|oldest| self.planted.remove(&oldest).is_some())
    }
}

#[cfg(test)]
mod tests {
    use squall_journal::id::ExchangeId;

    use super::*;

    fn origin(number: u32) -> CanaryOrigin {
        CanaryOrigin {
            exchange: ExchangeId::new(1, number, 0),
            rule: "attack".to_owned(),
            payload: None,
        }
    }

    #[test]
    fn the_oldest_is_forgotten_first_and_that_is_told() {
        let mut table = CanaryTable::default();
        let canaries = [1, 2, 3].map(Canary::from_draw);
        let forgot: Vec<_> = [0, 1, 0, 2]
            .iter()
            .map(|which| table.plant(canaries[*which], origin(7), 2))
            .collect();
        assert_eq!(forgot, [false, false, false, true]);
        assert_eq!(
            canaries.map(|canary| table.planted.contains_key(&canary)),
            [false, true, true]
        );
        assert_eq!(table.order.len(), 2);
    }

    #[test]
    fn a_canary_is_known_by_its_last_place() {
        let planted = Planted::default();
        let canary = Canary::from_draw(5);
        assert!(!planted.any());
        assert_eq!(planted.origin(canary), None);
        planted.plant(canary, origin(1));
        planted.plant(canary, origin(2));
        assert!(planted.any());
        assert_eq!(planted.origin(canary), Some(origin(2)));
    }
}
