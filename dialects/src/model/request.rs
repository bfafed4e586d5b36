//! The neutral view of a request: its options and its conversation.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::{NodeId, Value};

/// The content of a request to a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRequest {
    /// The requested model.
    pub model: Option<String>,
    /// Whether a stream is requested.
    pub stream: bool,
    /// The response of the same conversation that the provider continues.
    pub previous_response: Option<String>,
    /// Number of requested alternative answers, at least 1.
    pub choices: u64,
    /// Names of the tools that the model may call.
    pub tools: Vec<String>,
}

/// The conversation in a request, with the places of its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation<'d> {
    /// System prompts outside the list of messages.
    pub system: Vec<PlacedText<'d>>,
    /// The messages, oldest first.
    pub messages: Vec<Message<'d>>,
    /// Results of tool calls, in the order of the messages.
    pub tool_results: Vec<ToolResult<'d>>,
    /// Id of the response or conversation that it continues: the provider has what came before.
    pub continues: Option<Cow<'d, str>>,
    /// Whether the request only prepares a conversation, and the model does not answer.
    pub is_warm_up: bool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'d> {
    /// The author of the message.
    pub role: Role,
    /// Its place: an item of the list of messages.
    pub place: NodeId,
    /// Its texts, without tool results and without reasoning, which is signed.
    pub texts: Vec<PlacedText<'d>>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The developer of the agent.
    System,
    /// The user, or the agent on the user's behalf.
    User,
    /// The model.
    Assistant,
    /// A tool: the message is the result of a call.
    Tool,
}

/// The result of one tool call, as the agent reports it to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'d> {
    /// Id of the call, if the provider has ids; a change must keep it.
    pub call: Option<Cow<'d, str>>,
    /// Name of the tool, from the result or from the call with its id.
    pub tool: Option<Cow<'d, str>>,
    /// Index of the message that contains it.
    pub message: usize,
    /// Its place: the message, item, block or part for the call.
    pub place: NodeId,
    /// Place of its content: a string, a list of parts, an object or any other value. Equal to `place` if it has
    /// none.
    pub content: NodeId,
    /// The texts in the content.
    pub texts: Vec<PlacedText<'d>>,
    /// JSON output of tools inside a provider's wrapper.
    pub values: Vec<NodeId>,
}

impl<'d> ToolResult<'d> {
    /// The result at `place` of the call with this id, or of a call without an id. Without `content`, the tool
    /// returned nothing.
    pub(crate) fn new(
        call: Option<Cow<'d, str>>,
        tools: &ToolsByCall<'d>,
        message: usize,
        place: Value<'d>,
        content: Option<Value<'d>>,
    ) -> Self {
        Self {
            tool: call.as_ref().and_then(|call| tools.get(call).cloned()),
            call,
            message,
            place: place.id(),
            content: content.unwrap_or(place).id(),
            texts: PlacedText::all(content),
            values: Vec::new(),
        }
    }

    /// Whether the tool returned no content.
    pub fn says_nothing(&self) -> bool {
        self.content == self.place
    }
}

/// Names of the called tools, by call id.
pub(crate) type ToolsByCall<'d> = HashMap<Cow<'d, str>, Cow<'d, str>>;

/// Records the tool of a call id, if both are known.
pub(crate) fn note_tool<'d>(
    tools: &mut ToolsByCall<'d>,
    id: Option<Cow<'d, str>>,
    tool: Option<Cow<'d, str>>,
) {
    tools.extend(id.zip(tool));
}

/// A text and the place of its JSON string.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedText<'d> {
    /// The text, decoded.
    pub text: Cow<'d, str>,
    /// Its place.
    pub place: NodeId,
}

impl<'d> PlacedText<'d> {
    /// The text of a JSON string; `None` for other values.
    pub fn of(value: Value<'d>) -> Option<Self> {
        Some(Self {
            text: value.as_str()?,
            place: value.id(),
        })
    }

    /// The texts of a content: a string, or the `text` members of a list.
    pub(crate) fn all(content: Option<Value<'d>>) -> Vec<Self> {
        let strings = content.into_iter().chain(
            content
                .into_iter()
                .flat_map(Value::items)
                .filter_map(|part| part.get("text")),
        );
        strings.filter_map(Self::of).collect()
    }
}

/// Replacement for the output of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSaying<'a> {
    /// This output; it may be empty.
    Output(&'a str),
    /// A failure of the tool, in the provider's field for failures if there is one.
    Failure(&'a str),
}

impl<'a> ResultSaying<'a> {
    /// The text.
    pub fn text(self) -> &'a str {
        match self {
            Self::Output(text) | Self::Failure(text) => text,
        }
    }
}
