//! What a chat completion request asks for.

use crate::json::Value;
use crate::model::{ModelRequest, ToolResult};

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
            Some("messages") => {
                request.messages = member.items().count();
                request.tool_results = member.items().filter_map(tool_result).collect();
            }
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

/// `{"role": "tool", "tool_call_id": …, "content": …}`
fn tool_result(message: Value<'_>) -> Option<ToolResult> {
    if message.get("role")?.as_str()? != "tool" {
        return None;
    }
    let call = message.get("tool_call_id").and_then(text)?;
    Some(ToolResult {
        call,
        content: message.get("content")?.span(),
    })
}

fn text(value: Value<'_>) -> Option<String> {
    value.as_str().map(std::borrow::Cow::into_owned)
}
