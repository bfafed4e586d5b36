//! Parses a chat completion request and its conversation.

use std::borrow::Cow;

use crate::json::Value;
use crate::model::{
    Conversation, Message, ModelRequest, PlacedText, Role, ToolResult, ToolsByCall, note_tool,
};

/// Reads a request's outermost object.
pub(super) fn read(root: Value<'_>) -> ModelRequest {
    // `functions` is the older form of `tools`, without the wrapper.
    let tools = root.list("tools").filter_map(called);
    let tools = tools.chain(root.list("functions").filter_map(|it| it.text("name")));
    ModelRequest {
        model: root.text("model").map(Cow::into_owned),
        stream: root.flag("stream"),
        previous_response: None,
        choices: root.number("n").unwrap_or(1).max(1),
        tools: tools.map(Cow::into_owned).collect(),
    }
}

/// The tool named by `{"type": "function", "function": {"name": …}}`, or the same with `custom`.
fn called(tool: Value<'_>) -> Option<Cow<'_, str>> {
    tool.get("function")
        .or_else(|| tool.get("custom"))?
        .text("name")
}

/// Reads the messages of a request's outermost object.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let mut conversation = Conversation::default();
    let mut tools = ToolsByCall::new();
    for message in root.list("messages") {
        for call in message.list("tool_calls") {
            note_tool(&mut tools, call.text("id"), called(call));
        }
        let role = role(message);
        let content = message.get("content");
        let is_result = role == Role::Tool && content.is_some();
        if is_result {
            let call = message.text("tool_call_id");
            let index = conversation.messages.len();
            let mut result = ToolResult::new(call, &tools, index, message, content);
            // In the older form, the message names the function instead.
            result.tool = result.tool.or_else(|| message.text("name"));
            conversation.tool_results.push(result);
        }
        conversation.messages.push(Message {
            role,
            place: message.id(),
            texts: PlacedText::all(content.filter(|_| !is_result)),
        });
    }
    conversation
}

fn role(message: Value<'_>) -> Role {
    match message.text("role").as_deref() {
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => Role::User,
    }
}
