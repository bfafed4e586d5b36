//! Reads an answer, with the places of its parts.

use crate::dialect::{Provider, Quirk};
use crate::errors;
use crate::json::Value;
use crate::model::{
    Delta, DeltaKind, Finish, FinishWords, Reading, Usage, UsageKeys, call_pieces, error_message,
};

pub(super) static RESPONSES: Provider = Provider {
    dialect: "openai-responses",
    endpoint: "openai-responses",
    // With `previous_response_id` or `conversation`.
    quirks: &[Quirk::KeepsConversations],
    event_number: Some("sequence_number"),
    end_mark: None,
    finish_words: STATUSES,
    usage: UsageKeys {
        input: &["input_tokens"],
        output: "output_tokens",
        hidden: &["output_tokens_details", "reasoning_tokens"],
        total: "total_tokens",
    },
    errors: &errors::OPENAI,
};

/// The `status` of a response; an incomplete one also has a reason.
pub(crate) const STATUSES: FinishWords = FinishWords(&[
    (
        "completed",
        &[Finish::Done, Finish::Tool, Finish::Refused, Finish::BadTool],
    ),
    (
        "incomplete",
        &[Finish::Length, Finish::Context, Finish::Filtered],
    ),
]);

/// Reasons of incomplete responses.
pub(crate) static REASONS: FinishWords = FinishWords(&[
    ("max_output_tokens", &[Finish::Length, Finish::Context]),
    ("content_filter", &[Finish::Filtered]),
]);

/// Parts of one item that are distinguished. The number of a part is its item's number times this, plus its own
/// number.
const PARTS: u64 = 1 << 16;

/// First number of a reasoning item's texts, after those of its summaries.
const THOUGHTS: u64 = PARTS / 2;

/// Events with a piece of a text or its repetition: the member, its kind, and whether it belongs to an item's
/// reasoning.
const PIECES: &[(&str, &str, DeltaKind)] = &[
    ("output_text.delta", "delta", DeltaKind::Text),
    ("output_text.done", "text", DeltaKind::Text),
    // Realtime: the transcript of spoken words, and the names of its beta.
    ("output_audio_transcript.delta", "delta", DeltaKind::Text),
    (
        "output_audio_transcript.done",
        "transcript",
        DeltaKind::Text,
    ),
    ("audio_transcript.delta", "delta", DeltaKind::Text),
    ("audio_transcript.done", "transcript", DeltaKind::Text),
    ("text.delta", "delta", DeltaKind::Text),
    ("text.done", "text", DeltaKind::Text),
    ("refusal.delta", "delta", DeltaKind::Refusal),
    ("refusal.done", "refusal", DeltaKind::Refusal),
    (
        "reasoning_summary_text.delta",
        "delta",
        DeltaKind::Reasoning,
    ),
    ("reasoning_summary_text.done", "text", DeltaKind::Reasoning),
    ("reasoning_text.delta", "delta", DeltaKind::Reasoning),
    ("reasoning_text.done", "text", DeltaKind::Reasoning),
    (
        "function_call_arguments.delta",
        "delta",
        DeltaKind::ToolArguments,
    ),
    ("function_call_arguments.done", "name", DeltaKind::ToolName),
    (
        "function_call_arguments.done",
        "arguments",
        DeltaKind::ToolArguments,
    ),
    (
        "mcp_call_arguments.delta",
        "delta",
        DeltaKind::ToolArguments,
    ),
    ("mcp_call_arguments.done", "name", DeltaKind::ToolName),
    (
        "mcp_call_arguments.done",
        "arguments",
        DeltaKind::ToolArguments,
    ),
    (
        "custom_tool_call_input.delta",
        "delta",
        DeltaKind::ToolArguments,
    ),
    (
        "custom_tool_call_input.done",
        "input",
        DeltaKind::ToolArguments,
    ),
];

/// Reads a whole `response`, one event's data, or an error.
pub(crate) fn read<'d>(root: Value<'d>, usage: &UsageKeys) -> Reading<'d> {
    let mut reading = Reading::default();
    let kind = root.text("type").unwrap_or_default();
    let Some(event) = kind.strip_prefix("response.") else {
        match &*kind {
            "" => read_response(root, usage, &mut reading),
            "error" => {
                let error = root.get("error").unwrap_or(root);
                reading.error = Some(error_message(error));
            }
            // Realtime repeats what it said as an item of the conversation.
            _ => {
                let item = root.get("item").filter(|item| is_said(*item));
                reading.rests_on(0, 0, item.map(|_| root), true);
            }
        }
        return reading;
    };
    let happens = event.rsplit('.').next().unwrap_or_default();
    let number = |key| root.number(key).unwrap_or_default();
    let item_part = number("output_index") * PARTS;
    let part = item_part + number("content_index") + number("summary_index");
    match event {
        "output_item.added" | "output_item.done" => {
            let item = root.get("item");
            let thinks = item.is_some_and(thinks);
            reading.edge(item_part, happens == "done", thinks);
            if let Some(item) = item {
                read_item(item, item_part, &mut reading);
            }
        }
        "content_part.added"
        | "content_part.done"
        | "reasoning_summary_part.added"
        | "reasoning_summary_part.done" => {
            let value = root.get("part");
            reading.edge(part, happens == "done", value.is_some_and(thinks));
            if let Some(value) = value {
                reading.deltas.extend(content(value, part));
                reading.rests_on(0, part, value.get("annotations"), true);
            }
        }
        // Sound goes with its words.
        "output_text.annotation.added"
        | "output_audio.delta"
        | "output_audio.done"
        | "audio.delta"
        | "audio.done" => reading.rests_on(0, part, Some(root), true),
        _ => {
            if let Some(response) = root.get("response") {
                read_response(response, usage, &mut reading);
                repeat(&mut reading.deltas);
            }
            reading.ends = is_last(root);
        }
    }
    for (_, key, kind) in PIECES.iter().filter(|(of, ..)| *of == event) {
        let part = match kind {
            DeltaKind::ToolName | DeltaKind::ToolArguments => item_part,
            _ if event.starts_with("reasoning_text") => {
                item_part + THOUGHTS + number("content_index")
            }
            _ => part,
        };
        let text = root.string(key);
        let piece = text.map(|text| Delta::new(0, part, *kind, text));
        reading.deltas.extend(piece);
    }
    match happens {
        "done" => repeat(&mut reading.deltas),
        // An empty text here only starts a part.
        "added" => reading.deltas.retain(|delta| !delta.text.is_empty()),
        _ => {}
    }
    reading
}

/// Whether an event is the last one, which contains the final response.
pub(super) fn is_last(root: Value<'_>) -> bool {
    matches!(
        root.text("type").as_deref(),
        Some(
            "response.completed"
                | "response.incomplete"
                | "response.failed"
                // Realtime.
                | "response.done"
        )
    )
}

/// Whether an item of a conversation is the model's.
fn is_said(item: Value<'_>) -> bool {
    let is = |key, word| item.text(key).as_deref() == Some(word);
    is("role", "assistant") || is("type", "function_call")
}

/// Whether an item or a part of one is reasoning.
pub(super) fn thinks(value: Value<'_>) -> bool {
    matches!(
        value.text("type").as_deref(),
        Some("reasoning" | "summary_text" | "reasoning_text")
    )
}

/// Marks pieces as repetitions. Ids of calls are dropped, because they never change.
fn repeat(deltas: &mut Vec<Delta<'_>>) {
    deltas.retain(|delta| delta.kind != DeltaKind::ToolId);
    for delta in deltas {
        delta.repeats = true;
    }
}

/// Reads a `response` object, in an event or alone.
fn read_response<'d>(response: Value<'d>, usage: &UsageKeys, reading: &mut Reading<'d>) {
    reading.id = response.text("id");
    reading.model = response.text("model");
    for (number, item) in (0..).zip(response.list("output")) {
        let before = reading.deltas.len();
        read_item(item, number * PARTS, reading);
        // The content of a part of the item is removed with that part.
        for delta in &mut reading.deltas[before..] {
            delta.removed_with.get_or_insert(item.id());
        }
        let logprobs = item.list("content").filter_map(|part| part.get("logprobs"));
        let filled = logprobs.filter(|list| list.items().next().is_some());
        reading.mirrors.extend(filled.map(|list| (0, list.id())));
    }
    let failure = response.path(&["status_details", "error"]);
    let calls = |delta: &Delta<'_>| delta.kind == DeltaKind::ToolName;
    if let Some(status) = response.get("status")
        && failure.is_none()
        && let Some(word) = status.as_str()
        && !matches!(&*word, "in_progress" | "queued")
    {
        let details = ["incomplete_details", "status_details"];
        let details = details.iter().find_map(|key| response.given(key));
        let reason = details.and_then(|details| details.text("reason"));
        let finish = match (&*word, reason.as_deref()) {
            ("incomplete", Some(reason)) => REASONS.read(reason),
            ("completed", _) if reading.deltas.iter().any(calls) => Finish::Tool,
            ("completed", _) if reading.has_refusal(0) => Finish::Refused,
            ("completed", _) => Finish::Done,
            (other, _) => Finish::Foreign(other.to_owned()),
        };
        reading.finish(0, finish, status);
    }
    let counts = response.get("usage");
    reading.usage = counts.and_then(|counts| Usage::read(counts, usage));
    let error = response.given("error");
    reading.error = error.or(failure).map(error_message);
}

/// Reads an item of the output.
fn read_item<'d>(item: Value<'d>, part: u64, reading: &mut Reading<'d>) {
    let before = reading.deltas.len();
    let kind = item.text("type").unwrap_or_default();
    let arguments = match &*kind {
        // Tools that the provider runs are called in the same way.
        "function_call" | "mcp_call" => Some("arguments"),
        "custom_tool_call" => Some("input"),
        _ => None,
    };
    if let Some(arguments) = arguments {
        let fields = ["call_id", "name", arguments].map(|key| item.string(key));
        reading.deltas.extend(call_pieces(0, part, fields));
    }
    let lists = match &*kind {
        "message" => vec![("content", 0)],
        "reasoning" => vec![("summary", 0), ("content", THOUGHTS)],
        _ => Vec::new(),
    };
    for (key, first) in lists {
        for (part, value) in (part + first..).zip(item.list(key)) {
            let delta = content(value, part);
            let delta = delta.map(|delta| delta.inside_list(value, item));
            reading.deltas.extend(delta);
        }
    }
    for (part, value) in (part..).zip(item.list("content")) {
        reading.rests_on(0, part, value.get("annotations"), true);
    }
    let status = item.string("status").map(Value::id);
    for delta in &mut reading.deltas[before..] {
        delta.status = status;
    }
}

/// Reads a part of a message's content or of reasoning.
fn content(value: Value<'_>, part: u64) -> Option<Delta<'_>> {
    let (key, of) = match &*value.text("type")? {
        "output_text" | "text" => ("text", DeltaKind::Text),
        "output_audio" | "audio" => ("transcript", DeltaKind::Text),
        "refusal" => ("refusal", DeltaKind::Refusal),
        "summary_text" | "reasoning_text" => ("text", DeltaKind::Reasoning),
        _ => return None,
    };
    Some(Delta::new(0, part, of, value.string(key)?))
}
