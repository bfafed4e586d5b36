//! Parses a Messages request and its conversation.

use std::borrow::Cow;

use crate::json::Value;
use crate::model::{
    Conversation, Message, ModelRequest, PlacedText, Role, ToolResult, ToolsByCall, note_tool,
};

/// Reads a request's outermost object.
pub(super) fn read(root: Value<'_>) -> ModelRequest {
    let tools = root.list("tools").filter_map(|tool| tool.text("name"));
    ModelRequest {
        model: root.text("model").map(Cow::into_owned),
        stream: root.flag("stream"),
        previous_response: None,
        choices: 1,
        tools: tools.map(Cow::into_owned).collect(),
    }
}

/// Reads the system prompt and the messages of a request's outermost object.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let mut conversation = Conversation {
        system: PlacedText::all(root.get("system")),
        ..Conversation::default()
    };
    let mut tools = ToolsByCall::new();
    for message in root.list("messages") {
        let texts = PlacedText::all(message.get("content"));
        let index = conversation.messages.len();
        let mut brings_results = false;
        for block in message.list("content") {
            match block.text("type").as_deref() {
                Some("tool_use") => note_tool(&mut tools, block.text("id"), block.text("name")),
                Some("tool_result") => {
                    let (call, content) = (block.text("tool_use_id"), block.get("content"));
                    let result = ToolResult::new(call, &tools, index, block, content);
                    conversation.tool_results.push(result);
                    brings_results = true;
                }
                _ => {}
            }
        }
        let role = match message.text("role").as_deref() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            // Tool results have the user's role. A message with only results counts as a tool's.
            _ if brings_results && texts.is_empty() => Role::Tool,
            _ => Role::User,
        };
        conversation.messages.push(Message {
            role,
            place: message.id(),
            texts,
        });
    }
    conversation
}
