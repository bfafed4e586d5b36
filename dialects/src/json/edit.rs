//! Changes to a JSON text that leave everything else as it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::document::{Document, NodeId, span};
use super::text::quote;

/// Changes to one document, made together by [`Edits::apply`].
///
/// A change inside something that is removed or replaced as a whole is left out. Of two changes
/// to one place the first counts.
#[derive(Debug)]
pub struct Edits<'d> {
    document: &'d Document<'d>,
    replaced: Vec<(Range<usize>, String)>,
    removed: BTreeSet<NodeId>,
    /// Of `removed`: items that take something with them when none of their list's items is kept:
    /// this, or the list.
    pruned: BTreeMap<NodeId, Option<NodeId>>,
}

impl<'d> Edits<'d> {
    /// No changes yet.
    pub fn new(document: &'d Document<'d>) -> Self {
        Self {
            document,
            replaced: Vec::new(),
            removed: BTreeSet::new(),
            pruned: BTreeMap::new(),
        }
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.removed.is_empty()
    }

    /// Puts `json` where a value stands. `json` must be JSON itself.
    pub fn replace(&mut self, place: NodeId, json: impl Into<String>) {
        let node = self.document.node(place);
        self.replaced
            .push((span(&(node.start..node.end)), json.into()));
    }

    /// Gives an object member another key; does nothing to a value that has none.
    pub fn rename(&mut self, place: NodeId, key: &str) {
        let node = self.document.node(place);
        if node.key_end > 0 {
            self.replaced
                .push((span(&(node.key_start..node.key_end)), quote(key)));
        }
    }

    /// Adds a member to an object, behind the one at `place`, which must not be taken out; does
    /// nothing behind a value that is no member.
    pub fn insert_after(&mut self, place: NodeId, key: &str, json: &str) {
        let node = self.document.node(place);
        if node.key_end > 0 {
            let behind = span(&(node.end..node.end));
            self.replaced
                .push((behind, format!(",{}:{json}", quote(key))));
        }
    }

    /// Takes out an object member or a list's item, with the comma that is left over; does
    /// nothing to the outermost value.
    pub fn remove(&mut self, place: NodeId) {
        if place.0 > 0 {
            self.removed.insert(place);
        }
    }

    /// Takes out a list's item like [`Self::remove`], and the list itself if it is an object's
    /// member and all its items are taken out.
    pub fn prune(&mut self, place: NodeId) {
        self.remove(place);
        self.pruned.insert(place, None);
    }

    /// Takes out a list's item like [`Self::remove`], and what stands at `outer`, around it, if all
    /// the list's items are taken out.
    pub fn prune_with(&mut self, place: NodeId, outer: NodeId) {
        self.remove(place);
        self.pruned.insert(place, Some(outer));
    }

    /// The text with all changes made.
    pub fn apply(&self) -> Vec<u8> {
        let mut changes: Vec<(Range<usize>, &str)> = self
            .removals()
            .into_iter()
            .map(|range| (range, ""))
            .collect();
        changes.extend(
            self.replaced
                .iter()
                .map(|(range, json)| (range.clone(), json.as_str())),
        );
        // The outer of two nested changes first, but what is added behind a value before what is cut
        // out from there; stable, so the first of two equal ones counts.
        changes.sort_by_key(|(range, _)| {
            (range.start, !range.is_empty(), std::cmp::Reverse(range.end))
        });

        let text = self.document.text();
        let mut edited = Vec::with_capacity(text.len());
        let mut done = 0;
        for (range, json) in changes {
            if range.start < done {
                continue;
            }
            edited.extend_from_slice(&text.as_bytes()[done..range.start]);
            edited.extend_from_slice(json.as_bytes());
            done = range.end;
        }
        edited.extend_from_slice(&text.as_bytes()[done..]);
        edited
    }

    /// What to cut out for the removed values: runs of neighbours go together, so that exactly
    /// one comma stays between any two that are kept.
    fn removals(&self) -> Vec<Range<usize>> {
        let mut removed = self.removed.clone();
        let pruned = self.pruned.keys().copied().collect();
        for list in self.document.containers(&pruned) {
            let items = self.children(list);
            if !items.iter().all(|item| removed.contains(item)) {
                continue;
            }
            let mut outer = items.iter().filter_map(|item| *self.pruned.get(item)?);
            match outer.next() {
                Some(outer) if outer.0 > 0 => {
                    removed.insert(outer);
                }
                None if self.document.node(list).key_end > 0 => {
                    removed.insert(list);
                }
                Some(_) | None => {}
            }
        }
        let containers = self.document.containers(&removed).into_iter();
        containers
            .flat_map(|container| self.removals_in(container, &removed))
            .collect()
    }

    fn children(&self, container: NodeId) -> Vec<NodeId> {
        let container = self.document.value(container);
        container
            .members()
            .chain(container.items())
            .map(super::Value::id)
            .collect()
    }

    fn removals_in(&self, container: NodeId, removed: &BTreeSet<NodeId>) -> Vec<Range<usize>> {
        let children = self.children(container);
        let mut ranges = Vec::new();
        let mut kept_before = None;
        let mut at = 0;
        while at < children.len() {
            if !removed.contains(&children[at]) {
                kept_before = Some(children[at]);
                at += 1;
                continue;
            }
            let first = children[at];
            while at < children.len() && removed.contains(&children[at]) {
                at += 1;
            }
            let last = children[at - 1];
            ranges.push(match (children.get(at), kept_before) {
                (Some(&kept_after), _) => self.start(first)..self.start(kept_after),
                (None, Some(kept)) => self.end(kept)..self.end(last),
                (None, None) => self.start(first)..self.end(last),
            });
        }
        ranges
    }

    /// Where a member's key, or an item, begins.
    fn start(&self, id: NodeId) -> usize {
        let node = self.document.node(id);
        (if node.key_end > 0 {
            node.key_start
        } else {
            node.start
        }) as usize
    }

    fn end(&self, id: NodeId) -> usize {
        self.document.node(id).end as usize
    }
}
