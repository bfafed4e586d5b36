//! Messages of models in traces, in the forms of OpenAI, LangChain, OpenTelemetry and OpenInference, and the response
//! that is written from them in a provider's format.

use serde_json::{Value, json};
use squall_dialects::json::Document;
use squall_dialects::model::{DeltaKind, Finish};
use squall_dialects::{Event, Part, Transcript};
use squall_journal::tape::{Answer, Content, Data, RecordedExchange};

use super::words;

/// A call of a tool or of a model.
#[derive(Debug, Default)]
pub(super) struct TracedCall {
    pub(super) name: String,
    /// Its result, or its response in the provider's format or as messages.
    pub(super) output: Option<Value>,
    pub(super) error: Option<String>,
    pub(super) latency_ms: u64,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
}

/// Providers in traces, and their dialects.
#[rustfmt::skip]
const DIALECTS: [(&str, &[&str]); 4] = [
    ("openai-chat", &["openai", "azure", "azure_openai", "azure.ai.openai", "az.ai.openai", "azure.ai.inference",
        "az.ai.inference", "mistral_ai", "mistralai", "groq", "deepseek", "perplexity", "x_ai", "xai", "together",
        "fireworks", "openrouter"]),
    ("anthropic", &["anthropic"]),
    ("gemini", &["gcp.gemini", "gcp.vertex_ai", "gcp.gen_ai", "google", "google_genai", "google_vertexai", "vertexai",
        "vertex_ai", "gemini"]),
    ("ollama", &["ollama"]),
];

/// The names under which applications keep what the user said.
#[rustfmt::skip]
const INPUTS: [&str; 11] = [
    "input", "question", "query", "prompt", "user_input", "message", "text", "messages", "inputs", "content", "value",
];

/// Deepest nesting in which an input is searched.
const DEEPEST: usize = 8;

/// The last text of the user in an input: a text, messages, or a map with one of them.
pub(super) fn user_text(input: &Value) -> Option<String> {
    user_text_in(input, DEEPEST)
}

fn user_text_in(input: &Value, deep: usize) -> Option<String> {
    let deep = deep.checked_sub(1)?;
    match input {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => user_text_in(&inner, deep),
            _ => (!text.trim().is_empty()).then(|| text.trim().to_owned()),
        },
        Value::Array(items) => {
            let is_user = |it: &&Value| role(it).is_none_or(|role| role == "user");
            let of_user = items.iter().rev().filter(is_user);
            of_user
                .filter(|it| !it.is_string())
                .find_map(|it| user_text_in(it, deep))
                .or_else(|| {
                    items
                        .last()
                        .filter(|it| it.is_string())
                        .and_then(|it| user_text_in(it, deep))
                })
        }
        Value::Object(members) => {
            if role(input) == Some("user") {
                return text(input);
            }
            let named = INPUTS.iter().filter_map(|name| members.get(*name));
            let only = members.values().filter(|_| members.len() == 1);
            named.chain(only).find_map(|it| user_text_in(it, deep))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The author of a message, as `user`, `assistant`, `system` or `tool`.
fn role(message: &Value) -> Option<&str> {
    let class = message["id"].as_array().and_then(|id| id.last()?.as_str());
    let names = [words(message, "role"), class, words(message, "type")];
    names.into_iter().flatten().find_map(|name| match name {
        "user" | "human" | "HumanMessage" | "HumanMessageChunk" => Some("user"),
        "assistant" | "ai" | "model" | "AIMessage" | "AIMessageChunk" => Some("assistant"),
        "system" | "developer" | "SystemMessage" => Some("system"),
        "tool" | "function" | "ToolMessage" => Some("tool"),
        _ => None,
    })
}

/// The message inside its wrappers.
fn inner(message: &Value) -> &Value {
    let wrappers = ["kwargs", "message", "data"];
    let found = wrappers.iter().map(|name| &message[*name]);
    found
        .into_iter()
        .find(|it| it.is_object())
        .map_or(message, inner)
}

/// The texts of a message, joined.
pub(super) fn text(message: &Value) -> Option<String> {
    let message = inner(message);
    let content = message.get("content").or_else(|| message.get("parts"));
    let content = content
        .or_else(|| message.get("contents"))
        .or_else(|| message.get("text"))?;
    let part = |part: &Value| match part {
        Value::String(text) => Some(text.clone()),
        part => ["text", "content"]
            .iter()
            .find_map(|name| part[*name].as_str().map(str::to_owned)),
    };
    let texts: Vec<String> = match content {
        Value::Array(parts) => {
            let is_said = |it: &&Value| words(it, "type").is_none_or(|kind| kind.contains("text"));
            parts
                .iter()
                .map(|it| it.get("message_content").unwrap_or(it))
                .filter(is_said)
                .filter_map(part)
                .collect()
        }
        content => part(content).into_iter().collect(),
    };
    let text = texts.join("\n");
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// The calls of tools in a message, as id, name and arguments in JSON.
fn calls(message: &Value) -> Vec<(String, String, String)> {
    let message = inner(message);
    let listed = [
        &message["tool_calls"],
        &message["additional_kwargs"]["tool_calls"],
        &message["content"],
        &message["parts"],
    ];
    let lists = listed.into_iter().filter_map(Value::as_array);
    let each = lists.map(|list| list.iter().filter_map(call).collect::<Vec<_>>());
    each.into_iter()
        .find(|calls| !calls.is_empty())
        .unwrap_or_default()
}

fn call(listed: &Value) -> Option<(String, String, String)> {
    let listed = listed.get("tool_call").unwrap_or(listed);
    let function = listed.get("function").unwrap_or(listed);
    let name = words(function, "name")?;
    let arguments = ["arguments", "args", "input"]
        .iter()
        .find_map(|name| function.get(*name));
    let arguments = match arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(arguments) => arguments.to_string(),
    };
    let id = words(listed, "id")
        .or_else(|| words(listed, "call_id"))
        .unwrap_or_default();
    Some((id.to_owned(), name.to_owned(), arguments))
}

/// The response of a model call, or why it cannot be written.
pub(super) fn response(call: &TracedCall) -> Result<RecordedExchange, &'static str> {
    let output = call.output.as_ref().filter(|it| !it.is_null());
    let output = output.ok_or(match call.error {
        Some(_) => "the call failed, and the trace has no response",
        None => "the trace does not have its content; instrumentations record it only if they are told to",
    })?;
    let (dialect, body) = match native(output) {
        Some(dialect) => (dialect, output.to_string()),
        None => write(call, output)?,
    };
    Ok(RecordedExchange {
        dialect: Some(dialect.to_owned()),
        answer: Answer {
            status: 200,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            latency_ms: call.latency_ms,
            content: Content::Body(Data::from(body)),
            ..Answer::default()
        },
        ..RecordedExchange::default()
    })
}

/// The dialect whose whole answer this is.
fn native(output: &Value) -> Option<&'static str> {
    let has = |pointer: &str| output.pointer(pointer).is_some_and(|it| !it.is_null());
    Some(match output {
        _ if has("/choices/0/message") => "openai-chat",
        _ if output["object"] == "response" && output["output"].is_array() => "openai-responses",
        _ if output["type"] == "message" && output["content"].is_array() && has("/stop_reason") => {
            "anthropic"
        }
        _ if has("/candidates/0/content") => "gemini",
        _ if has("/message") && output["done"] == true => "ollama",
        _ if has("/output/message/content") && has("/stopReason") => "bedrock",
        _ => return None,
    })
}

/// The message of the assistant in an output.
fn assistant(output: &Value) -> Option<&Value> {
    match output {
        Value::Array(items) => items.iter().rev().find_map(assistant),
        Value::Object(members) => {
            let nested = ["generations", "messages", "output", "choices"];
            let nested = nested
                .iter()
                .filter_map(|name| members.get(*name))
                .find_map(assistant);
            nested.or_else(|| {
                let is_other = role(output).is_some_and(|role| role != "assistant");
                (!is_other && (text(output).is_some() || !calls(output).is_empty()))
                    .then_some(output)
            })
        }
        Value::String(text) => (!text.trim().is_empty()).then_some(output),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Writes a response in the provider's format.
fn write(call: &TracedCall, output: &Value) -> Result<(&'static str, String), &'static str> {
    let message = assistant(output).ok_or("its message is in a form that is not known")?;
    let provider = call
        .provider
        .as_deref()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let mut dialects = DIALECTS.iter();
    let known = dialects.find(|(_, providers)| providers.contains(&&*provider));
    let (name, _) = known.ok_or("the trace names no known provider, so its format is not known")?;
    let dialect = squall_dialects::by_name(name).ok_or("its provider's format is not known")?;
    let said = message
        .as_str()
        .map(str::to_owned)
        .or_else(|| text(message));
    let calls = calls(message);
    let finish = match words(message, "finish_reason").unwrap_or_default() {
        "length" | "max_tokens" => Finish::Length,
        "content_filter" => Finish::Filtered,
        _ if calls.is_empty() => Finish::Done,
        _ => Finish::Tool,
    };
    let mut parts = Vec::new();
    parts.extend(said.map(|text| (DeltaKind::Text, text, None)));
    parts.extend(
        calls
            .into_iter()
            .map(|(id, name, arguments)| (DeltaKind::ToolArguments, arguments, Some((id, name)))),
    );
    let parts = parts
        .into_iter()
        .zip(0..)
        .map(|((kind, text, call), part)| Part {
            choice: 0,
            part,
            kind,
            text,
            call,
            signature: None,
        });
    let event = event(name, call.model.as_deref().unwrap_or("imported")).to_string();
    let document = Document::parse(event.as_bytes()).map_err(|_| "its format cannot be written")?;
    let event = Event::unnamed(&document);
    let transcript = Transcript {
        first: event,
        last: event,
        parts: parts.collect(),
        finishes: vec![(0, finish)],
        tokens: (None, None),
    };
    let written = dialect.whole_answer(&transcript);
    written
        .map(|body| (*name, body))
        .ok_or("the arguments of its tool calls are not JSON")
}

/// An event of a stream, which has what a whole answer takes from one.
fn event(dialect: &str, model: &str) -> Value {
    match dialect {
        "openai-chat" => {
            json!({ "id": "chatcmpl-imported", "object": "chat.completion.chunk", "created": 0,
            "model": model, "choices": [] })
        }
        "anthropic" => {
            json!({ "type": "message_start", "message": { "id": "msg_imported", "type": "message",
            "role": "assistant", "model": model, "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 0, "output_tokens": 0 } } })
        }
        "gemini" => json!({ "candidates": [], "modelVersion": model }),
        _ => {
            json!({ "model": model, "created_at": "1970-01-01T00:00:00Z", "done": true, "done_reason": "stop",
            "message": { "role": "assistant", "content": "" } })
        }
    }
}
