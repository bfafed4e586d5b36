//! Changes to a JSON text that leave everything else as it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::Range;

use super::document::{Document, NodeId, Value};
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
    /// Of `removed`: list items, and what else is removed when no item of their list is kept.
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

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.removed.is_empty()
    }

    /// Replaces a value by `json`, which must be JSON itself.
    pub fn replace(&mut self, place: NodeId, json: impl Display) {
        let span = self.document.node(place).span();
        self.replaced.push((span, json.to_string()));
    }

    /// Gives an object member another key; does nothing to a value that has none.
    pub fn rename(&mut self, place: NodeId, key: &str) {
        let node = self.document.node(place);
        if node.is_member() {
            self.replaced.push((node.key_span(), quote(key)));
        }
    }

    /// Adds a member to an object, behind the one at `place`, which must not be removed; does
    /// nothing behind a value that is no member.
    pub fn insert_after(&mut self, place: NodeId, key: &str, json: impl Display) {
        let node = self.document.node(place);
        if node.is_member() {
            let end = node.span().end;
            self.replaced
                .push((end..end, format!(",{}:{json}", quote(key))));
        }
    }

    /// Sets a member of an object that is at `there`, or is to be added behind `place`.
    pub fn set(&mut self, there: Option<Value<'_>>, place: NodeId, key: &str, json: impl Display) {
        match there {
            Some(there) => self.replace(there.id(), json),
            None => self.insert_after(place, key, json),
        }
    }

    /// Removes an object member or a list's item, with the comma that is left over; does
    /// nothing to the outermost value.
    pub fn remove(&mut self, place: NodeId) {
        if place.0 > 0 {
            self.removed.insert(place);
        }
    }

    /// Removes a list's item like [`Self::remove`], and `outer`, which is the list or around it, if
    /// all the list's items are removed.
    pub fn prune(&mut self, place: NodeId, outer: NodeId) {
        self.remove(place);
        self.pruned.insert(place, outer);
    }

    /// The text with all changes made.
    pub fn apply(&self) -> Vec<u8> {
        let removals = self.removals();
        let mut changes: Vec<(&Range<usize>, &str)> =
            removals.iter().map(|range| (range, "")).collect();
        changes.extend(self.replaced.iter().map(|(range, json)| (range, &**json)));
        // The outer of two nested changes first, but what is added behind a value before what is
        // removed from there; stable, so the first of two equal ones counts.
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

    /// The spans of the removed values, each with a comma that goes with it.
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
                    // It covers the removed values before it, too.
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

    /// The span of a value with its key.
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
