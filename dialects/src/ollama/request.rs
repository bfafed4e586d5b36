//! Parses a request and its conversation.

use std::borrow::Cow;

use crate::json::{JsonKind, Value};
use crate::model::{
    Conversation, Message, ModelRequest, PlacedText, Role, ToolResult, ToolsByCall, note_tool,
};

/// Whether a body is Ollama's, because other APIs also have a path `/api/chat`.
pub(super) fn is_of_ollama(root: Value<'_>) -> bool {
    let chats = root.get("messages").is_some_and(|messages| {
        // Messages with parts belong to back ends of web interfaces.
        let is_ours = |it: Value<'_>| it.get("role").is_some() && it.get("parts").is_none();
        messages.kind() == JsonKind::Array && messages.items().all(is_ours)
    });
    root.string("model").is_some() && (root.string("prompt").is_some() || chats)
}

/// Reads a request's outermost object.
pub(super) fn read(root: Value<'_>) -> ModelRequest {
    let tools = root.list("tools");
    let tools = tools.filter_map(|tool| tool.get("function")?.text("name"));
    ModelRequest {
        model: root.text("model").map(Cow::into_owned),
        // Streaming is the default.
        stream: root.get("stream").and_then(Value::as_bool) != Some(false),
        // The counts are in the last line.
        previous_response: None,
        choices: 1,
        tools: tools.map(Cow::into_owned).collect(),
    }
}

/// Reads the messages of a chat, or the one prompt.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let mut conversation = Conversation {
        system: root
            .get("system")
            .and_then(PlacedText::of)
            .into_iter()
            .collect(),
        ..Conversation::default()
    };
    let Some(messages) = root.get("messages") else {
        let prompt = root.string("prompt");
        conversation.messages.extend(prompt.map(|prompt| Message {
            role: Role::User,
            place: prompt.id(),
            texts: PlacedText::of(prompt).into_iter().collect(),
        }));
        return conversation;
    };
    let mut tools = ToolsByCall::new();
    // The tool of the previous message's call, if there was exactly one.
    let mut just_called = None;
    for message in messages.items() {
        let before = just_called.take();
        for (number, call) in message.list("tool_calls").enumerate() {
            let tool = call.get("function").and_then(|it| it.text("name"));
            just_called = tool.clone().filter(|_| number == 0);
            note_tool(&mut tools, call.text("id"), tool);
        }
        let role = role(message);
        let content = message.get("content");
        let is_result = role == Role::Tool && content.is_some();
        if is_result {
            let call = message.text("tool_call_id");
            let index = conversation.messages.len();
            let unnumbered = call.is_none();
            let mut result = ToolResult::new(call, &tools, index, message, content);
            // Older clients send `name`; those that send neither rely on the order.
            let named = message.text("tool_name").or_else(|| message.text("name"));
            let by_order = before.filter(|_| unnumbered);
            result.tool = named.or(result.tool).or(by_order);
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
    let role = message.text("role").unwrap_or_default();
    match role.to_lowercase().as_str() {
        "system" => Role::System,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::User,
    }
}
