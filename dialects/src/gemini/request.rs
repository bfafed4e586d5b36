//! Parses a request for content and its conversation.

use std::borrow::Cow;

use serde_json::json;

use crate::json::{Edits, JsonKind, Value};
use crate::model::{
    Conversation, Message, ModelRequest, PlacedText, ResultSaying, Role, ToolResult, ToolsByCall,
};
use crate::target::Target;

/// Model and method in a path: `…/models/MODEL:METHOD`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) model: &'a str,
    pub(super) method: &'a str,
}

impl<'a> Call<'a> {
    /// `None`: the path has another form.
    pub(super) fn of(target: Target<'a>) -> Option<Self> {
        let (before, last) = target.path().rsplit_once('/')?;
        let (_, collection) = before.rsplit_once('/')?;
        let (model, method) = last.split_once(':')?;
        let known = matches!(collection, "models" | "tunedModels" | "endpoints")
            && matches!(method, "generateContent" | "streamGenerateContent")
            && !model.is_empty();
        known.then_some(Self { model, method })
    }

    pub(super) fn streams(self) -> bool {
        self.method == "streamGenerateContent"
    }
}

/// A member under its JSON name, or under its protocol buffers name, which the API accepts too.
pub(crate) fn either<'d>(object: Value<'d>, camel: &str, snake: &str) -> Option<Value<'d>> {
    object.get(camel).or_else(|| object.get(snake))
}

/// The items of a request's list. Google's APIs also accept a single item without the list.
pub(crate) fn each(list: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    let alone = list.filter(|list| list.kind() == JsonKind::Object);
    alone
        .into_iter()
        .chain(list.into_iter().flat_map(Value::items))
}

/// Reads a request's outermost object; model and streaming are in its path.
pub(super) fn read(call: Option<Call<'_>>, root: Value<'_>) -> ModelRequest {
    let config = either(root, "generationConfig", "generation_config");
    let choices = config.and_then(|config| either(config, "candidateCount", "candidate_count"));
    let tools = each(root.get("tools")).flat_map(|tool| {
        each(either(
            tool,
            "functionDeclarations",
            "function_declarations",
        ))
    });
    ModelRequest {
        model: call.map(|call| call.model.to_owned()),
        stream: call.is_some_and(Call::streams),
        // All events contain counts; there is no extra event for them.
        previous_response: None,
        choices: choices.and_then(Value::as_u64).unwrap_or(1).max(1),
        tools: tools
            .filter_map(|function| function.text("name").map(Cow::into_owned))
            .collect(),
    }
}

/// Reads the contents of a request's outermost object.
pub(super) fn conversation(root: Value<'_>) -> Conversation<'_> {
    let system = either(root, "systemInstruction", "system_instruction");
    Conversation {
        system: system.map(texts).unwrap_or_default(),
        ..contents(root.get("contents"))
    }
}

/// Reads a list of contents.
pub(crate) fn contents(list: Option<Value<'_>>) -> Conversation<'_> {
    let mut conversation = Conversation::default();
    for (index, content) in each(list).enumerate() {
        let mut brings_results = false;
        for part in each(content.get("parts")) {
            let response = either(part, "functionResponse", "function_response");
            let result = response.and_then(|response| tool_result(response, index));
            brings_results |= result.is_some();
            conversation.tool_results.extend(result);
        }
        let role = match content.text("role").as_deref() {
            _ if brings_results => Role::Tool,
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

/// Reads `{"id": …, "name": …, "response": {…}}`. Calls and results match by name, and by id if there is one.
pub(crate) fn tool_result(response: Value<'_>, message: usize) -> Option<ToolResult<'_>> {
    let content = response.get("response")?;
    let call = response.text("id");
    Some(ToolResult {
        tool: response.text("name"),
        texts: strings(content),
        ..ToolResult::new(call, &ToolsByCall::new(), message, response, Some(content))
    })
}

/// Replaces the content of a result. A function's response is an object; these are the documented keys.
pub(crate) fn say_result(edits: &mut Edits<'_>, result: &ToolResult<'_>, saying: ResultSaying<'_>) {
    let key = match saying {
        ResultSaying::Output(_) => "output",
        ResultSaying::Failure(_) => "error",
    };
    edits.replace(result.content, json!({ key: saying.text() }));
}

/// All strings in a value, in order.
fn strings(value: Value<'_>) -> Vec<PlacedText<'_>> {
    let children = value.members().chain(value.items());
    let inner = children.flat_map(strings);
    PlacedText::of(value).into_iter().chain(inner).collect()
}

/// The texts of a content's parts, without reasoning.
fn texts(content: Value<'_>) -> Vec<PlacedText<'_>> {
    let parts = each(content.get("parts"));
    let spoken = parts.filter(|part| !part.flag("thought"));
    spoken
        .filter_map(|part| PlacedText::of(part.get("text")?))
        .collect()
}
