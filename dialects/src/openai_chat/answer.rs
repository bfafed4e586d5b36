//! What an answer says, and where.

use std::borrow::Cow;

use crate::json::{Kind, Value};
use crate::model::{Delta, DeltaKind, Finish, Finished, Reading, Source, Usage};

/// Fields of a message or delta that hold text of the model's, in the order in which models write
/// them: thinking first. The reasoning fields are those of compatible servers, which are told apart by
/// the part they are.
const TEXTS: [(&str, u64, DeltaKind); 4] = [
    ("reasoning_content", 0, DeltaKind::Reasoning),
    ("reasoning", REASONING, DeltaKind::Reasoning),
    ("content", 0, DeltaKind::Text),
    ("refusal", 0, DeltaKind::Refusal),
];

/// The part that `reasoning` is, and `reasoning_details`, in which `OpenRouter` says the same once more
/// with its signatures.
pub(super) const REASONING: u64 = 1;

/// Reads a `chat.completion` (`said` is `message`) or `chat.completion.chunk` (`delta`).
pub(super) fn read<'d>(root: Value<'d>, said: &str) -> Reading<'d> {
    let mut reading = Reading {
        model: root.get("model").and_then(Value::as_str),
        ..Reading::default()
    };
    for (position, choice) in (0..).zip(items(root.get("choices"))) {
        let index = index(choice, position);
        let before = reading.deltas.len();
        if let Some(said) = choice.get(said) {
            reading.introduces |= said.get("role").is_some();
            read_said(said, index, &mut reading.deltas);
            let annotations = said.get("annotations");
            let annotations = annotations.filter(|list| list.items().next().is_some());
            reading.sources.extend(annotations.map(|list| Source {
                choice: index,
                part: 0,
                place: list.id(),
                may_be_empty: true,
            }));
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
    let groqs = |key| root.get("x_groq").and_then(|x_groq| x_groq.get(key));
    match root.get("usage").or_else(|| groqs("usage")) {
        Some(usage) if usage.is_null() => reading.usage_follows = true,
        Some(usage) => reading.usage = read_usage(usage),
        None => {}
    }
    let reported = root.get("error").or_else(|| groqs("error"));
    reading.error = reported
        .filter(|error| !error.is_null())
        .map(error_message)
        .or_else(|| bare_error(root));
    reading
}

/// What a choice's message or delta holds of the model's words.
fn read_said<'d>(said: Value<'d>, choice: u64, deltas: &mut Vec<Delta<'d>>) {
    if let Some(details) = said
        .get("reasoning_details")
        .filter(|details| details.items().next().is_some())
    {
        deltas.push(Delta::new(choice, REASONING, DeltaKind::Signature, details));
    }
    for (field, part, kind) in TEXTS {
        if let Some(value) = said.get(field).filter(|value| value.kind() == Kind::String) {
            deltas.push(Delta::new(choice, part, kind, value));
        }
    }
    // Mistral's models that think say both in parts of one content.
    for part in items(said.get("content")) {
        let text = |value: Value<'d>| value.get("text").filter(|text| text.kind() == Kind::String);
        let thoughts = items(part.get("thinking")).filter_map(text);
        let thoughts = thoughts.map(|text| Delta::new(choice, 0, DeltaKind::Reasoning, text));
        deltas.extend(thoughts.map(|thought| thought.inside(part)));
        deltas.extend(text(part).map(|text| Delta::new(choice, 0, DeltaKind::Text, text)));
    }
    for (position, tool_call) in (0..).zip(items(said.get("tool_calls"))) {
        let index = tool_call.get("index").and_then(Value::as_u64);
        read_call(tool_call, choice, index.unwrap_or(position), deltas);
    }
    // The older form of a single tool call: the function stands where the call would.
    if let Some(function) = said.get("function_call") {
        let fields = [NAME, ("arguments", DeltaKind::ToolArguments)];
        read_fields(function, function, &fields, choice, 0, deltas);
    }
}

const NAME: (&str, DeltaKind) = ("name", DeltaKind::ToolName);

fn read_call<'d>(call: Value<'d>, choice: u64, part: u64, deltas: &mut Vec<Delta<'d>>) {
    let id = [("id", DeltaKind::ToolId)];
    read_fields(call, call, &id, choice, part, deltas);
    for (sort, arguments) in [("function", "arguments"), ("custom", "input")] {
        if let Some(called) = call.get(sort) {
            let fields = [NAME, (arguments, DeltaKind::ToolArguments)];
            read_fields(call, called, &fields, choice, part, deltas);
        }
    }
}

/// Reads those fields of `object` that are strings, pieces of `call`.
fn read_fields<'d>(
    call: Value<'d>,
    object: Value<'d>,
    fields: &[(&str, DeltaKind)],
    choice: u64,
    part: u64,
    deltas: &mut Vec<Delta<'d>>,
) {
    for (field, kind) in fields {
        if let Some(value) = object
            .get(field)
            .filter(|value| value.kind() == Kind::String)
        {
            deltas.push(Delta::new(choice, part, *kind, value).inside_call(call));
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
        apart: 0,
    })
}

/// The message of an error without an envelope: Mistral's, vLLM's.
fn bare_error(root: Value<'_>) -> Option<Cow<'_, str>> {
    let is_error = root.get("object").and_then(Value::as_str).as_deref() == Some("error");
    root.get("message").filter(|_| is_error)?.as_str()
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
        // Mistral's word for a context that was full.
        "model_length" => Finish::Context,
        "tool_calls" | "function_call" => Finish::Tool,
        "content_filter" => Finish::Filtered,
        other => Finish::Foreign(other.to_owned()),
    }
}

/// Which choice an item of the list is.
pub(super) fn index(choice: Value<'_>, position: u64) -> u64 {
    choice
        .get("index")
        .and_then(Value::as_u64)
        .unwrap_or(position)
}

pub(super) fn items(list: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    list.into_iter().flat_map(Value::items)
}
