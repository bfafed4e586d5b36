//! Delta debugging (ddmin of Zeller and Hildebrandt, 2002): minimises a failing set by tests of smaller ones.
//!
//! The caller tests each set of [`Ddmin::next`], which is never empty, and reports the result. The result is
//! 1-minimal: without any one of its elements, the failure is gone.

use std::collections::{BTreeSet, VecDeque};

/// A minimisation in progress. Elements are numbers from 0.
#[derive(Debug)]
pub(crate) struct Ddmin {
    /// The smallest known set that fails.
    kept: Vec<usize>,
    /// The number of parts that `kept` is divided into.
    parts: usize,
    /// Sets to test, each with the number of parts to go on with if it fails.
    pending: VecDeque<(Vec<usize>, usize)>,
    tested: BTreeSet<Vec<usize>>,
}

impl Ddmin {
    /// Starts with `all` elements, which fail together.
    pub(crate) fn new(all: usize) -> Self {
        Self {
            kept: (0..all).collect(),
            parts: 1,
            pending: VecDeque::new(),
            tested: BTreeSet::new(),
        }
    }

    /// The smallest known set that fails.
    pub(crate) fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// The next set to test; `None`: the known set is 1-minimal.
    pub(crate) fn next(&mut self) -> Option<Vec<usize>> {
        loop {
            while let Some((set, _)) = self.pending.front() {
                if !self.tested.contains(set) {
                    return Some(set.clone());
                }
                self.pending.pop_front();
            }
            if self.parts >= self.kept.len() {
                return None;
            }
            self.divide(self.parts * 2);
        }
    }

    /// The result of the set that [`Self::next`] returned.
    pub(crate) fn report(&mut self, fails: bool) {
        let Some((set, parts)) = self.pending.pop_front() else {
            return;
        };
        self.tested.insert(set.clone());
        if fails {
            self.kept = set;
            self.divide(parts);
        }
    }

    /// Divides the known set: each part is to be tested, then each complement of a part.
    fn divide(&mut self, parts: usize) {
        let all = self.kept.len();
        self.parts = parts.min(all);
        let bound = |part: usize| part * all / self.parts.max(1);
        let parts = 0..self.parts;
        let parts: Vec<_> = parts.map(|part| bound(part)..bound(part + 1)).collect();
        let subsets = parts
            .iter()
            .map(|part| (self.kept[part.clone()].to_vec(), 2));
        let complements = parts.iter().map(|part| {
            let (before, after) = (&self.kept[..part.start], &self.kept[part.end..]);
            ([before, after].concat(), (self.parts - 1).max(2))
        });
        let sets = subsets.chain(complements);
        self.pending = sets
            .filter(|(set, _)| (1..all).contains(&set.len()))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Minimises, and returns the result with the tested sets.
    fn minimised(all: usize, fails: impl Fn(&[usize]) -> bool) -> (Vec<usize>, Vec<Vec<usize>>) {
        let mut ddmin = Ddmin::new(all);
        let mut tested = Vec::new();
        while let Some(set) = ddmin.next() {
            ddmin.report(fails(&set));
            tested.push(set);
        }
        (ddmin.kept().to_vec(), tested)
    }

    #[test]
    fn what_is_needed_together_is_found() {
        for (all, needed, tests) in [
            (1, vec![0], 0),
            (7, vec![1], 4),
            (7, vec![0, 6], 12),
            (8, vec![2, 3, 5], 20),
        ] {
            let (kept, tested) = minimised(all, |set| needed.iter().all(|one| set.contains(one)));
            assert_eq!(kept, needed);
            assert!(tested.len() <= tests, "{all} {needed:?}: {}", tested.len());
        }
    }

    proptest! {
        #[test]
        fn a_result_is_one_minimal_and_each_set_is_tested_once(all in 1_usize..11, table in any::<[u64; 16]>()) {
            // Any predicate on sets of up to 10 elements, except that all together fail and nothing alone passes.
            let fails = |set: &[usize]| {
                let bits: usize = set.iter().map(|one| 1 << one).sum();
                !set.is_empty() && (set.len() == all || table[bits / 64] >> (bits % 64) & 1 == 1)
            };
            let (kept, tested) = minimised(all, fails);
            prop_assert!(fails(&kept));
            for left_out in &kept {
                let others: Vec<_> = kept.iter().copied().filter(|one| one != left_out).collect();
                prop_assert!(!fails(&others), "{kept:?} without {left_out}");
            }
            let sets: BTreeSet<_> = tested.iter().collect();
            prop_assert_eq!(sets.len(), tested.len());
        }
    }
}
