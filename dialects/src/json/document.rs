//! An index over a JSON text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use super::parse::Parser;
use super::{Member, NotJson, text};

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number of any size.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

/// One value: its span, its key's span, and where the next value beside it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The key is written with an escape.
    pub(super) key_escaped: bool,
    /// Span of the key, quotes included; empty for a value that is no object member.
    pub(super) key_start: u32,
    pub(super) key_end: u32,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Index of the first node that is not inside this one.
    pub(super) next: u32,
}

/// A value's place in its document; means nothing in another document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

/// A JSON text and where its values stand.
#[derive(Debug)]
pub struct Document<'a> {
    text: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Document<'a> {
    /// Reads a whole JSON text; white space around it is allowed, a byte order mark is not.
    pub fn parse(body: &'a [u8]) -> Result<Self, NotJson> {
        let text = std::str::from_utf8(body).map_err(|error| NotJson {
            at: error.valid_up_to(),
            what: "not UTF-8",
        })?;
        let (nodes, outcome) = Parser::new(body).run();
        outcome.map(|()| Self { text, nodes })
    }

    /// Reads as much as there is of a text that may be cut off: values that are not complete are
    /// missing, containers end where the text does. `None`: not even the beginning is JSON.
    pub fn parse_prefix(body: &'a [u8]) -> Option<Self> {
        let text = match std::str::from_utf8(body) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&body[..error.valid_up_to()]).ok()?,
        };
        let (nodes, _) = Parser::new(text.as_bytes()).run();
        (!nodes.is_empty()).then_some(Self { text, nodes })
    }

    /// How many values there are.
    pub fn values(&self) -> usize {
        self.nodes.len()
    }

    /// The text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The outermost value.
    pub fn root(&self) -> Value<'_> {
        Value {
            document: self,
            id: NodeId(0),
        }
    }

    /// The value at a place that was found in this document.
    pub fn value(&self, id: NodeId) -> Value<'_> {
        Value { document: self, id }
    }

    /// Every object member, in the order of the text.
    pub(super) fn all_members(&self) -> Vec<Member> {
        let mut found = Vec::new();
        // Ends of the containers around the node at hand, as node indices.
        let mut around: Vec<u32> = Vec::new();
        // End of the previous member beside the one at hand, per level.
        let mut before: Vec<Option<u32>> = vec![None];
        for (index, node) in (0_u32..).zip(&self.nodes) {
            while around.last().is_some_and(|&end| end <= index) {
                around.pop();
                before.pop();
            }
            let previous = before.last_mut().and_then(|end| end.replace(node.end));
            if node.key_end > 0 {
                let last = around.last() == Some(&node.next);
                let whole = match (last, previous) {
                    (false, _) => node.key_start..self.nodes[node.next as usize].key_start,
                    (true, Some(previous)) => previous..node.end,
                    (true, None) => node.key_start..node.end,
                };
                found.push(Member {
                    key: span(&(node.key_start..node.key_end)),
                    value: span(&(node.start..node.end)),
                    whole: span(&whole),
                    depth: around.len(),
                });
            }
            if matches!(node.kind, Kind::Object | Kind::Array) {
                around.push(node.next);
                before.push(None);
            }
        }
        found
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The containers that these values stand in.
    pub(super) fn containers(&self, ids: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::new();
        let Some(&last) = ids.last() else {
            return found;
        };
        let mut around: Vec<NodeId> = Vec::new();
        for id in (0..=last.0).map(NodeId) {
            while around
                .last()
                .is_some_and(|&open| self.node(open).next <= id.0)
            {
                around.pop();
            }
            if ids.contains(&id) {
                found.extend(around.last());
            }
            if matches!(self.node(id).kind, Kind::Object | Kind::Array) {
                around.push(id);
            }
        }
        found
    }
}

/// A span of nodes' offsets as one of the text's.
pub(super) fn span(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d> {
    document: &'d Document<'d>,
    id: NodeId,
}

impl<'d> Value<'d> {
    /// Its place.
    pub fn id(self) -> NodeId {
        self.id
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        self.node().kind
    }

    /// Where it stands in the text; a string with its quotes.
    pub fn span(self) -> Range<usize> {
        let node = self.node();
        span(&(node.start..node.end))
    }

    /// Its text as it stands.
    pub fn raw(self) -> &'d str {
        &self.document.text[self.span()]
    }

    /// The key it is a member under, decoded.
    pub fn key(self) -> Option<Cow<'d, str>> {
        let node = self.node();
        let raw = &self.document.text[span(&(node.key_start..node.key_end))];
        (!raw.is_empty()).then(|| text::decode(raw))
    }

    /// The member with this key. Of several the last, as parsers of every agent's language take it.
    pub fn get(self, key: &str) -> Option<Self> {
        self.members().filter(|member| member.is_called(key)).last()
    }

    /// Whether it is a member under this key. Decodes only keys that are not what they stand for.
    fn is_called(self, key: &str) -> bool {
        let node = self.node();
        let quoted = &self.document.text.as_bytes()[span(&(node.key_start..node.key_end))];
        let Some(written) = quoted.get(1..quoted.len().saturating_sub(1)) else {
            return false;
        };
        if node.key_escaped {
            self.key().is_some_and(|found| found == key)
        } else {
            written == key.as_bytes()
        }
    }

    /// Its members, if it is an object; nothing otherwise.
    pub fn members(self) -> Members<'d> {
        Members(self.children(Kind::Object))
    }

    /// Its items, if it is an array; nothing otherwise.
    pub fn items(self) -> Items<'d> {
        Items(self.children(Kind::Array))
    }

    /// Its text, if it is a string; escapes decoded, halves of broken surrogate pairs replaced.
    pub fn as_str(self) -> Option<Cow<'d, str>> {
        (self.kind() == Kind::String).then(|| text::decode(self.raw()))
    }

    /// Its value, if it is a whole number from 0 that fits.
    pub fn as_u64(self) -> Option<u64> {
        if self.kind() == Kind::Number {
            self.raw().parse().ok()
        } else {
            None
        }
    }

    /// Its value, if it is `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        match self.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    fn node(self) -> &'d Node {
        self.document.node(self.id)
    }

    fn children(self, kind: Kind) -> Children<'d> {
        let node = self.node();
        let end = if node.kind == kind {
            node.next
        } else {
            self.id.0 + 1
        };
        Children {
            document: self.document,
            at: self.id.0 + 1,
            end,
        }
    }
}

/// The values directly inside a container.
#[derive(Debug, Clone)]
struct Children<'d> {
    document: &'d Document<'d>,
    at: u32,
    end: u32,
}

impl<'d> Iterator for Children<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        if self.at >= self.end {
            return None;
        }
        let value = Value {
            document: self.document,
            id: NodeId(self.at),
        };
        self.at = value.node().next;
        Some(value)
    }
}

/// Members of an object, in the order of the text; each knows its [`Value::key`].
#[derive(Debug, Clone)]
pub struct Members<'d>(Children<'d>);

impl<'d> Iterator for Members<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        self.0.next()
    }
}

/// Items of an array, in order.
#[derive(Debug, Clone)]
pub struct Items<'d>(Children<'d>);

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        self.0.next()
    }
}
