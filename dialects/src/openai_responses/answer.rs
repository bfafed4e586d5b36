//! What an answer says, and where.

use std::borrow::Cow;

use super::request::kind;
use crate::json::{Kind, NodeId, Value};
use crate::model::{Delta, DeltaKind, Edge, Finish, Finished, Reading, Source, Usage};

/// Parts of one item that are told apart. A part's number is its item's, times this, and its own.
const PARTS: u64 = 1 << 16;

/// Where the numbers of a reasoning item's texts begin, behind those of its summaries.
const THOUGHTS: u64 = PARTS / 2;

/// Reads a whole `response`, or the error in its place.
pub(super) fn read(response: Value<'_>) -> Reading<'_> {
    let mut reading = Reading::default();
    read_response(response, &mut reading, false);
    reading.error = reading.error.or_else(|| error(response.get("error")?));
    reading
}

/// Reads one event's data.
pub(super) fn read_event(root: Value<'_>) -> Reading<'_> {
    let mut reading = Reading::default();
    let Some(kind) = kind(root) else {
        reading.error = root.get("error").and_then(error);
        return reading;
    };
    let number = |key| root.get(key).and_then(Value::as_u64).unwrap_or_default();
    let item = number("output_index") * PARTS;
    let part = item + number("content_index") + number("summary_index");
    let thought = item + THOUGHTS + number("content_index");
    let mut piece = |key, kind, part| {
        let deltas = &mut reading.deltas;
        deltas.extend(string(root, key).map(|text| Delta::new(0, part, kind, text)));
    };
    // A piece, or all of them once more.
    match &*kind {
        "response.output_text.delta" => piece("delta", DeltaKind::Text, part),
        "response.output_text.done" => piece("text", DeltaKind::Text, part),
        "response.refusal.delta" => piece("delta", DeltaKind::Refusal, part),
        "response.refusal.done" => piece("refusal", DeltaKind::Refusal, part),
        "response.reasoning_summary_text.delta" => piece("delta", DeltaKind::Reasoning, part),
        "response.reasoning_summary_text.done" => piece("text", DeltaKind::Reasoning, part),
        "response.reasoning_text.delta" => piece("delta", DeltaKind::Reasoning, thought),
        "response.reasoning_text.done" => piece("text", DeltaKind::Reasoning, thought),
        "response.function_call_arguments.delta"
        | "response.custom_tool_call_input.delta"
        | "response.mcp_call_arguments.delta" => piece("delta", DeltaKind::ToolArguments, item),
        "response.function_call_arguments.done" | "response.mcp_call_arguments.done" => {
            piece("name", DeltaKind::ToolName, item);
            piece("arguments", DeltaKind::ToolArguments, item);
        }
        "response.custom_tool_call_input.done" => piece("input", DeltaKind::ToolArguments, item),
        "response.output_item.added" | "response.output_item.done" => {
            let thinks = root.get("item").is_some_and(thinks);
            reading.edges.push(edge(item, &kind, thinks));
            if let Some(value) = root.get("item") {
                read_item(value, item, &mut reading.deltas);
                reading.sources.extend(annotations(value, item));
            }
        }
        "response.content_part.added"
        | "response.content_part.done"
        | "response.reasoning_summary_part.added"
        | "response.reasoning_summary_part.done" => {
            let value = root.get("part");
            let thinks = value.is_some_and(thinks);
            reading.edges.push(edge(part, &kind, thinks));
            reading
                .deltas
                .extend(value.and_then(|value| content(value, part)));
            let annotated = value.and_then(|value| annotated(value, part));
            reading.sources.extend(annotated);
        }
        "response.output_text.annotation.added" => reading.sources.push(source(root.id(), part)),
        "error" => reading.error = error(root.get("error").unwrap_or(root)),
        _ => {
            if let Some(response) = root.get("response") {
                read_response(response, &mut reading, true);
            }
            reading.ends = is_last(root);
        }
    }
    match last_word(&kind) {
        "done" => repeat(&mut reading.deltas),
        // What is empty here is a place for what is to come.
        "added" => reading.deltas.retain(|delta| !delta.text.is_empty()),
        _ => {}
    }
    reading
}

/// Whether an event is the last: it holds the response as it ended.
pub(super) fn is_last(root: Value<'_>) -> bool {
    matches!(
        kind(root).as_deref(),
        Some("response.completed" | "response.incomplete" | "response.failed")
    )
}

/// What happens to what an event is about.
fn last_word(kind: &str) -> &str {
    kind.rsplit('.').next().unwrap_or_default()
}

fn edge(part: u64, kind: &str, thinks: bool) -> Edge {
    Edge {
        choice: 0,
        part,
        closes: last_word(kind) == "done",
        thinks,
    }
}

/// Whether an item, or a part of one, is reasoning.
pub(super) fn thinks(value: Value<'_>) -> bool {
    matches!(
        kind(value).as_deref(),
        Some("reasoning" | "summary_text" | "reasoning_text")
    )
}

/// Marks pieces as repetitions. A call's id is no piece: nobody changes it.
fn repeat(deltas: &mut Vec<Delta<'_>>) {
    deltas.retain(|delta| delta.kind != DeltaKind::ToolId);
    for delta in deltas {
        delta.repeats = true;
    }
}

/// Reads a `response` object, in an event or alone.
fn read_response<'d>(response: Value<'d>, reading: &mut Reading<'d>, in_event: bool) {
    reading.model = response.get("model").and_then(Value::as_str);
    let output = response.get("output").into_iter().flat_map(Value::items);
    let mut calls = false;
    for (number, item) in (0..).zip(output) {
        let mut deltas = Vec::new();
        read_item(item, number * PARTS, &mut deltas);
        reading.sources.extend(annotations(item, number * PARTS));
        calls |= deltas.iter().any(|delta| delta.kind == DeltaKind::ToolName);
        // What stands in a part of the item goes with that.
        let inside = deltas.into_iter().map(|delta| match delta.removed_with {
            Some(_) => delta,
            None => delta.inside(item),
        });
        reading.deltas.extend(inside);
        let logprobs = item.get("content").into_iter().flat_map(Value::items);
        let logprobs = logprobs.filter_map(|part| part.get("logprobs"));
        let filled = logprobs.filter(|list| list.items().next().is_some());
        reading.mirrors.extend(filled.map(|list| (0, list.id())));
    }
    let refused = reading
        .deltas
        .iter()
        .any(|delta| delta.kind == DeltaKind::Refusal && !delta.text.is_empty());
    if in_event {
        repeat(&mut reading.deltas);
    }
    if let Some(status) = response.get("status")
        && let Some(word) = status.as_str()
        && let Some(finish) = finish(&word, response)
    {
        let finish = match finish {
            Finish::Done if calls => Finish::Tool,
            Finish::Done if refused => Finish::Refused,
            finish => finish,
        };
        reading.finishes.push(Finished {
            choice: 0,
            finish,
            place: status.id(),
        });
    }
    reading.usage = response.get("usage").and_then(read_usage);
    reading.error = response.get("error").and_then(error);
}

/// The neutral word for a status; `None`: it has not ended.
fn finish(status: &str, response: Value<'_>) -> Option<Finish> {
    let details = response.get("incomplete_details");
    let reason = details.and_then(|details| details.get("reason")?.as_str());
    Some(match (status, reason.as_deref()) {
        ("in_progress" | "queued", _) => return None,
        ("completed", _) => Finish::Done,
        ("incomplete", Some("max_output_tokens")) => Finish::Length,
        ("incomplete", Some("content_filter")) => Finish::Filtered,
        ("incomplete", Some(other)) | (other, _) => Finish::Foreign(other.to_owned()),
    })
}

/// Reads an item of the output.
fn read_item<'d>(item: Value<'d>, part: u64, deltas: &mut Vec<Delta<'d>>) {
    let list = |key, first: u64| {
        let parts = item.get(key).into_iter().flat_map(Value::items);
        (part + first..).zip(parts)
    };
    let mut fields = |arguments: &str| {
        for (key, kind) in [
            ("call_id", DeltaKind::ToolId),
            ("name", DeltaKind::ToolName),
            (arguments, DeltaKind::ToolArguments),
        ] {
            deltas.extend(string(item, key).map(|value| Delta::new(0, part, kind, value)));
        }
    };
    match kind(item).as_deref() {
        // Tools that the provider runs itself are called the same way.
        Some("function_call" | "mcp_call") => fields("arguments"),
        Some("custom_tool_call") => fields("input"),
        Some("message") => {
            let parts = list("content", 0);
            let said = parts.filter_map(|(part, value)| Some((content(value, part)?, value)));
            deltas.extend(said.map(|(delta, value)| delta.inside_part(value, item)));
        }
        Some("reasoning") => {
            let parts = list("summary", 0).chain(list("content", THOUGHTS));
            let said = parts.filter_map(|(part, value)| Some((content(value, part)?, value)));
            deltas.extend(said.map(|(delta, value)| delta.inside_part(value, item)));
        }
        _ => {}
    }
}

/// The annotations in the parts of an item.
fn annotations(item: Value<'_>, part: u64) -> impl Iterator<Item = Source> {
    let parts = item.get("content").into_iter().flat_map(Value::items);
    (part..)
        .zip(parts)
        .filter_map(|(part, value)| annotated(value, part))
}

/// The annotations of a part, if it has any.
fn annotated(value: Value<'_>, part: u64) -> Option<Source> {
    let list = value.get("annotations")?;
    list.items().next()?;
    Some(source(list.id(), part))
}

fn source(place: NodeId, part: u64) -> Source {
    Source {
        choice: 0,
        part,
        place,
        may_be_empty: true,
    }
}

/// Reads a part of a message's content or of reasoning.
fn content(value: Value<'_>, part: u64) -> Option<Delta<'_>> {
    let (key, of) = match kind(value)?.as_ref() {
        "output_text" => ("text", DeltaKind::Text),
        "refusal" => ("refusal", DeltaKind::Refusal),
        "summary_text" | "reasoning_text" => ("text", DeltaKind::Reasoning),
        _ => return None,
    };
    string(value, key).map(|text| Delta::new(0, part, of, text))
}

fn string<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).filter(|value| value.kind() == Kind::String)
}

fn read_usage(usage: Value<'_>) -> Option<Usage> {
    if usage.kind() != Kind::Object {
        return None;
    }
    let number = |key| usage.get(key).and_then(Value::as_u64);
    let place = |key| {
        let value = usage.get(key);
        value
            .filter(|value| value.kind() == Kind::Number)
            .map(Value::id)
    };
    let details = usage.get("output_tokens_details");
    let hidden = details.and_then(|details| details.get("reasoning_tokens")?.as_u64());
    Some(Usage {
        input: number("input_tokens"),
        output: number("output_tokens"),
        hidden: hidden.unwrap_or_default(),
        output_place: place("output_tokens"),
        apart: 0,
        total_place: place("total_tokens"),
    })
}

/// The message of an error object, or the error itself where it is something else.
fn error(error: Value<'_>) -> Option<Cow<'_, str>> {
    if error.is_null() {
        return None;
    }
    let message = error.get("message").and_then(Value::as_str);
    Some(
        message
            .or_else(|| error.as_str())
            .unwrap_or(Cow::Borrowed(error.raw())),
    )
}
