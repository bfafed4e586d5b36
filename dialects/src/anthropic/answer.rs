//! Reads an answer, with the places of its parts.

use crate::dialect::Provider;
use crate::errors;
use crate::json::{JsonKind, Value};
use crate::model::{
    Delta, DeltaKind, Finish, FinishWords, Reading, Usage, UsageKeys, call_pieces, error_message,
};

pub(super) static ANTHROPIC: Provider = Provider {
    dialect: "anthropic",
    endpoint: "anthropic",
    quirks: &[],
    event_number: None,
    end_mark: None,
    finish_words: FinishWords(&[
        ("end_turn", &[Finish::Done, Finish::BadTool]),
        ("stop_sequence", &[Finish::Done]),
        ("max_tokens", &[Finish::Length]),
        ("tool_use", &[Finish::Tool]),
        ("refusal", &[Finish::Refused, Finish::Filtered]),
        ("model_context_window_exceeded", &[Finish::Context]),
    ]),
    usage: UsageKeys {
        // Tokens read from or written to the cache are counted separately.
        input: &[
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ],
        output: "output_tokens",
        hidden: &["output_tokens_details", "thinking_tokens"],
        total: "",
    },
    errors: &errors::ANTHROPIC,
};

/// Reads a whole `message`, one event's data, or the error in its place.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    let mut reading = Reading::default();
    let part = root.number("index").unwrap_or_default();
    let usage = |root: Value<'_>| Usage::read(root.get("usage")?, &ANTHROPIC.usage);
    match root.text("type").as_deref() {
        Some("message_start") => {
            let message = root.get("message");
            reading.model = message.and_then(|message| message.text("model"));
            // The output tokens in this event are only the first few.
            reading.usage = message.and_then(usage).map(|usage| Usage {
                input: usage.input,
                ..Usage::default()
            });
        }
        Some("content_block_start") => {
            let block = root.get("content_block");
            reading.edge(part, false, block.is_some_and(thinks));
            if let Some(block) = block {
                read_block(block, part, &mut reading.deltas);
                // An empty text here only starts a part.
                reading.deltas.retain(|delta| !is_empty(delta));
            }
        }
        Some("content_block_delta") => {
            let delta = root.get("delta");
            let piece = delta.and_then(|delta| piece(delta, part));
            reading.deltas.extend(piece);
        }
        Some("content_block_stop") => reading.edge(part, true, false),
        Some("message_delta") => {
            if let Some(delta) = root.get("delta") {
                finish(delta, &mut reading);
            }
            reading.usage = usage(root);
        }
        Some("message_stop") => reading.ends = true,
        _ => read_message(root, &mut reading),
    }
    reading
}

fn read_message<'d>(root: Value<'d>, reading: &mut Reading<'d>) {
    reading.model = root.text("model");
    reading.error = root.given("error").map(error_message);
    for (part, block) in (0..).zip(root.list("content")) {
        read_block(block, part, &mut reading.deltas);
        reading.rests_on(0, part, block.get("citations"), false);
        let kind = block.text("type").unwrap_or_default();
        if kind.ends_with("_tool_result") {
            reading.results.push((part, block.id()));
        }
    }
    finish(root, reading);
    let usage = root.get("usage");
    reading.usage = usage.and_then(|usage| Usage::read(usage, &ANTHROPIC.usage));
    let shows = |it: &Delta<'_>| it.kind == DeltaKind::Reasoning && !it.text.is_empty();
    if reading.deltas.iter().any(shows)
        && let Some(usage) = &mut reading.usage
    {
        usage.hidden = 0;
    }
}

/// Whether a content block is reasoning, visible or encrypted.
pub(super) fn thinks(block: Value<'_>) -> bool {
    let kind = block.text("type");
    matches!(kind.as_deref(), Some("thinking" | "redacted_thinking"))
}

fn is_empty(delta: &Delta<'_>) -> bool {
    delta.text.is_empty() || (delta.kind == DeltaKind::ToolArguments && delta.text == "{}")
}

/// Reads a content block that is complete or just started.
fn read_block<'d>(block: Value<'d>, part: u64, deltas: &mut Vec<Delta<'d>>) {
    let piece = |key, kind| Some(Delta::new(0, part, kind, block.string(key)?).inside(block));
    match block.text("type").as_deref() {
        Some("text") => deltas.extend(piece("text", DeltaKind::Text)),
        Some("thinking") => {
            deltas.extend(piece("thinking", DeltaKind::Reasoning));
            deltas.extend(piece("signature", DeltaKind::Signature));
        }
        // Tools that the provider runs are called in the same way.
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
            let fields = [block.string("id"), block.string("name"), block.get("input")];
            deltas.extend(call_pieces(0, part, fields).map(|piece| piece.inside(block)));
        }
        // Encrypted reasoning and results of the provider's own tools contain no text of the model.
        _ => {}
    }
}

/// Reads the piece of a block in a `content_block_delta`.
fn piece(delta: Value<'_>, part: u64) -> Option<Delta<'_>> {
    let (key, kind) = match &*delta.text("type")? {
        "text_delta" => ("text", DeltaKind::Text),
        "input_json_delta" => ("partial_json", DeltaKind::ToolArguments),
        "thinking_delta" => ("thinking", DeltaKind::Reasoning),
        "signature_delta" => ("signature", DeltaKind::Signature),
        _ => return None,
    };
    Some(Delta::new(0, part, kind, delta.string(key)?))
}

/// Reads the stop reason of a message, or of its delta.
fn finish<'d>(said: Value<'d>, reading: &mut Reading<'d>) {
    if let Some(reason) = said.get("stop_reason")
        && reason.kind() == JsonKind::String
    {
        let word = reason.as_str().unwrap_or_default();
        reading.finish(0, ANTHROPIC.finish_words.read(&word), reason);
    }
}
