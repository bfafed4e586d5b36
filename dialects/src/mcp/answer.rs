//! What stands where in the messages of an answer.

use crate::json::{Document, Kind, NodeId, Value};

use super::request::Id;

/// One JSON-RPC message of an answer: a result, an error, or something the server says beside it.
#[derive(Debug, Clone, Copy)]
pub struct Message<'d>(Value<'d>);

/// The messages of a document: the one it is, or the items of a list.
pub fn messages<'d>(document: &'d Document<'d>) -> Vec<Message<'d>> {
    let root = document.root();
    match root.kind() {
        Kind::Array => root.items().map(Message).collect(),
        Kind::Object => vec![Message(root)],
        Kind::String | Kind::Number | Kind::True | Kind::False | Kind::Null => Vec::new(),
    }
}

/// The texts that the results of tool calls in a document hold: of a whole JSON answer (a message or
/// a list of them), or of one event's data. Nothing of what is no result.
pub fn texts<'d>(document: &'d Document<'d>) -> Vec<Text> {
    let messages = messages(document).into_iter();
    messages.flat_map(Message::texts).collect()
}

/// A text in the result of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// The string.
    pub place: NodeId,
    /// Where in the result it stands.
    pub part: TextPart,
}

/// Where in a tool's result a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPart {
    /// `content[].text`: what models read.
    Content,
    /// `content[].resource.text`: a document that comes with it.
    Resource,
    /// Any string in `structuredContent`: what programs read.
    Structured,
}

/// A tool in an answer to `tools/list`.
#[derive(Debug, Clone)]
pub struct Item<'d> {
    /// Its name.
    pub name: String,
    /// The tool.
    pub tool: Value<'d>,
}

impl<'d> Message<'d> {
    /// The id of the request that it answers; `None`: it answers none.
    pub fn answers(self) -> Option<Id> {
        if self.result().is_none() && self.error().is_none() {
            return None;
        }
        self.0.get("id").and_then(Id::of)
    }

    /// The message.
    pub fn value(self) -> Value<'d> {
        self.0
    }

    /// Where its id stands.
    pub fn id_place(self) -> Option<NodeId> {
        self.0.get("id").map(Value::id)
    }

    /// The result, if it holds one.
    pub fn result(self) -> Option<Value<'d>> {
        self.0.get("result")
    }

    /// The error, if it holds one.
    pub fn error(self) -> Option<Value<'d>> {
        self.0.get("error")
    }

    /// The texts of a tool's result, in the order of the text.
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
        found.sort_by_key(|text| text.place);
        found
    }

    /// The tools of a list of tools; `None`: it is none.
    pub fn tools(self) -> Option<(Value<'d>, Vec<Item<'d>>)> {
        let list = self.result()?.get("tools")?;
        if list.kind() != Kind::Array {
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
    (value.kind() == Kind::String).then(|| Text {
        place: value.id(),
        part,
    })
}
