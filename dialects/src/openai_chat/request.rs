//! What a chat completion request asks for, and what its conversation says.

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
            Some("stream_options") => {
                let usage = member.get("include_usage").and_then(Value::as_bool);
                request.usage_in_stream = usage.unwrap_or_default();
            }
            Some("n") => request.choices = member.as_u64().unwrap_or(1).max(1),
            Some("messages") => request.messages = member.items().count(),
            // `functions` is the older form of `tools`, without the wrapper.
            Some("tools") => request.tools.extend(member.items().filter_map(tool_name)),
            Some("functions") => request.tools.extend(member.items().filter_map(name)),
            _ => {}
        }
    }
    request
}

/// `{"type": "function", "function": {"name": …}}`, or the same with `custom`.
fn tool_name(tool: Value<'_>) -> Option<String> {
    let described = tool.get("function").or_else(|| tool.get("custom"))?;
    name(described)
}

fn name(function: Value<'_>) -> Option<String> {
    function.get("name").and_then(text)
}

fn text(value: Value<'_>) -> Option<String> {
    value.as_str().map(Cow::into_owned)
}

/// Reads the messages of a request's outermost object.
pub(super) fn conversation<'d>(root: Value<'d>) -> Conversation<'d> {
    let mut conversation = Conversation::default();
    // Names of the tools that were called, by the calls' ids.
    let mut called: HashMap<Cow<'d, str>, Cow<'d, str>> = HashMap::new();
    let messages = root.get("messages");
    for message in messages.into_iter().flat_map(Value::items) {
        let role = role(message);
        let content = message.get("content");
        let texts = content.map(texts).unwrap_or_default();
        for call in message.get("tool_calls").into_iter().flat_map(Value::items) {
            let tool = call.get("function").or_else(|| call.get("custom"));
            let tool = tool.and_then(|tool| tool.get("name")?.as_str());
            if let (Some(id), Some(tool)) = (call.get("id").and_then(Value::as_str), tool) {
                called.insert(id, tool);
            }
        }
        let mut said = Message {
            role,
            place: message.id(),
            texts,
        };
        if let (Role::Tool, Some(content)) = (role, content) {
            let call = message.get("tool_call_id").and_then(Value::as_str);
            let tool = call.as_ref().and_then(|call| called.get(call).cloned());
            conversation.tool_results.push(ToolResult {
                // The older form names the function instead.
                tool: tool.or_else(|| message.get("name")?.as_str()),
                call,
                message: conversation.messages.len(),
                place: message.id(),
                content: content.id(),
                texts: std::mem::take(&mut said.texts),
                values: Vec::new(),
            });
        }
        conversation.messages.push(said);
    }
    conversation
}

fn role(message: Value<'_>) -> Role {
    match message.get("role").and_then(Value::as_str).as_deref() {
        Some("system" | "developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => Role::User,
    }
}

/// The texts of a content: a string, or the text parts of a list.
fn texts(content: Value<'_>) -> Vec<Said<'_>> {
    if content.kind() == Kind::String {
        return Said::of(content).into_iter().collect();
    }
    let parts = content.items().filter_map(|part| part.get("text"));
    parts.filter_map(Said::of).collect()
}
