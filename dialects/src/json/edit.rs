//! Edits of a JSON text that leave everything else unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::Range;

use super::document::{Document, NodeId, Value};
use super::text::quote;

/// Edits of one document, applied together by [`Edits::apply`].
///
/// An edit inside a removed or replaced value is ignored. Of two edits at one place, the first one applies.
#[derive(Debug)]
pub struct Edits<'d> {
    document: &'d Document<'d>,
    replaced: Vec<(Range<usize>, String)>,
    removed: BTreeSet<NodeId>,
    /// Removed list items, with the value to remove if no item of their list is kept.
    pruned: BTreeMap<NodeId, NodeId>,
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

    /// Whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.removed.is_empty()
    }

    /// Replaces a value by `json`, which must be valid JSON.
    pub fn replace(&mut self, place: NodeId, json: impl Display) {
        let span = self.document.node(place).span();
        self.replaced.push((span, json.to_string()));
    }

    /// Renames the key of an object member; does nothing for other values.
    pub fn rename(&mut self, place: NodeId, key: &str) {
        let node = self.document.node(place);
        if node.is_member() {
            self.replaced.push((node.key_span(), quote(key)));
        }
    }

    /// Adds a member to an object after the member at `place`, which must not be removed; does nothing if that is
    /// not a member.
    pub fn insert_after(&mut self, place: NodeId, key: &str, json: impl Display) {
        let node = self.document.node(place);
        if node.is_member() {
            let end = node.span().end;
            self.replaced
                .push((end..end, format!(",{}:{json}", quote(key))));
        }
    }

    /// Replaces the member at `there`, or adds it after `place`.
    pub fn set(&mut self, there: Option<Value<'_>>, place: NodeId, key: &str, json: impl Display) {
        match there {
            Some(there) => self.replace(there.id(), json),
            None => self.insert_after(place, key, json),
        }
    }

    /// Removes an object member or a list item with its comma; does nothing for the outermost value.
    pub fn remove(&mut self, place: NodeId) {
        if place.0 > 0 {
            self.removed.insert(place);
        }
    }

    /// Removes a list item like [`Self::remove`]. If all items of the list are removed, also removes `outer`, which
    /// is the list or contains it.
    pub fn prune(&mut self, place: NodeId, outer: NodeId) {
        self.remove(place);
        self.pruned.insert(place, outer);
    }

    /// The text with all edits.
    pub fn apply(&self) -> Vec<u8> {
        let removals = self.removals();
        let mut changes: Vec<(&Range<usize>, &str)> =
            removals.iter().map(|range| (range, "")).collect();
        changes.extend(self.replaced.iter().map(|(range, json)| (range, &**json)));
        // Of two nested edits the outer one is first, but an insertion precedes a removal at its place. The sort is
        // stable, so of two equal edits the first one applies.
        changes.sort_by_key(|(range, _)| {
            (range.start, !range.is_empty(), std::cmp::Reverse(range.end))
        });

        let text = self.document.text().as_bytes();
        let mut edited = Vec::with_capacity(text.len());
        let mut done = 0;
        for (range, json) in changes {
            if range.start < done {
                continue;
            }
            edited.extend_from_slice(&text[done..range.start]);
            edited.extend_from_slice(json.as_bytes());
            done = range.end;
        }
        edited.extend_from_slice(&text[done..]);
        edited
    }

    /// The spans of the removed values, each with one comma.
    fn removals(&self) -> Vec<Range<usize>> {
        let mut removed = self.removed.clone();
        let parent = |id: &NodeId| NodeId(self.document.node(*id).parent);
        let pruned = self.pruned.iter();
        let lists: BTreeMap<_, _> = pruned.map(|(item, outer)| (parent(item), *outer)).collect();
        for (list, outer) in lists {
            let mut items = self.children(list);
            if outer.0 > 0 && items.all(|item| removed.contains(&item.id())) {
                removed.insert(outer);
            }
        }
        let containers: BTreeSet<NodeId> = removed.iter().map(parent).collect();
        let mut spans = Vec::new();
        for container in containers {
            let mut kept_end = None;
            let mut children = self.children(container).peekable();
            while let Some(child) = children.next() {
                let span = self.member_span(child);
                if !removed.contains(&child.id()) {
                    kept_end = Some(span.end);
                    continue;
                }
                spans.push(match (children.peek(), kept_end) {
                    (Some(next), _) => span.start..self.member_span(*next).start,
                    // Also covers the removed values before it.
                    (None, Some(kept_end)) => kept_end..span.end,
                    (None, None) => span,
                });
            }
        }
        spans
    }

    fn children(&self, container: NodeId) -> impl Iterator<Item = Value<'_>> {
        let container = self.document.value(container);
        container.members().chain(container.items())
    }

    /// The span of a value including its key.
    fn member_span(&self, value: Value<'_>) -> Range<usize> {
        let node = self.document.node(value.id());
        let start = if node.is_member() {
            node.key_span().start
        } else {
            node.span().start
        };
        start..node.span().end
    }
}
