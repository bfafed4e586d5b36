//! What a request asks for, and what its conversation says.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::{Kind, Value};
use crate::model::{Conversation, Message, ModelRequest, Role, Said, ToolResult};

/// Whether a body is one of Ollama's: other APIs have a `/api/chat`, too.
pub(super) fn is_of_ollama(root: Value<'_>) -> bool {
    let model = root.get("model");
    let named = model.is_some_and(|model| model.kind() == Kind::String);
    let prompted = prompt(root).is_some();
    let chats = root.get("messages").is_some_and(|messages| {
        // Messages in parts are those of web interfaces' own back ends.
        let ours =
            |message: Value<'_>| message.get("role").is_some() && message.get("parts").is_none();
        messages.kind() == Kind::Array && messages.items().all(ours)
    });
    named && (prompted || chats)
}

/// Reads a request's outermost object.
pub(super) fn read(root: Value<'_>) -> ModelRequest {
    let messages = root.get("messages");
    ModelRequest {
        model: root.get("model").and_then(text),
        // A stream unless another answer is asked for.
        stream: root.get("stream").and_then(Value::as_bool) != Some(false),
        // Counts come with the end.
        usage_in_stream: false,
        choices: 1,
        messages: messages.map_or_else(
            || usize::from(prompt(root).is_some()),
            |messages| messages.items().count(),
        ),
        tools: items(root.get("tools"))
            .filter_map(|tool| tool.get("function")?.get("name").and_then(text))
            .collect(),
    }
}

fn prompt(root: Value<'_>) -> Option<Value<'_>> {
    root.get("prompt")
        .filter(|prompt| prompt.kind() == Kind::String)
}

fn text(value: Value<'_>) -> Option<String> {
    value.as_str().map(Cow::into_owned)
}

pub(super) fn items(list: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    list.into_iter().flat_map(Value::items)
}

/// Reads the messages of a chat, or the one prompt.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let mut conversation = Conversation::default();
    conversation
        .system
        .extend(root.get("system").and_then(Said::of));
    let Some(messages) = root.get("messages") else {
        conversation
            .messages
            .extend(prompt(root).map(|prompt| Message {
                role: Role::User,
                place: prompt.id(),
                texts: Said::of(prompt).into_iter().collect(),
            }));
        return conversation;
    };
    // Names of the tools that were called, by the calls' ids.
    let mut called: HashMap<Cow<'_, str>, Cow<'_, str>> = HashMap::new();
    // The tool of the only call in the message before.
    let mut just_called = None;
    for message in messages.items() {
        let before = just_called.take();
        for (number, call) in items(message.get("tool_calls")).enumerate() {
            let tool = call
                .get("function")
                .and_then(|tool| tool.get("name")?.as_str());
            just_called = tool.clone().filter(|_| number == 0);
            if let (Some(id), Some(tool)) = (call.get("id").and_then(Value::as_str), tool) {
                called.insert(id, tool);
            }
        }
        let role = role(message);
        let mut said = Message {
            role,
            place: message.id(),
            texts: message
                .get("content")
                .and_then(Said::of)
                .into_iter()
                .collect(),
        };
        if let (Role::Tool, Some(content)) = (role, message.get("content")) {
            let call = message.get("tool_call_id").and_then(Value::as_str);
            // Older clients say `name`, and those that say neither leave it to the order.
            let mut names = ["tool_name", "name"].into_iter();
            let tool = names.find_map(|key| message.get(key)?.as_str());
            let tool = tool.or_else(|| called.get(call.as_ref()?).cloned());
            let tool = tool.or(before.filter(|_| call.is_none()));
            conversation.tool_results.push(ToolResult {
                tool,
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
    let role = message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match role.to_lowercase().as_str() {
        "system" => Role::System,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::User,
    }
}
