//! What an answer in Bedrock's own words says, and where.

use std::borrow::Cow;

use crate::json::{Kind, Value};
use crate::model::{Delta, DeltaKind, Edge, Finish, Finished, Reading, Usage};

/// Reads the answer to `Converse`, or an error's document.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    let mut reading = Reading::default();
    let message = root.get("output").and_then(|output| output.get("message"));
    let content = message.and_then(|message| message.get("content"));
    for (part, block) in (0..).zip(content.into_iter().flat_map(Value::items)) {
        read_block(block, part, &mut reading.deltas);
    }
    read_finish(root, &mut reading);
    reading.usage = root.get("usage").and_then(read_usage);
    if message.is_none() {
        reading.error = root.get("message").and_then(Value::as_str);
    }
    reading
}

/// Reads one block of a whole message.
fn read_block<'d>(block: Value<'d>, part: u64, deltas: &mut Vec<Delta<'d>>) {
    let mut push = |kind, value: Option<Value<'d>>, signed| {
        let delta = value.map(|value| Delta::new(0, part, kind, value).inside(block));
        deltas.extend(delta.map(|delta| Delta { signed, ..delta }));
    };
    push(DeltaKind::Text, string(block, "text"), false);
    if let Some(citations) = block.get("citationsContent") {
        let generated = citations.get("content").into_iter().flat_map(Value::items);
        for text in generated {
            push(DeltaKind::Text, string(text, "text"), false);
        }
    }
    if let Some(call) = block.get("toolUse") {
        push(DeltaKind::ToolId, string(call, "toolUseId"), false);
        push(DeltaKind::ToolName, string(call, "name"), false);
        push(DeltaKind::ToolArguments, call.get("input"), false);
    }
    if let Some(reasoning) = block.get("reasoningContent") {
        if let Some(shown) = reasoning.get("reasoningText") {
            push(DeltaKind::Reasoning, string(shown, "text"), true);
            push(DeltaKind::Signature, string(shown, "signature"), true);
        }
        push(
            DeltaKind::Signature,
            string(reasoning, "redactedContent"),
            true,
        );
    }
}

/// Reads an event of `ConverseStream`, by its name.
pub(super) fn read_event<'d>(name: &str, event: Value<'d>) -> Reading<'d> {
    let mut reading = Reading {
        // Counts come last, after every end.
        usage_follows: name != "metadata",
        ..Reading::default()
    };
    let part = event.get("contentBlockIndex").and_then(Value::as_u64);
    let part = part.unwrap_or_default();
    let edge = |closes| Edge {
        choice: 0,
        part,
        closes,
        thinks: false,
    };
    match name {
        "messageStart" => reading.introduces = true,
        "contentBlockStart" => {
            reading.edges.push(edge(false));
            let call = event.get("start").and_then(|start| start.get("toolUse"));
            if let Some(call) = call {
                for (key, kind) in [
                    ("toolUseId", DeltaKind::ToolId),
                    ("name", DeltaKind::ToolName),
                ] {
                    let value = string(call, key);
                    let delta = value.map(|value| Delta::new(0, part, kind, value).inside(call));
                    reading.deltas.extend(delta);
                }
            }
        }
        "contentBlockDelta" => {
            let delta = event.get("delta");
            reading
                .deltas
                .extend(delta.and_then(|delta| read_delta(delta, part)));
        }
        "contentBlockStop" => reading.edges.push(edge(true)),
        "messageStop" => read_finish(event, &mut reading),
        "metadata" => {
            reading.usage = event.get("usage").and_then(read_usage);
            reading.ends = true;
        }
        _ => reading.usage_follows = false,
    }
    reading
}

/// Reads what a `contentBlockDelta` adds.
fn read_delta(delta: Value<'_>, part: u64) -> Option<Delta<'_>> {
    let piece = |kind, value| Delta::new(0, part, kind, value);
    if let Some(text) = string(delta, "text") {
        return Some(piece(DeltaKind::Text, text));
    }
    if let Some(call) = delta.get("toolUse") {
        let input = string(call, "input")?;
        return Some(piece(DeltaKind::ToolArguments, input).inside(call));
    }
    let reasoning = delta.get("reasoningContent")?;
    let (kind, value) = if let Some(text) = string(reasoning, "text") {
        (DeltaKind::Reasoning, text)
    } else {
        let opaque = string(reasoning, "signature");
        let opaque = opaque.or_else(|| string(reasoning, "redactedContent"))?;
        (DeltaKind::Signature, opaque)
    };
    let piece = piece(kind, value).inside(reasoning);
    Some(Delta {
        signed: true,
        ..piece
    })
}

/// Reads an exception in the middle of a stream.
pub(super) fn read_exception<'d>(name: &'d str, root: Value<'d>) -> Reading<'d> {
    let message = root.get("message").and_then(Value::as_str);
    Reading {
        error: Some(message.unwrap_or(Cow::Borrowed(name))),
        ..Reading::default()
    }
}

fn read_finish<'d>(object: Value<'d>, reading: &mut Reading<'d>) {
    if let Some(reason) = object.get("stopReason")
        && let Some(word) = reason.as_str()
    {
        reading.finishes.push(Finished {
            choice: 0,
            finish: finish(&word),
            place: reason.id(),
        });
    }
}

/// The neutral word for a `stopReason`.
fn finish(word: &str) -> Finish {
    match word {
        "end_turn" | "stop_sequence" => Finish::Done,
        "max_tokens" => Finish::Length,
        "tool_use" => Finish::Tool,
        "content_filtered" | "guardrail_intervened" => Finish::Filtered,
        "model_context_window_exceeded" => Finish::Context,
        "malformed_tool_use" => Finish::BadTool,
        other => Finish::Foreign(other.to_owned()),
    }
}

/// Tokens read from and written to the cache are not among `inputTokens`, but in the total.
fn read_usage(usage: Value<'_>) -> Option<Usage> {
    if usage.kind() != Kind::Object {
        return None;
    }
    let number = |key| usage.get(key).and_then(Value::as_u64);
    let cached = ["cacheReadInputTokens", "cacheWriteInputTokens"]
        .map(|key| number(key).unwrap_or_default());
    let place = |key| {
        let value = usage.get(key).filter(|value| value.kind() == Kind::Number);
        value.map(Value::id)
    };
    let input = number("inputTokens");
    Some(Usage {
        input: input.map(|input| cached.into_iter().fold(input, u64::saturating_add)),
        output: number("outputTokens"),
        output_place: place("outputTokens"),
        total_place: place("totalTokens"),
        ..Usage::default()
    })
}

/// A member that is a string.
fn string<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).filter(|value| value.kind() == Kind::String)
}
