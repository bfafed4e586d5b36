//! Parses a Responses request and its conversation.

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
        previous_response: root.text("previous_response_id").map(Cow::into_owned),
        choices: 1,
        tools: tools.map(Cow::into_owned).collect(),
    }
}

/// Reads the instructions and the input of a request's outermost object. An input that is a string is one message
/// of the user.
pub(crate) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let stored = root.get("conversation");
    let stored = stored.and_then(|stored| stored.as_str().or_else(|| stored.text("id")));
    let mut conversation = Conversation {
        system: PlacedText::all(root.get("instructions")),
        continues: root.text("previous_response_id").or(stored),
        is_warm_up: root.get("generate").and_then(Value::as_bool) == Some(false),
        ..Conversation::default()
    };
    let prompt = root.string("input");
    conversation.messages.extend(prompt.map(|prompt| Message {
        role: Role::User,
        place: prompt.id(),
        texts: PlacedText::all(Some(prompt)),
    }));
    let mut tools = ToolsByCall::new();
    for item in root.list("input") {
        let call = item.text("call_id");
        let (mut role, mut texts) = (role(item), Vec::new());
        match item.text("type").as_deref() {
            None | Some("message") => texts = PlacedText::all(item.get("content")),
            Some("function_call" | "custom_tool_call") => {
                role = Role::Assistant;
                note_tool(&mut tools, call, item.text("name"));
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                role = Role::Tool;
                if let Some(output) = item.get("output") {
                    let index = conversation.messages.len();
                    let result = ToolResult::new(call, &tools, index, item, Some(output));
                    conversation.tool_results.push(result);
                }
            }
            // Repeated reasoning, and calls of tools that the provider runs.
            Some(_) => role = Role::Assistant,
        }
        conversation.messages.push(Message {
            role,
            place: item.id(),
            texts,
        });
    }
    conversation
}

fn role(item: Value<'_>) -> Role {
    match item.text("role").as_deref() {
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        _ => Role::User,
    }
}
