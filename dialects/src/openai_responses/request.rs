//! What a Responses request asks for, and what its conversation says.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::{Kind, Value};
use crate::model::{Conversation, Message, ModelRequest, Role, Said, ToolResult};

/// Reads a request's outermost object.
pub(super) fn read(root: Value<'_>) -> ModelRequest {
    let mut request = ModelRequest {
        choices: 1,
        ..ModelRequest::default()
    };
    for member in root.members() {
        match member.key().as_deref() {
            Some("model") => request.model = text(member),
            Some("stream") => request.stream = member.as_bool().unwrap_or_default(),
            Some("input") if member.kind() == Kind::String => request.messages = 1,
            Some("input") => request.messages = member.items().count(),
            Some("tools") => {
                let names = member.items().filter_map(|tool| text(tool.get("name")?));
                request.tools.extend(names);
            }
            _ => {}
        }
    }
    request
}

fn text(value: Value<'_>) -> Option<String> {
    value.as_str().map(Cow::into_owned)
}

/// Reads the instructions and the input of a request's outermost object. An input that is a string
/// is one message of the user's.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let mut conversation = Conversation {
        system: root.get("instructions").map(texts).unwrap_or_default(),
        ..Conversation::default()
    };
    let Some(input) = root.get("input") else {
        return conversation;
    };
    if let Some(said) = Said::of(input) {
        conversation.messages.push(Message {
            role: Role::User,
            place: input.id(),
            texts: vec![said],
        });
        return conversation;
    }
    // Names of the tools that were called, by the calls' ids.
    let mut called: HashMap<Cow<'_, str>, Cow<'_, str>> = HashMap::new();
    for item in input.items() {
        let member = |key| item.get(key).and_then(Value::as_str);
        let (mut role, mut said) = (role(member("role").as_deref()), Vec::new());
        match kind(item).as_deref() {
            None | Some("message") => said = item.get("content").map(texts).unwrap_or_default(),
            Some("function_call" | "custom_tool_call") => {
                role = Role::Assistant;
                if let (Some(id), Some(name)) = (member("call_id"), member("name")) {
                    called.insert(id, name);
                }
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                role = Role::Tool;
                if let Some(output) = item.get("output") {
                    let call = member("call_id");
                    conversation.tool_results.push(ToolResult {
                        tool: call.as_ref().and_then(|call| called.get(call).cloned()),
                        call,
                        message: conversation.messages.len(),
                        place: item.id(),
                        content: output.id(),
                        texts: texts(output),
                        values: Vec::new(),
                    });
                }
            }
            // Reasoning that is given back, calls of tools that the provider runs.
            Some(_) => role = Role::Assistant,
        }
        conversation.messages.push(Message {
            role,
            place: item.id(),
            texts: said,
        });
    }
    conversation
}

fn role(written: Option<&str>) -> Role {
    match written {
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        _ => Role::User,
    }
}

/// What sort of item, part or event it is.
pub(super) fn kind(item: Value<'_>) -> Option<Cow<'_, str>> {
    item.get("type").and_then(Value::as_str)
}

/// The texts of a content: a string, or the text parts of a list.
fn texts(content: Value<'_>) -> Vec<Said<'_>> {
    if content.kind() == Kind::String {
        return Said::of(content).into_iter().collect();
    }
    let parts = content.items().filter_map(|part| part.get("text"));
    parts.filter_map(Said::of).collect()
}
