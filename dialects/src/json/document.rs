//! An index over a JSON text.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use serde_json::Value as Json;

use super::parse::{JsonKind, Node, Parser};
use super::{MAX_VALUES, NotJson, text};

/// The place of a value; valid only in its own document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

/// A JSON text with an index of its values.
#[derive(Debug)]
pub struct Document<'a> {
    text: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Document<'a> {
    /// Parses a complete JSON text. White space around it is allowed, a byte order mark is not.
    pub fn parse(body: &'a [u8]) -> Result<Self, NotJson> {
        Self::parse_up_to(body, MAX_VALUES)
    }

    /// The same with a lower limit of values.
    pub fn parse_up_to(body: &'a [u8], max_values: usize) -> Result<Self, NotJson> {
        let text = std::str::from_utf8(body).map_err(|error| NotJson {
            at: error.valid_up_to(),
            what: "not UTF-8",
        })?;
        let (nodes, outcome) = Parser::new(body, max_values).run();
        outcome.map(|()| Self { text, nodes })
    }

    /// Parses a text that may be truncated. Incomplete values are missing, and containers end with the text.
    /// `None`: even the start is not JSON.
    pub fn parse_prefix(body: &'a [u8]) -> Option<Self> {
        let text = match std::str::from_utf8(body) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&body[..error.valid_up_to()]).ok()?,
        };
        let (nodes, _) = Parser::new(text.as_bytes(), MAX_VALUES).run();
        (!nodes.is_empty()).then_some(Self { text, nodes })
    }

    /// The number of values.
    pub fn values(&self) -> usize {
        self.nodes.len()
    }

    /// The text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The outermost value.
    pub fn root(&self) -> Value<'_> {
        self.value(NodeId(0))
    }

    /// The value at a place in this document.
    pub fn value(&self, id: NodeId) -> Value<'_> {
        Value { document: self, id }
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }
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

    /// The kind of the value.
    pub fn kind(self) -> JsonKind {
        self.node().kind
    }

    /// Its span in the text; a string's includes the quotes.
    pub fn span(self) -> Range<usize> {
        self.node().span()
    }

    /// Its raw text.
    pub fn raw(self) -> &'d str {
        &self.document.text[self.span()]
    }

    /// The key of an object member, decoded.
    pub fn key(self) -> Option<Cow<'d, str>> {
        let node = self.node();
        node.is_member()
            .then(|| text::decode(&self.document.text[node.key_span()]))
    }

    /// Whether it is the object member with this key.
    fn is_named(self, key: &str) -> bool {
        let node = self.node();
        node.is_member() && text::is(&self.document.text[node.key_span()], key)
    }

    /// Whether it is an object member.
    pub fn is_member(self) -> bool {
        self.node().is_member()
    }

    /// The member with this key. With duplicate keys it is the last one, as in most JSON parsers.
    pub fn get(self, key: &str) -> Option<Self> {
        self.members().filter(|member| member.is_named(key)).last()
    }

    /// The value at a path of keys.
    pub fn path(self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The member with this key, unless it is `null`.
    pub fn given(self, key: &str) -> Option<Self> {
        self.get(key).filter(|member| !member.is_null())
    }

    /// The member with this key, if it is a string.
    pub fn string(self, key: &str) -> Option<Self> {
        self.get(key)
            .filter(|member| member.kind() == JsonKind::String)
    }

    /// The text of the member with this key, if it is a string.
    pub fn text(self, key: &str) -> Option<Cow<'d, str>> {
        self.get(key)?.as_str()
    }

    /// The value of the member with this key, if it is a non-negative integer that fits.
    pub fn number(self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    /// Whether the member with this key is `true`.
    pub fn flag(self, key: &str) -> bool {
        self.get(key).and_then(Self::as_bool).unwrap_or_default()
    }

    /// The items of the member with this key; nothing if it is no array.
    pub fn list(self, key: &str) -> impl Iterator<Item = Self> + Clone + use<'d> {
        self.get(key).into_iter().flat_map(Self::items)
    }

    /// Its members, if it is an object; otherwise empty. Each has a [`Value::key`].
    pub fn members(self) -> impl Iterator<Item = Self> + Clone + use<'d> {
        self.children(JsonKind::Object)
    }

    /// Its items, if it is an array; otherwise empty.
    pub fn items(self) -> impl Iterator<Item = Self> + Clone + use<'d> {
        self.children(JsonKind::Array)
    }

    /// All values below it, in the order of the text.
    pub fn descendants(self) -> impl Iterator<Item = Self> + Clone + use<'d> {
        let document = self.document;
        let ids = self.id.0 + 1..self.node().next;
        ids.map(move |id| document.value(NodeId(id)))
    }

    /// Its text, if it is a string: escapes are decoded, unpaired surrogates are replaced.
    pub fn as_str(self) -> Option<Cow<'d, str>> {
        (self.kind() == JsonKind::String).then(|| text::decode(self.raw()))
    }

    /// Its value, if it is a non-negative integer that fits.
    pub fn as_u64(self) -> Option<u64> {
        (self.kind() == JsonKind::Number)
            .then(|| self.raw().parse().ok())
            .flatten()
    }

    /// Its value, if it is `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        match self.kind() {
            JsonKind::True => Some(true),
            JsonKind::False => Some(false),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// A copy of it; the order of keys and the digits of numbers are kept.
    pub fn to_json(self) -> Json {
        match self.kind() {
            JsonKind::Object => {
                let member = |it: Self| Some((it.key()?.into_owned(), it.to_json()));
                Json::Object(self.members().filter_map(member).collect())
            }
            JsonKind::Array => self.items().map(Self::to_json).collect(),
            JsonKind::String => self.as_str().into(),
            JsonKind::Number => serde_json::from_str(self.raw()).unwrap_or_default(),
            JsonKind::True | JsonKind::False => self.as_bool().into(),
            JsonKind::Null => Json::Null,
        }
    }

    fn node(self) -> &'d Node {
        self.document.node(self.id)
    }

    /// The direct children of a container of this kind.
    fn children(self, kind: JsonKind) -> impl Iterator<Item = Self> + Clone + use<'d> {
        let (node, document) = (self.node(), self.document);
        let first = NodeId(self.id.0 + 1);
        let end = if node.kind == kind { node.next } else { 0 };
        let inside = move |id: NodeId| (id.0 < end).then_some(id);
        let ids = iter::successors(inside(first), move |id| {
            inside(NodeId(document.node(*id).next))
        });
        ids.map(|id| Self { document, id })
    }
}
