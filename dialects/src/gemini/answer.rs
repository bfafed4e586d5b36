//! What an answer says, and where. An event of a stream has the same shape as a whole answer.

use std::borrow::Cow;

use super::request::{is_thought, items};
use crate::json::{Kind, NodeId, Value};
use crate::model::{
    Delta, DeltaKind, Finish, Finished, Reading, Source, Usage, number_of_whole_call,
};

/// Reads a `GenerateContentResponse`, or an error in its place.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    // Vertex AI wraps errors in a list.
    let root = root.items().next().unwrap_or(root);
    let mut reading = Reading {
        model: root.get("modelVersion").and_then(Value::as_str),
        usage: root.get("usageMetadata").and_then(read_usage),
        error: root
            .get("error")
            .filter(|error| !error.is_null())
            .map(error_message),
        ..Reading::default()
    };
    for (position, candidate) in (0..).zip(items(root.get("candidates"))) {
        read_candidate(candidate, index(candidate, position), &mut reading);
    }
    let feedback = root.get("promptFeedback");
    if let Some(reason) = feedback.and_then(|feedback| feedback.get("blockReason"))
        && reason.kind() == Kind::String
    {
        // A prompt that is blocked has no candidates.
        reading.finishes.push(Finished {
            choice: 0,
            finish: Finish::Refused,
            place: reason.id(),
        });
    }
    reading
}

fn read_candidate<'d>(candidate: Value<'d>, choice: u64, reading: &mut Reading<'d>) {
    let content = candidate.get("content");
    let mut calls = false;
    for part in items(content.and_then(|content| content.get("parts"))) {
        calls |= part.get("functionCall").is_some();
        read_part(part, choice, &mut reading.deltas);
    }
    for repeated in ["logprobsResult", "avgLogprobs"] {
        let there = candidate.get(repeated).filter(|value| !value.is_null());
        let mirror = there.map(|value| (choice, value.id()));
        reading.mirrors.extend(mirror);
    }
    for rests_on in ["groundingMetadata", "citationMetadata"] {
        let there = candidate.get(rests_on).filter(|value| !value.is_null());
        reading.sources.extend(there.map(|value| Source {
            choice,
            part: 0,
            place: value.id(),
            may_be_empty: false,
        }));
    }
    if let Some(reason) = candidate.get("finishReason")
        && let Some(word) = reason.as_str()
        && word != "FINISH_REASON_UNSPECIFIED"
    {
        let finish = match finish(&word) {
            // There is no word of its own for a model that wants tools called.
            Finish::Done if calls => Finish::Tool,
            finish => finish,
        };
        reading.finishes.push(Finished {
            choice,
            finish,
            place: reason.id(),
        });
    }
}

/// What one part holds of the model's words. A part that goes takes its list with it when it was
/// the last: contents without words have no `parts`.
fn read_part<'d>(part: Value<'d>, choice: u64, deltas: &mut Vec<Delta<'d>>) {
    let thought = is_thought(part);
    let call = part.get("functionCall");
    let number = call.map_or(0, number_of_whole_call);
    let delta = |part_number, kind, value: Value<'d>| {
        Delta::new(choice, part_number, kind, value).inside_call(part)
    };
    // Before the words it came with, so that it stays when these are cut short.
    if let Some(signature) = string(part, "thoughtSignature") {
        let number = match (call, thought) {
            (Some(_), _) => number,
            (None, true) => THOUGHT,
            (None, false) => SIGNATURE,
        };
        deltas.push(delta(number, DeltaKind::Signature, signature));
    }
    if let Some(text) = string(part, "text") {
        let mut said = if thought {
            delta(THOUGHT, DeltaKind::Reasoning, text)
        } else {
            delta(0, DeltaKind::Text, text)
        };
        said.signed = thought;
        deltas.push(said);
    }
    if let Some(call) = call {
        if let Some(id) = string(call, "id") {
            deltas.push(delta(number, DeltaKind::ToolId, id));
        }
        if let Some(name) = string(call, "name") {
            deltas.push(delta(number, DeltaKind::ToolName, name));
        }
        if let Some(arguments) = call.get("args").filter(|args| !args.is_null()) {
            deltas.push(delta(number, DeltaKind::ToolArguments, arguments));
        }
    }
}

/// The part that all thinking of a choice belongs to.
const THOUGHT: u64 = 0;

/// The part that a signature belongs to which came with a text, or alone.
const SIGNATURE: u64 = 1;

fn string<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).filter(|value| value.kind() == Kind::String)
}

/// `totalTokenCount` is the sum of prompt, candidates, thoughts and results of built-in tools.
fn read_usage(usage: Value<'_>) -> Option<Usage> {
    let number = |key| usage.get(key).and_then(Value::as_u64);
    let place = |key| -> Option<NodeId> {
        let value = usage.get(key)?;
        (value.kind() == Kind::Number).then(|| value.id())
    };
    let thoughts = number("thoughtsTokenCount");
    let written = number("candidatesTokenCount");
    let input = number("promptTokenCount").map(|prompt| {
        let tool_use = number("toolUsePromptTokenCount").unwrap_or_default();
        prompt.saturating_add(tool_use)
    });
    let output = written.or(thoughts).map(|_| {
        let written = written.unwrap_or_default();
        written.saturating_add(thoughts.unwrap_or_default())
    });
    if input.is_none() && output.is_none() {
        return None;
    }
    Some(Usage {
        input,
        output,
        hidden: thoughts.unwrap_or_default(),
        output_place: place("candidatesTokenCount"),
        apart: thoughts.unwrap_or_default(),
        total_place: place("totalTokenCount"),
    })
}

/// The message of an error object, or the error itself where it is something else.
fn error_message(error: Value<'_>) -> Cow<'_, str> {
    let message = error.get("message").and_then(Value::as_str);
    message
        .or_else(|| error.as_str())
        .unwrap_or(Cow::Borrowed(error.raw()))
}

/// The neutral word for a `finishReason`.
fn finish(word: &str) -> Finish {
    match word {
        "STOP" => Finish::Done,
        "MAX_TOKENS" => Finish::Length,
        "SAFETY"
        | "PROHIBITED_CONTENT"
        | "BLOCKLIST"
        | "SPII"
        | "RECITATION"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Finish::Filtered,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => Finish::BadTool,
        other => Finish::Foreign(other.to_owned()),
    }
}

/// Which choice an item of the list is.
pub(super) fn index(candidate: Value<'_>, position: u64) -> u64 {
    candidate
        .get("index")
        .and_then(Value::as_u64)
        .unwrap_or(position)
}
