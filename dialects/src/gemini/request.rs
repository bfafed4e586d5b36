//! What a request for content asks for, and what its conversation says.

use std::borrow::Cow;

use super::{Call, either};
use crate::json::{Kind, Value};
use crate::model::{Conversation, Message, ModelRequest, Role, Said, ToolResult};

/// Reads a request's outermost object; model and streaming stand in its path.
pub(super) fn read(call: Option<Call<'_>>, root: Value<'_>) -> ModelRequest {
    let config = either(root, "generationConfig", "generation_config");
    let choices = config
        .and_then(|config| either(config, "candidateCount", "candidate_count"))
        .and_then(Value::as_u64);
    ModelRequest {
        model: call.map(|call| call.model.to_owned()),
        stream: call.is_some_and(Call::streams),
        // Every event counts, none of its own.
        usage_in_stream: false,
        choices: choices.unwrap_or(1).max(1),
        messages: each(root.get("contents")).count(),
        tools: each(root.get("tools")).flat_map(tool_names).collect(),
    }
}

/// `{"functionDeclarations": [{"name": …}, …]}`
fn tool_names(tool: Value<'_>) -> impl Iterator<Item = String> {
    let declared = each(either(
        tool,
        "functionDeclarations",
        "function_declarations",
    ));
    declared.filter_map(|function| function.get("name")?.as_str().map(Cow::into_owned))
}

/// Reads the contents of a request's outermost object.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let system = either(root, "systemInstruction", "system_instruction");
    let mut conversation = Conversation {
        system: system.map(texts).unwrap_or_default(),
        ..Conversation::default()
    };
    for content in each(root.get("contents")) {
        let results = conversation.tool_results.len();
        let message = conversation.messages.len();
        for part in each(content.get("parts")) {
            let response = either(part, "functionResponse", "function_response");
            let result = response.and_then(|response| tool_result(response, message));
            conversation.tool_results.extend(result);
        }
        let role = content.get("role").and_then(Value::as_str);
        let role = match role.as_deref() {
            _ if conversation.tool_results.len() > results => Role::Tool,
            Some("model") => Role::Assistant,
            Some("function") => Role::Tool,
            _ => Role::User,
        };
        conversation.messages.push(Message {
            role,
            place: content.id(),
            texts: texts(content),
        });
    }
    conversation
}

/// `{"id": …, "name": …, "response": {…}}`. Calls and results belong together by name, and by id
/// where there is one.
fn tool_result(response: Value<'_>, message: usize) -> Option<ToolResult<'_>> {
    let content = response.get("response")?;
    let mut said = Vec::new();
    strings(content, &mut said);
    Some(ToolResult {
        call: response.get("id").and_then(Value::as_str),
        tool: response.get("name").and_then(Value::as_str),
        message,
        place: response.id(),
        content: content.id(),
        texts: said,
        values: Vec::new(),
    })
}

/// Every text in a value, in order.
fn strings<'d>(value: Value<'d>, found: &mut Vec<Said<'d>>) {
    match value.kind() {
        Kind::String => found.extend(Said::of(value)),
        Kind::Object => value.members().for_each(|member| strings(member, found)),
        Kind::Array => value.items().for_each(|item| strings(item, found)),
        Kind::Number | Kind::True | Kind::False | Kind::Null => {}
    }
}

/// The texts of a content's parts, but for thoughts.
fn texts(content: Value<'_>) -> Vec<Said<'_>> {
    let parts = each(content.get("parts"));
    let spoken = parts.filter(|part| !is_thought(*part));
    spoken
        .filter_map(|part| Said::of(part.get("text")?))
        .collect()
}

/// Whether a part is thinking that the model shows.
pub(super) fn is_thought(part: Value<'_>) -> bool {
    let thought = part.get("thought").and_then(Value::as_bool);
    thought.unwrap_or_default()
}

/// The items of a request's list; Google's APIs take a single one without its list, too.
fn each(list: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    let alone = list.filter(|list| list.kind() == Kind::Object);
    alone.into_iter().chain(items(list))
}

pub(super) fn items(list: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    list.into_iter().flat_map(Value::items)
}
