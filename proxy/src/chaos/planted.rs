//! The canaries planted in a scope, and their origins. Requests are searched for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use squall_profiles::canary::Canary;

use crate::bounded_map::BoundedMap;
use crate::lock::lock;
use crate::recorder::CanaryOrigin;

/// Most canaries that one activation remembers.
const REMEMBERED: usize = 4096;

/// The canaries planted under one activation. Without any, requests are not searched.
#[derive(Debug)]
pub struct Planted {
    any: AtomicBool,
    origins: Mutex<BoundedMap<Canary, Option<CanaryOrigin>>>,
}

impl Default for Planted {
    fn default() -> Self {
        Self {
            any: AtomicBool::new(false),
            origins: Mutex::new(BoundedMap::new(REMEMBERED, usize::MAX)),
        }
    }
}

impl Planted {
    /// Whether there are any: one relaxed load per exchange.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Remembers a canary, and drops the least recently used one if there are too many. Returns
    /// whether one was dropped. Planting a canary again updates its origin.
    pub fn plant(&self, canary: Canary, origin: CanaryOrigin) -> bool {
        let plant = |known: &mut Option<_>| *known = Some(origin);
        let forgot = self.origins().update(&canary, plant, |_| 0) > 0;
        // After the map, because readers of the flag then look into the map.
        self.any.store(true, Ordering::Relaxed);
        forgot
    }

    /// Where a canary was planted, if it is remembered.
    pub fn origin(&self, canary: Canary) -> Option<CanaryOrigin> {
        self.origins().get(&canary).cloned().flatten()
    }

    fn origins(&self) -> MutexGuard<'_, BoundedMap<Canary, Option<CanaryOrigin>>> {
        lock(&self.origins)
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
