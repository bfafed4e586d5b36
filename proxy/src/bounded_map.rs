//! A bounded map that drops its least recently used entries.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A map with a bounded number of entries and a bounded total weight.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    slots: HashMap<K, MapSlot<V>>,
    most: usize,
    most_weight: usize,
    weight: usize,
    /// Counts uses, to find the least recently used entry.
    clock: u64,
}

#[derive(Debug)]
struct MapSlot<V> {
    value: V,
    weight: usize,
    used: u64,
}

impl<K: Eq + Hash + Clone, V: Default> BoundedMap<K, V> {
    pub(crate) fn new(most: usize, most_weight: usize) -> Self {
        Self {
            slots: HashMap::new(),
            most,
            most_weight,
            weight: 0,
            clock: 0,
        }
    }

    /// The value of a key; this counts as a use.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let slot = self.slots.get_mut(key)?;
        slot.used = self.clock;
        Some(&slot.value)
    }

    /// Changes the value of a key, and drops others if the weight is exceeded, finally the entry
    /// itself. Returns the number of dropped entries.
    pub(crate) fn update(
        &mut self,
        key: &K,
        change: impl FnOnce(&mut V),
        weigh: impl FnOnce(&V) -> usize,
    ) -> usize {
        self.clock += 1;
        let slot = self.slots.entry(key.clone()).or_insert_with(|| MapSlot {
            value: V::default(),
            weight: 0,
            used: 0,
        });
        slot.used = self.clock;
        change(&mut slot.value);
        self.weight -= slot.weight;
        slot.weight = weigh(&slot.value);
        self.weight += slot.weight;
        let before = self.slots.len();
        while self.weight > self.most_weight || self.slots.len() > self.most {
            let idle = self.slots.iter().min_by_key(|(_, slot)| slot.used);
            let Some(idle) = idle.map(|(key, _)| key.clone()) else {
                break;
            };
            let forgotten = self.slots.remove(&idle);
            self.weight -= forgotten.map_or(0, |slot| slot.weight);
        }
        before - self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_idle_longest_is_forgotten_first() {
        let mut map = BoundedMap::<&str, usize>::new(3, 10);
        let mut put = |key, weight| map.update(&key, |value| *value = weight, |value| *value);
        // Per row: key, weight, and the number of dropped entries.
        for (key, weight, forgotten) in [
            ("a", 4, 0),
            ("b", 4, 0),
            ("a", 5, 0),
            ("c", 2, 1),
            ("d", 1, 0),
            ("e", 1, 1),
            ("f", 11, 4),
        ] {
            assert_eq!(put(key, weight), forgotten, "{key}");
        }
        assert_eq!(map.get("f"), None);
        map.update(&"a", |_| {}, |_| 6);
        map.update(&"b", |_| {}, |_| 3);
        assert!(map.get("a").is_some());
        assert_eq!(map.update(&"c", |_| {}, |_| 3), 1);
        assert!(map.get("a").is_some() && map.get("b").is_none());
    }
}
