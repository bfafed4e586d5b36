//! What an answer says, and where.

use std::borrow::Cow;

use super::request::kind;
use crate::json::{Kind, Value};
use crate::model::{Delta, DeltaKind, Edge, Finish, Finished, Reading, Source, Usage};

/// Reads a whole `message`, or the error in its place.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    let mut reading = Reading {
        model: root.get("model").and_then(Value::as_str),
        error: error(root),
        ..Reading::default()
    };
    let content = root.get("content");
    for (part, block) in (0..).zip(content.into_iter().flat_map(Value::items)) {
        read_block(block, part, &mut reading.deltas);
        let citations = block.get("citations");
        let citations = citations.filter(|list| list.items().next().is_some());
        reading.sources.extend(citations.map(|list| Source {
            choice: 0,
            part,
            place: list.id(),
            may_be_empty: false,
        }));
    }
    reading.finishes.extend(finished(root));
    let shown = reading
        .deltas
        .iter()
        .any(|delta| delta.kind == DeltaKind::Reasoning && !delta.text.is_empty());
    reading.usage = root.get("usage").and_then(|usage| read_usage(usage, shown));
    reading
}

/// Reads one event's data.
pub(super) fn read_event(root: Value<'_>) -> Reading<'_> {
    let mut reading = Reading::default();
    let part = root
        .get("index")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let edge = |closes| Edge {
        choice: 0,
        part,
        closes,
        thinks: root.get("content_block").is_some_and(thinks),
    };
    match kind(root).as_deref() {
        Some("message_start") => {
            let message = root.get("message");
            reading.model = message.and_then(|message| message.get("model")?.as_str());
            let usage = message.and_then(|message| read_usage(message.get("usage")?, false));
            // The tokens out that stand here are only the first few.
            reading.usage = usage.map(|usage| Usage {
                input: usage.input,
                ..Usage::default()
            });
        }
        Some("content_block_start") => {
            reading.edges.push(edge(false));
            if let Some(block) = root.get("content_block") {
                read_block(block, part, &mut reading.deltas);
                // What is empty here is a place for what is to come.
                reading.deltas.retain(|delta| !says_nothing(delta));
            }
        }
        Some("content_block_delta") => {
            let delta = root.get("delta");
            reading
                .deltas
                .extend(delta.and_then(|delta| piece(delta, part)));
        }
        Some("content_block_stop") => reading.edges.push(edge(true)),
        Some("message_delta") => {
            reading
                .finishes
                .extend(root.get("delta").and_then(finished));
            reading.usage = root.get("usage").and_then(|usage| read_usage(usage, false));
        }
        Some("message_stop") => reading.ends = true,
        _ => reading.error = error(root),
    }
    reading
}

/// The same, kept or removed whole: agents give thinking back as they got it.
fn signed(delta: Delta<'_>) -> Delta<'_> {
    Delta {
        signed: true,
        ..delta
    }
}

/// Whether a content block is thinking, shown or sealed.
pub(super) fn thinks(block: Value<'_>) -> bool {
    matches!(
        kind(block).as_deref(),
        Some("thinking" | "redacted_thinking")
    )
}

fn says_nothing(delta: &Delta<'_>) -> bool {
    delta.text.is_empty() || (delta.kind == DeltaKind::ToolArguments && delta.text == "{}")
}

/// Reads a content block that is complete, or as it begins.
fn read_block<'d>(block: Value<'d>, part: u64, deltas: &mut Vec<Delta<'d>>) {
    let string = |key: &str, kind| {
        let value = block.get(key);
        value
            .filter(|value| value.kind() == Kind::String)
            .map(|value| Delta::new(0, part, kind, value).inside(block))
    };
    match kind(block).as_deref() {
        Some("text") => deltas.extend(string("text", DeltaKind::Text)),
        Some("thinking") => {
            let thinking = string("thinking", DeltaKind::Reasoning);
            let signature = string("signature", DeltaKind::Signature);
            deltas.extend(thinking.into_iter().chain(signature).map(signed));
        }
        // Tools that the provider runs itself are called the same way.
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
            let id = string("id", DeltaKind::ToolId);
            let name = string("name", DeltaKind::ToolName);
            let input = block
                .get("input")
                .map(|input| Delta::new(0, part, DeltaKind::ToolArguments, input).inside(block));
            deltas.extend(id.into_iter().chain(name).chain(input));
        }
        // Sealed thinking, results of the provider's own tools: no words of the model's.
        _ => {}
    }
}

/// The piece of a block in a `content_block_delta`.
fn piece(delta: Value<'_>, part: u64) -> Option<Delta<'_>> {
    let piece = |key: &str, kind| {
        let value = delta.get(key)?;
        (value.kind() == Kind::String).then(|| Delta::new(0, part, kind, value))
    };
    match kind(delta)?.as_ref() {
        "text_delta" => piece("text", DeltaKind::Text),
        "input_json_delta" => piece("partial_json", DeltaKind::ToolArguments),
        "thinking_delta" => piece("thinking", DeltaKind::Reasoning).map(signed),
        "signature_delta" => piece("signature", DeltaKind::Signature).map(signed),
        _ => None,
    }
}

/// Where a message, or the delta of one, says why it ended.
fn finished(said: Value<'_>) -> Option<Finished> {
    let reason = said.get("stop_reason")?;
    Some(Finished {
        choice: 0,
        finish: finish(&reason.as_str()?),
        place: reason.id(),
    })
}

/// The neutral word for a `stop_reason`.
pub(super) fn finish(word: &str) -> Finish {
    match word {
        "end_turn" | "stop_sequence" => Finish::Done,
        "max_tokens" => Finish::Length,
        "tool_use" => Finish::Tool,
        "refusal" => Finish::Refused,
        "model_context_window_exceeded" => Finish::Context,
        other => Finish::Foreign(other.to_owned()),
    }
}

/// Reads token counts; `shown` says that the answer shows its thinking.
fn read_usage(usage: Value<'_>, shown: bool) -> Option<Usage> {
    if usage.kind() != Kind::Object {
        return None;
    }
    let number = |key| usage.get(key).and_then(Value::as_u64);
    // Tokens that a cache took or gave are counted beside the others.
    let input = [
        number("input_tokens"),
        number("cache_creation_input_tokens"),
        number("cache_read_input_tokens"),
    ];
    let details = usage.get("output_tokens_details");
    let thinking = details.and_then(|details| details.get("thinking_tokens")?.as_u64());
    Some(Usage {
        input: input[0].map(|_| input.iter().flatten().sum()),
        output: number("output_tokens"),
        hidden: thinking.filter(|_| !shown).unwrap_or_default(),
        output_place: usage
            .get("output_tokens")
            .filter(|value| value.kind() == Kind::Number)
            .map(Value::id),
        apart: 0,
        total_place: None,
    })
}

/// The message of an error, or the error itself where it is something else.
fn error(root: Value<'_>) -> Option<Cow<'_, str>> {
    let error = root.get("error").filter(|error| !error.is_null())?;
    let message = error.get("message").and_then(Value::as_str);
    Some(
        message
            .or_else(|| error.as_str())
            .unwrap_or(Cow::Borrowed(error.raw())),
    )
}
