//! A map of bounded size.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A map that drops its oldest key above a number of keys.
#[derive(Debug)]
pub(crate) struct FifoMap<K, V> {
    pub(crate) values: HashMap<K, V>,
    /// Oldest first.
    order: VecDeque<K>,
    most: usize,
}

impl<K: Clone + Eq + Hash, V> FifoMap<K, V> {
    /// An empty map of at most `most` keys.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            values: HashMap::new(),
            order: VecDeque::new(),
            most,
        }
    }

    /// The value of a key, at first `value`.
    pub(crate) fn entry(&mut self, key: K, value: V) -> &mut V {
        if !self.values.contains_key(&key) {
            if self.order.len() >= self.most
                && let Some(oldest) = self.order.pop_front()
            {
                self.values.remove(&oldest);
            }
            self.order.push_back(key.clone());
        }
        self.values.entry(key).or_insert(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_key_is_dropped_first() {
        let mut map = FifoMap::new(2);
        let mut count = |key| {
            let count = map.entry(key, 0);
            *count += 1;
            *count
        };
        assert_eq!([1, 1, 2, 3, 1, 3].map(&mut count), [1, 2, 1, 1, 1, 2]);
        assert_eq!(map.values.len(), 2);
    }
}
