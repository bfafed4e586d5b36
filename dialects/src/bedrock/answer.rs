//! Reads an answer in Bedrock's own format, with the places of its parts.

use std::borrow::Cow;

use crate::dialect::Provider;
use crate::errors;
use crate::json::Value;
use crate::model::{
    BadCalls, Delta, DeltaKind, Finish, FinishWords, Reading, Usage, UsageKeys, call_pieces,
};

pub(super) static BEDROCK: Provider = Provider {
    dialect: "bedrock",
    endpoint: "bedrock",
    quirks: &[],
    event_number: None,
    end_mark: None,
    finish_words: FinishWords(&[
        ("end_turn", &[Finish::Done, Finish::Refused]),
        ("stop_sequence", &[Finish::Done]),
        ("max_tokens", &[Finish::Length]),
        ("tool_use", &[Finish::Tool]),
        ("content_filtered", &[Finish::Filtered]),
        ("guardrail_intervened", &[Finish::Filtered]),
        ("model_context_window_exceeded", &[Finish::Context]),
        ("malformed_tool_use", &[Finish::BadTool]),
    ]),
    usage: UsageKeys {
        // Tokens read from or written to the cache are part of the total, but not of `inputTokens`.
        input: &[
            "inputTokens",
            "cacheReadInputTokens",
            "cacheWriteInputTokens",
        ],
        output: "outputTokens",
        hidden: &[],
        total: "totalTokens",
    },
    errors: &errors::BEDROCK,
};

/// Reads the response to `Converse`, or an error.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    let mut reading = Reading {
        bad_calls: BadCalls::Dropped,
        usage: usage(root),
        ..Reading::default()
    };
    match root.path(&["output", "message"]) {
        Some(message) => {
            for (part, block) in (0..).zip(message.list("content")) {
                read_block(block, part, &mut reading.deltas);
            }
        }
        None => reading.error = root.text("message"),
    }
    read_finish(root, &mut reading);
    reading
}

fn usage(object: Value<'_>) -> Option<Usage> {
    Usage::read(object.get("usage")?, &BEDROCK.usage)
}

/// Reads one block of a whole message.
fn read_block<'d>(block: Value<'d>, part: u64, deltas: &mut Vec<Delta<'d>>) {
    let mut push = |kind, value: Option<Value<'d>>| {
        deltas.extend(value.map(|value| Delta::new(0, part, kind, value).inside(block)));
    };
    push(DeltaKind::Text, block.string("text"));
    let cited = block.get("citationsContent").into_iter();
    for text in cited.flat_map(|cited| cited.list("content")) {
        push(DeltaKind::Text, text.string("text"));
    }
    if let Some(reasoning) = block.get("reasoningContent") {
        let shown = reasoning.get("reasoningText");
        push(DeltaKind::Reasoning, shown.and_then(|it| it.string("text")));
        push(
            DeltaKind::Signature,
            shown.and_then(|it| it.string("signature")),
        );
        push(DeltaKind::Signature, reasoning.string("redactedContent"));
    }
    if let Some(call) = block.get("toolUse") {
        let fields = [
            call.string("toolUseId"),
            call.string("name"),
            call.get("input"),
        ];
        deltas.extend(call_pieces(0, part, fields).map(|piece| piece.inside(block)));
    }
}

/// Reads an event of `ConverseStream`, by its name.
pub(super) fn read_event<'d>(name: &str, event: Value<'d>) -> Reading<'d> {
    let mut reading = Reading::default();
    let part = event.number("contentBlockIndex").unwrap_or_default();
    match name {
        "messageStart" => reading.introduces = true,
        "contentBlockStart" => {
            reading.edge(part, false, false);
            if let Some(call) = event.path(&["start", "toolUse"]) {
                let fields = [call.string("toolUseId"), call.string("name"), None];
                let pieces = call_pieces(0, part, fields).map(|piece| piece.inside(call));
                reading.deltas.extend(pieces);
            }
        }
        "contentBlockDelta" => {
            let delta = event.get("delta");
            let piece = delta.and_then(|delta| read_delta(delta, part));
            reading.deltas.extend(piece);
        }
        "contentBlockStop" => reading.edge(part, true, false),
        "messageStop" => read_finish(event, &mut reading),
        "metadata" => {
            reading.usage = usage(event);
            reading.ends = true;
        }
        _ => {}
    }
    reading
}

/// Reads the piece in a `contentBlockDelta`.
fn read_delta(delta: Value<'_>, part: u64) -> Option<Delta<'_>> {
    let piece = |kind, value| Delta::new(0, part, kind, value);
    if let Some(text) = delta.string("text") {
        return Some(piece(DeltaKind::Text, text));
    }
    if let Some(call) = delta.get("toolUse") {
        return Some(piece(DeltaKind::ToolArguments, call.string("input")?).inside(call));
    }
    let reasoning = delta.get("reasoningContent")?;
    let shown = reasoning.string("text");
    let opaque = || {
        let signature = reasoning.string("signature");
        signature.or_else(|| reasoning.string("redactedContent"))
    };
    let piece = match shown {
        Some(text) => piece(DeltaKind::Reasoning, text),
        None => piece(DeltaKind::Signature, opaque()?),
    };
    Some(piece.inside(reasoning))
}

/// Reads an exception in the middle of a stream.
pub(super) fn read_exception<'d>(name: &'d str, root: Value<'d>) -> Reading<'d> {
    Reading {
        error: root.text("message").or(Some(Cow::Borrowed(name))),
        ..Reading::default()
    }
}

fn read_finish<'d>(object: Value<'d>, reading: &mut Reading<'d>) {
    if let Some(reason) = object.string("stopReason")
        && let Some(word) = reason.as_str()
    {
        reading.finish(0, BEDROCK.finish_words.read(&word), reason);
    }
}
