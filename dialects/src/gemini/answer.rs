//! Reads an answer, with the places of its parts. An event of a stream has the same shape as a whole answer.

use crate::dialect::{Provider, Quirk};
use crate::errors;
use crate::json::Value;
use crate::model::{
    BadCalls, Delta, DeltaKind, Finish, FinishWords, Reading, Usage, UsageKeys, call_pieces,
    error_message, number_of_whole_call,
};

pub(crate) static GEMINI: Provider = Provider {
    dialect: "gemini",
    endpoint: "gemini",
    quirks: &[Quirk::ToolCallsEndAsDone, Quirk::SaysAtTheEnd],
    event_number: None,
    end_mark: None,
    finish_words: FinishWords(&[
        ("STOP", &[Finish::Done, Finish::Tool, Finish::Refused]),
        ("MAX_TOKENS", &[Finish::Length, Finish::Context]),
        ("SAFETY", &[Finish::Filtered]),
        ("PROHIBITED_CONTENT", &[Finish::Filtered]),
        ("BLOCKLIST", &[Finish::Filtered]),
        ("SPII", &[Finish::Filtered]),
        ("RECITATION", &[Finish::Filtered]),
        ("MODEL_ARMOR", &[Finish::Filtered]),
        ("IMAGE_SAFETY", &[Finish::Filtered]),
        ("IMAGE_PROHIBITED_CONTENT", &[Finish::Filtered]),
        ("IMAGE_RECITATION", &[Finish::Filtered]),
        ("MALFORMED_FUNCTION_CALL", &[Finish::BadTool]),
        ("UNEXPECTED_TOOL_CALL", &[Finish::BadTool]),
    ]),
    usage: UsageKeys {
        input: &["promptTokenCount", "toolUsePromptTokenCount"],
        output: "candidatesTokenCount",
        hidden: &["thoughtsTokenCount"],
        total: "totalTokenCount",
    },
    errors: &errors::GEMINI,
};

/// The part for all reasoning of a choice.
const THOUGHT: u64 = 0;

/// The part for signatures that belong to a text, or to nothing.
const SIGNATURE: u64 = 1;

/// Reads a `GenerateContentResponse`, or an error.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    // Vertex AI wraps errors in a list.
    let root = root.items().next().unwrap_or(root);
    let mut reading = Reading {
        model: root.text("modelVersion"),
        usage: root
            .get("usageMetadata")
            .and_then(|counts| read_usage(counts, &GEMINI.usage)),
        error: root.given("error").map(error_message),
        bad_calls: BadCalls::Dropped,
        ..Reading::default()
    };
    for (choice, candidate) in candidates(root) {
        read_candidate(candidate, choice, &mut reading);
    }
    let feedback = root.get("promptFeedback");
    if let Some(reason) = feedback.and_then(|feedback| feedback.string("blockReason")) {
        // An answer to a blocked prompt has no candidates.
        reading.finish(0, Finish::Refused, reason);
    }
    reading
}

fn read_candidate<'d>(candidate: Value<'d>, choice: u64, reading: &mut Reading<'d>) {
    let mut calls = false;
    if let Some(parts) = candidate.path(&["content", "parts"]) {
        for part in parts.items() {
            calls |= part.get("functionCall").is_some();
            read_part(part, parts, choice, &mut reading.deltas);
        }
    }
    for repeated in ["logprobsResult", "avgLogprobs"] {
        let mirror = candidate.given(repeated).map(|value| (choice, value.id()));
        reading.mirrors.extend(mirror);
    }
    for rests_on in ["groundingMetadata", "citationMetadata"] {
        reading.rests_on(choice, 0, candidate.get(rests_on), false);
    }
    if let Some(reason) = candidate.get("finishReason")
        && let Some(word) = reason.as_str()
        && word != "FINISH_REASON_UNSPECIFIED"
    {
        let finish = match GEMINI.finish_words.read(&word) {
            // Gemini has no finish reason for tool calls.
            Finish::Done if calls => Finish::Tool,
            finish => finish,
        };
        reading.finish(choice, finish, reason);
    }
}

/// Reads one part. The last part is removed together with its list, because contents without text have no `parts`.
pub(crate) fn read_part<'d>(
    part: Value<'d>,
    parts: Value<'d>,
    choice: u64,
    deltas: &mut Vec<Delta<'d>>,
) {
    let thought = part.flag("thought");
    let call = part.get("functionCall");
    let number = call.map_or(0, number_of_whole_call);
    let mut push = |number, kind, value: Option<Value<'d>>| {
        let delta = value.map(|value| Delta::new(choice, number, kind, value));
        deltas.extend(delta.map(|delta| delta.inside_list(part, parts)));
    };
    // A signature precedes the text that it belongs to, so that it stays when the text is shortened.
    let of_part = match (call, thought) {
        (Some(_), _) => number,
        (None, true) => THOUGHT,
        (None, false) => SIGNATURE,
    };
    let signature = part.string("thoughtSignature");
    push(of_part, DeltaKind::Signature, signature);
    if thought {
        push(THOUGHT, DeltaKind::Reasoning, part.string("text"));
    } else {
        push(0, DeltaKind::Text, part.string("text"));
    }
    if let Some(call) = call {
        let fields = [call.string("id"), call.string("name"), call.given("args")];
        let pieces = call_pieces(choice, number, fields);
        deltas.extend(pieces.map(|piece| piece.inside_list(part, parts)));
    }
}

/// Reasoning tokens are counted separately from the candidates; `totalTokenCount` includes both.
pub(crate) fn read_usage(counts: Value<'_>, keys: &UsageKeys) -> Option<Usage> {
    let usage = Usage::read(counts, keys)?;
    let thoughts = counts.number("thoughtsTokenCount");
    let output = match (usage.output, thoughts) {
        (None, None) => None,
        (written, thoughts) => Some(
            written
                .unwrap_or_default()
                .saturating_add(thoughts.unwrap_or_default()),
        ),
    };
    (usage.input.is_some() || output.is_some()).then_some(Usage {
        output,
        apart: usage.hidden,
        ..usage
    })
}

/// The candidates of an answer with their indexes.
pub(super) fn candidates(root: Value<'_>) -> impl Iterator<Item = (u64, Value<'_>)> {
    let candidates = (0..).zip(root.list("candidates"));
    candidates.map(|(position, item)| (item.number("index").unwrap_or(position), item))
}
