//! What a `Converse` request asks for, and what its conversation says.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::Value;
use crate::model::{Conversation, Message, ModelRequest, Role, Said, ToolResult};

/// Reads a request's outermost object. Model and stream stand in the path.
pub(super) fn read(root: Value<'_>) -> ModelRequest {
    let tools = root
        .get("toolConfig")
        .and_then(|config| config.get("tools"));
    let name = |tool: Value<'_>| Some(tool.get("toolSpec")?.get("name")?.as_str()?.into_owned());
    ModelRequest {
        choices: 1,
        messages: items(root.get("messages")).count(),
        tools: items(tools).filter_map(name).collect(),
        ..ModelRequest::default()
    }
}

/// A model's id as it stands in a path, percent-decoded where that is text.
pub(super) fn decoded(id: &str) -> String {
    let bytes = id.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = id.get(at + 1..at + 3).filter(|_| byte == b'%');
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).unwrap_or_else(|_| id.to_owned())
}

/// Reads the messages of a request's outermost object.
pub(super) fn conversation<'d>(root: Value<'d>) -> Conversation<'d> {
    let mut conversation = Conversation {
        system: texts(root.get("system")),
        ..Conversation::default()
    };
    // Names of the tools that were called, by the calls' ids.
    let mut called: HashMap<Cow<'d, str>, Cow<'d, str>> = HashMap::new();
    for (index, message) in items(root.get("messages")).enumerate() {
        let content = message.get("content");
        for block in items(content) {
            if let Some(call) = block.get("toolUse") {
                let member = |key| call.get(key).and_then(Value::as_str);
                if let (Some(id), Some(name)) = (member("toolUseId"), member("name")) {
                    called.insert(id, name);
                }
            }
            let result = block.get("toolResult").and_then(|result| {
                let content = result.get("content")?;
                Some((
                    result,
                    result.get("toolUseId").and_then(Value::as_str),
                    content,
                ))
            });
            if let Some((result, call, content)) = result {
                conversation.tool_results.push(ToolResult {
                    tool: call.as_ref().and_then(|call| called.get(call).cloned()),
                    call,
                    message: index,
                    place: result.id(),
                    content: content.id(),
                    texts: texts(Some(content)),
                    values: items(Some(content))
                        .filter_map(|block| block.get("json"))
                        .map(Value::id)
                        .collect(),
                });
            }
        }
        let role = match message.get("role").and_then(Value::as_str).as_deref() {
            Some("assistant") => Role::Assistant,
            // Nova takes system prompts among the messages, too.
            Some("system") => Role::System,
            _ => Role::User,
        };
        conversation.messages.push(Message {
            role,
            place: message.id(),
            texts: texts(content),
        });
    }
    conversation
}

/// The texts among blocks.
fn texts(blocks: Option<Value<'_>>) -> Vec<Said<'_>> {
    let texts = items(blocks).filter_map(|block| block.get("text"));
    texts.filter_map(Said::of).collect()
}

fn items(list: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    list.into_iter().flat_map(Value::items)
}
