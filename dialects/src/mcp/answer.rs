//! Locates the parts of response messages.

use crate::json::{Document, JsonKind, NodeId, Value};

use super::request::Id;
use crate::a2a;

/// One JSON-RPC message of a response: a result, an error, or another server message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'d>(Value<'d>);

/// The messages of a document: the document itself, or the items of a list.
pub fn messages<'d>(document: &'d Document<'d>) -> Vec<Message<'d>> {
    let root = document.root();
    match root.kind() {
        JsonKind::Array => root.items().map(Message).collect(),
        JsonKind::Object => vec![Message(root)],
        JsonKind::String | JsonKind::Number | JsonKind::True | JsonKind::False | JsonKind::Null => {
            Vec::new()
        }
    }
}

/// The texts in the results of tool calls in a document. The document is a whole JSON response (a message or a
/// list), or one event's data. Messages that are not results have none.
pub fn texts<'d>(document: &'d Document<'d>) -> Vec<Text> {
    let messages = messages(document).into_iter();
    messages.flat_map(Message::texts).collect()
}

/// A text in the result of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// The string.
    pub place: NodeId,
    /// The part of the result that contains it.
    pub part: TextPart,
}

/// The part of a tool's result that contains a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPart {
    /// `content[].text`, which models read; in A2A the text of a part.
    Content,
    /// `content[].resource.text`, an attached document.
    Resource,
    /// Any string in `structuredContent`, which programs read; in A2A any in the `data` of a part.
    Structured,
}

/// A tool in a response to `tools/list`.
#[derive(Debug, Clone)]
pub struct Item<'d> {
    /// Its name.
    pub name: String,
    /// The tool.
    pub tool: Value<'d>,
}

impl<'d> Message<'d> {
    /// The id of the request that it responds to; `None`: it is not a response.
    pub fn answers(self) -> Option<Id> {
        if self.result().is_none() && self.error().is_none() {
            return None;
        }
        self.0.get("id").and_then(Id::of)
    }

    /// Whether other responses to its call follow it: it is an update of an agent's task.
    pub fn is_update(self) -> bool {
        self.result().is_some_and(a2a::is_update)
    }

    /// The message.
    pub fn value(self) -> Value<'d> {
        self.0
    }

    /// The place of its id.
    pub fn id_place(self) -> Option<NodeId> {
        self.0.get("id").map(Value::id)
    }

    /// The result, if it has one.
    pub fn result(self) -> Option<Value<'d>> {
        self.0.get("result")
    }

    /// The error, if it has one.
    pub fn error(self) -> Option<Value<'d>> {
        self.0.get("error")
    }

    /// The texts of a tool's result, in order.
    pub fn texts(self) -> Vec<Text> {
        let Some(result) = self.result() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for block in result.list("content") {
            let resource = block.path(&["resource", "text"]);
            for (value, part) in [
                (block.get("text"), TextPart::Content),
                (resource, TextPart::Resource),
            ] {
                found.extend(value.and_then(|value| text_at(value, part)));
            }
        }
        if let Some(structured) = result.get("structuredContent") {
            let mut open = vec![structured];
            while let Some(value) = open.pop() {
                found.extend(text_at(value, TextPart::Structured));
                open.extend(value.members().chain(value.items()));
            }
        }
        found.extend(a2a::texts(result).into_iter().map(|(place, is_data)| Text {
            place,
            part: if is_data {
                TextPart::Structured
            } else {
                TextPart::Content
            },
        }));
        found.sort_by_key(|text| text.place);
        found
    }

    /// The tools of a tool list; `None`: it is not one.
    pub fn tools(self) -> Option<(Value<'d>, Vec<Item<'d>>)> {
        let list = self.result()?.get("tools")?;
        if list.kind() != JsonKind::Array {
            return None;
        }
        let item = |tool: Value<'d>| {
            let name = tool.text("name")?.into_owned();
            Some(Item { name, tool })
        };
        Some((list, list.items().filter_map(item).collect()))
    }
}

fn text_at(value: Value<'_>, part: TextPart) -> Option<Text> {
    (value.kind() == JsonKind::String).then(|| Text {
        place: value.id(),
        part,
    })
}
