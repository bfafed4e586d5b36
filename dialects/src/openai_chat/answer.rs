//! Reads an answer, with the places of its parts.

use super::providers::OPENAI;
use crate::json::Value;
use crate::model::{Delta, DeltaKind, Finish, Reading, Usage, call_pieces, error_message};

/// Text fields of a message or delta in the order in which models generate them: reasoning first. Compatible
/// servers use different reasoning fields, which are distinguished by part.
const TEXTS: [(&str, u64, DeltaKind); 4] = [
    ("reasoning_content", 0, DeltaKind::Reasoning),
    ("reasoning", REASONING, DeltaKind::Reasoning),
    ("content", 0, DeltaKind::Text),
    ("refusal", 0, DeltaKind::Refusal),
];

/// The part of `reasoning` and `reasoning_details`. `OpenRouter` repeats the text in the latter, with signatures.
pub(super) const REASONING: u64 = 1;

/// Reads a `chat.completion` or `chat.completion.chunk`.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    let mut reading = Reading {
        model: root.text("model"),
        ..Reading::default()
    };
    for (choice, item) in choices(root) {
        if let Some(said) = item.get("delta").or_else(|| item.get("message")) {
            reading.introduces |= said.get("role").is_some();
            read_said(said, choice, &mut reading.deltas);
            reading.rests_on(choice, 0, said.get("annotations"), true);
        }
        let logprobs = item.given("logprobs");
        reading
            .mirrors
            .extend(logprobs.map(|logprobs| (choice, logprobs.id())));
        if let Some(reason) = item.get("finish_reason")
            && let Some(word) = reason.as_str()
        {
            let finish = match OPENAI.finish_words.read(&word) {
                Finish::Done if reading.has_refusal(choice) => Finish::Refused,
                finish => finish,
            };
            reading.finish(choice, finish, reason);
        }
    }
    let groqs = |key| root.path(&["x_groq", key]);
    let usage = root.get("usage").or_else(|| groqs("usage"));
    reading.usage = usage.and_then(|usage| Usage::read(usage, &OPENAI.usage));
    let error = root.given("error").or_else(|| groqs("error"));
    let error = error.filter(|error| !error.is_null());
    // Errors of Mistral and vLLM have no envelope.
    let bare = root.text("object").as_deref() == Some("error");
    reading.error = error
        .map(error_message)
        .or_else(|| root.text("message").filter(|_| bare));
    reading
}

/// Reads the text in a choice's message or delta.
fn read_said<'d>(said: Value<'d>, choice: u64, deltas: &mut Vec<Delta<'d>>) {
    let details = said.get("reasoning_details");
    let details = details.filter(|details| details.items().next().is_some());
    deltas.extend(details.map(|it| Delta::new(choice, REASONING, DeltaKind::Signature, it)));
    for (field, part, kind) in TEXTS {
        let text = said.string(field);
        deltas.extend(text.map(|text| Delta::new(choice, part, kind, text)));
    }
    // Mistral's reasoning models send both in parts of one content.
    for part in said.list("content") {
        let thoughts = part.list("thinking").filter_map(|it| it.string("text"));
        let thoughts = thoughts.map(|text| Delta::new(choice, 0, DeltaKind::Reasoning, text));
        deltas.extend(thoughts.map(|thought| thought.inside(part)));
        let text = part.string("text");
        deltas.extend(text.map(|text| Delta::new(choice, 0, DeltaKind::Text, text)));
    }
    let calls = said.get("tool_calls");
    for (position, call) in (0..).zip(said.list("tool_calls")) {
        let part = call.number("index").unwrap_or(position);
        let (function, custom) = (call.get("function"), call.get("custom"));
        let name = function.or(custom).and_then(|it| it.string("name"));
        let arguments = function.and_then(|it| it.string("arguments"));
        let arguments = arguments.or_else(|| custom?.string("input"));
        let pieces = call_pieces(choice, part, [call.string("id"), name, arguments]);
        deltas.extend(pieces.map(|piece| piece.inside_list(call, calls.unwrap_or(call))));
    }
    // The older form of a single tool call has the function in place of the call.
    if let Some(function) = said.get("function_call") {
        let fields = [None, function.string("name"), function.string("arguments")];
        deltas.extend(call_pieces(choice, 0, fields).map(|piece| piece.inside(function)));
    }
}

/// The choices of an answer with their indexes.
pub(super) fn choices(root: Value<'_>) -> impl Iterator<Item = (u64, Value<'_>)> {
    let choices = (0..).zip(root.list("choices"));
    choices.map(|(position, item)| (item.number("index").unwrap_or(position), item))
}
