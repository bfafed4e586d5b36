//! What a Messages request asks for, and what its conversation says.

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
            Some("messages") => request.messages = member.items().count(),
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

/// Reads the system prompt and the messages of a request's outermost object.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let mut conversation = Conversation {
        system: root.get("system").map(texts).unwrap_or_default(),
        ..Conversation::default()
    };
    // Names of the tools that were called, by the calls' ids.
    let mut called: HashMap<Cow<'_, str>, Cow<'_, str>> = HashMap::new();
    let messages = root.get("messages");
    for message in messages.into_iter().flat_map(Value::items) {
        let content = message.get("content");
        let said = content.map(texts).unwrap_or_default();
        let before = conversation.tool_results.len();
        for block in content.into_iter().flat_map(Value::items) {
            match kind(block).as_deref() {
                Some("tool_use") => {
                    let member = |key| block.get(key).and_then(Value::as_str);
                    if let (Some(id), Some(name)) = (member("id"), member("name")) {
                        called.insert(id, name);
                    }
                }
                Some("tool_result") => {
                    // A tool may have nothing to say: then there is no content.
                    let content = block.get("content");
                    let call = block.get("tool_use_id").and_then(Value::as_str);
                    conversation.tool_results.push(ToolResult {
                        tool: call.as_ref().and_then(|call| called.get(call).cloned()),
                        call,
                        message: conversation.messages.len(),
                        place: block.id(),
                        content: content.unwrap_or(block).id(),
                        texts: content.map(texts).unwrap_or_default(),
                        values: Vec::new(),
                    });
                }
                _ => {}
            }
        }
        let brings_results = conversation.tool_results.len() > before;
        let role = match message.get("role").and_then(Value::as_str).as_deref() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            // Results are the user's to give; nothing else is said in such a message.
            _ if brings_results && said.is_empty() => Role::Tool,
            _ => Role::User,
        };
        conversation.messages.push(Message {
            role,
            place: message.id(),
            texts: said,
        });
    }
    conversation
}

/// What sort of block it is.
pub(super) fn kind(block: Value<'_>) -> Option<Cow<'_, str>> {
    block.get("type").and_then(Value::as_str)
}

/// The texts of a content: a string, or the text blocks of a list.
fn texts(content: Value<'_>) -> Vec<Said<'_>> {
    if content.kind() == Kind::String {
        return Said::of(content).into_iter().collect();
    }
    let blocks = content
        .items()
        .filter(|block| kind(*block).as_deref() == Some("text"));
    let said = blocks.filter_map(|block| Said::of(block.get("text")?));
    said.collect()
}
