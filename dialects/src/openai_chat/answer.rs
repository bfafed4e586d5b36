//! What an answer says, and where.

use std::borrow::Cow;

use crate::json::{Edits, Kind, Value, quote};
use crate::model::{Delta, DeltaKind, Finish, Finished, Reading, Usage};

/// Fields of a message or delta that hold text of the model's, in the order in which models write
/// them: thinking first. The reasoning fields are those of compatible servers.
const TEXTS: [(&str, DeltaKind); 4] = [
    ("reasoning_content", DeltaKind::Reasoning),
    ("reasoning", DeltaKind::Reasoning),
    ("content", DeltaKind::Text),
    ("refusal", DeltaKind::Refusal),
];

/// Reads a `chat.completion` (`said` is `message`) or `chat.completion.chunk` (`delta`).
pub(super) fn read<'d>(root: Value<'d>, said: &str) -> Reading<'d> {
    let mut reading = Reading {
        model: root.get("model").and_then(Value::as_str),
        ..Reading::default()
    };
    for (position, choice) in (0..).zip(items(root.get("choices"))) {
        let index = choice
            .get("index")
            .and_then(Value::as_u64)
            .unwrap_or(position);
        let before = reading.deltas.len();
        if let Some(said) = choice.get(said) {
            read_said(said, index, &mut reading.deltas);
        }
        if let Some(logprobs) = choice.get("logprobs").filter(|value| !value.is_null()) {
            reading.mirrors.push((index, logprobs.id()));
        }
        if let Some(reason) = choice.get("finish_reason")
            && let Some(word) = reason.as_str()
        {
            let refused = said_no(&reading.deltas[before..]);
            let finish = match finish(&word) {
                Finish::Done if refused => Finish::Refused,
                finish => finish,
            };
            reading.finishes.push(Finished {
                choice: index,
                finish,
                place: reason.id(),
            });
        }
    }
    match root.get("usage") {
        Some(usage) if usage.is_null() => reading.usage_follows = true,
        Some(usage) => reading.usage = read_usage(usage),
        None => {}
    }
    reading.error = root
        .get("error")
        .filter(|error| !error.is_null())
        .map(error_message);
    reading
}

/// What a choice's message or delta holds of the model's words.
fn read_said<'d>(said: Value<'d>, choice: u64, deltas: &mut Vec<Delta<'d>>) {
    for (field, kind) in TEXTS {
        if let Some(value) = said.get(field)
            && let Some(text) = value.as_str()
        {
            deltas.push(Delta {
                choice,
                kind,
                text,
                place: value.id(),
                removed_with: None,
            });
        }
    }
    for (position, tool_call) in (0..).zip(items(said.get("tool_calls"))) {
        let call = tool_call
            .get("index")
            .and_then(Value::as_u64)
            .unwrap_or(position);
        read_call(tool_call, choice, call, deltas);
    }
    // The older form of a single tool call.
    if let Some(function_call) = said.get("function_call").filter(|call| !call.is_null()) {
        let removed_with = Some(function_call.id());
        read_function(
            function_call,
            ["name", "arguments"],
            choice,
            0,
            removed_with,
            deltas,
        );
    }
}

fn read_call<'d>(tool_call: Value<'d>, choice: u64, call: u64, deltas: &mut Vec<Delta<'d>>) {
    let removed_with = Some(tool_call.id());
    if let Some(function) = tool_call.get("function") {
        read_function(
            function,
            ["name", "arguments"],
            choice,
            call,
            removed_with,
            deltas,
        );
    } else if let Some(custom) = tool_call.get("custom") {
        read_function(
            custom,
            ["name", "input"],
            choice,
            call,
            removed_with,
            deltas,
        );
    }
}

fn read_function<'d>(
    function: Value<'d>,
    [name, arguments]: [&str; 2],
    choice: u64,
    call: u64,
    removed_with: Option<crate::json::NodeId>,
    deltas: &mut Vec<Delta<'d>>,
) {
    for (field, kind) in [
        (name, DeltaKind::ToolName { call }),
        (arguments, DeltaKind::ToolArguments { call }),
    ] {
        if let Some(value) = function.get(field)
            && let Some(text) = value.as_str()
        {
            deltas.push(Delta {
                choice,
                kind,
                text,
                place: value.id(),
                removed_with,
            });
        }
    }
}

/// Whether a choice refused in the field meant for it.
fn said_no(deltas: &[Delta<'_>]) -> bool {
    deltas
        .iter()
        .any(|delta| delta.kind == DeltaKind::Refusal && !delta.text.is_empty())
}

fn read_usage(usage: Value<'_>) -> Option<Usage> {
    if usage.kind() != Kind::Object {
        return None;
    }
    let number = |key| usage.get(key).and_then(Value::as_u64);
    let place = |key| {
        usage
            .get(key)
            .filter(|value| value.kind() == Kind::Number)
            .map(Value::id)
    };
    let details = usage.get("completion_tokens_details");
    let hidden = details.and_then(|details| details.get("reasoning_tokens"));
    Some(Usage {
        input: number("prompt_tokens"),
        output: number("completion_tokens"),
        hidden: hidden.and_then(Value::as_u64).unwrap_or_default(),
        output_place: place("completion_tokens"),
        total_place: place("total_tokens"),
    })
}

/// The message of an error object, or the error itself where it is something else.
fn error_message(error: Value<'_>) -> Cow<'_, str> {
    let message = error.get("message").and_then(Value::as_str);
    message
        .or_else(|| error.as_str())
        .unwrap_or(Cow::Borrowed(error.raw()))
}

/// The neutral word for a `finish_reason`.
fn finish(word: &str) -> Finish {
    match word {
        "stop" => Finish::Done,
        "length" => Finish::Length,
        "tool_calls" | "function_call" => Finish::Tool,
        "content_filter" => Finish::Filtered,
        other => Finish::Foreign(other.to_owned()),
    }
}

/// The `finish_reason` for a neutral word, as JSON. A refusal ends with `stop` here, and an
/// overflowing context with `length`.
pub(super) fn finish_word(finish: &Finish) -> String {
    match finish {
        Finish::Done | Finish::Refused | Finish::BadTool => quote("stop"),
        Finish::Length | Finish::Context => quote("length"),
        Finish::Tool => quote("tool_calls"),
        Finish::Filtered => quote("content_filter"),
        Finish::Foreign(word) => quote(word),
    }
}

/// Turns a chunk of `choice` into the one that ends it: an empty delta and a finish reason, no
/// other choice, no token counts. False when the chunk holds no such choice.
pub(super) fn make_finish(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    choice: u64,
    finish: &Finish,
) -> bool {
    let mut found = false;
    for (position, item) in (0..).zip(items(root.get("choices"))) {
        let index = item
            .get("index")
            .and_then(Value::as_u64)
            .unwrap_or(position);
        let Some(delta) = item.get("delta").filter(|_| !found && index == choice) else {
            edits.remove(item.id());
            continue;
        };
        found = true;
        edits.replace(delta.id(), "{}");
        match item.get("finish_reason") {
            Some(reason) => edits.replace(reason.id(), finish_word(finish)),
            // Some servers mention it only at the end.
            None => edits.insert_after(delta.id(), "finish_reason", &finish_word(finish)),
        }
        if let Some(logprobs) = item.get("logprobs") {
            edits.replace(logprobs.id(), "null");
        }
    }
    if let Some(usage) = root.get("usage") {
        edits.replace(usage.id(), "null");
    }
    found
}

fn items(list: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    list.into_iter().flat_map(Value::items)
}
