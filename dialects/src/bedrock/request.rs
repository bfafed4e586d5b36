//! Parses a `Converse` request and its conversation.

use std::borrow::Cow;

use crate::json::Value;
use crate::model::{
    Conversation, Message, ModelRequest, PlacedText, Role, ToolResult, ToolsByCall, note_tool,
};

/// Reads a request's outermost object. Model and stream are in the path.
pub(super) fn read(root: Value<'_>) -> ModelRequest {
    let tools = root.get("toolConfig").into_iter();
    let tools = tools.flat_map(|config| config.list("tools"));
    let names = tools.filter_map(|tool| tool.get("toolSpec")?.text("name"));
    ModelRequest {
        previous_response: None,
        choices: 1,
        tools: names.map(Cow::into_owned).collect(),
        ..ModelRequest::default()
    }
}

/// Reads the messages of a request's outermost object.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let mut conversation = Conversation {
        system: PlacedText::all(root.get("system")),
        ..Conversation::default()
    };
    let mut tools = ToolsByCall::new();
    for (index, message) in root.list("messages").enumerate() {
        for block in message.list("content") {
            if let Some(call) = block.get("toolUse") {
                note_tool(&mut tools, call.text("toolUseId"), call.text("name"));
            }
            if let Some(result) = block.get("toolResult")
                && let Some(content) = result.get("content")
            {
                let call = result.text("toolUseId");
                let values = content.items().filter_map(|block| block.get("json"));
                conversation.tool_results.push(ToolResult {
                    values: values.map(Value::id).collect(),
                    ..ToolResult::new(call, &tools, index, result, Some(content))
                });
            }
        }
        let role = match message.text("role").as_deref() {
            Some("assistant") => Role::Assistant,
            // Nova also accepts system prompts as messages.
            Some("system") => Role::System,
            _ => Role::User,
        };
        conversation.messages.push(Message {
            role,
            place: message.id(),
            texts: PlacedText::all(message.get("content")),
        });
    }
    conversation
}
