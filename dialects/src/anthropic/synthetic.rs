//! Synthetic answers and events, and edits of answers.

use serde_json::{Value as Json, json};

use super::answer::{ANTHROPIC, thinks};
use crate::answer::{Part, Transcript};
use crate::dialect::put_word;
use crate::json::{Edits, JsonKind, NodeId, Value};
use crate::model::{DeltaKind, Finish, Finished, ResultSaying, Saying};
use crate::stream::SyntheticEvent;

/// An event named after its `type`.
fn event(data: &Json) -> SyntheticEvent {
    let name = data["type"].as_str().unwrap_or_default();
    SyntheticEvent::event(name.to_owned(), data.to_string())
}

/// The `stop_details` of a refusal without a policy.
fn refusal() -> Json {
    json!({ "type": "refusal", "category": null, "explanation": null })
}

/// Replaces the content of a `tool_result` block.
pub(super) fn say_result(edits: &mut Edits<'_>, block: Value<'_>, saying: ResultSaying<'_>) {
    let content = block.get("content");
    let Some(place) = content.or_else(|| block.members().last()).map(Value::id) else {
        return;
    };
    edits.set(content, place, "content", json!(saying.text()));
    if let ResultSaying::Failure(_) = saying {
        edits.set(block.get("is_error"), place, "is_error", "true");
    }
}

/// Writes a stop reason at a place that was read, with the fields that depend on it.
pub(super) fn put_finish(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    at: &Finished,
    finish: Option<&Finish>,
) {
    put(edits, root.get("delta").unwrap_or(root), at.place, finish);
}

/// Writes a stop reason at `place`, a member of `said`.
fn put(edits: &mut Edits<'_>, said: Value<'_>, place: NodeId, finish: Option<&Finish>) {
    put_word(edits, &ANTHROPIC, place, finish);
    if let Some(sequence) = said.get("stop_sequence") {
        edits.replace(sequence.id(), "null");
    }
    let refuses = finish.is_some_and(|it| ANTHROPIC.finish_words.write(it) == "refusal");
    match said.get("stop_details") {
        // The provider's own details of a refusal are kept.
        Some(there) if refuses && !there.is_null() => {}
        there if refuses => edits.set(there, place, "stop_details", refusal()),
        Some(there) => edits.replace(there.id(), "null"),
        None => {}
    }
}

/// The block of an event; the end of a message refers to the first one.
fn index(root: Value<'_>) -> u64 {
    root.number("index").unwrap_or_default()
}

/// Replaces the content of a whole message; its reasoning stays.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let content = root.get("content");
    let Some(content) = content.filter(|content| content.kind() == JsonKind::Array) else {
        return false;
    };
    let thoughts = content.items().take_while(|block| thinks(*block));
    let mut blocks: Vec<Json> = thoughts.map(Value::to_json).collect();
    // Text blocks must not be empty.
    if !saying.text().is_empty() {
        blocks.push(json!({ "type": "text", "text": saying.text() }));
    }
    edits.replace(content.id(), Json::from(blocks));
    if let Some(reason) = root.get("stop_reason") {
        put(edits, root, reason.id(), Some(finish));
    }
    true
}

/// The events with this text, to replace the event with the data `root`. A refusal has no field: it is text with a
/// stop reason.
pub(super) fn say_events(root: Value<'_>, saying: Saying<'_>) -> Vec<SyntheticEvent> {
    let kind = root.text("type");
    let can_begin = matches!(
        kind.as_deref(),
        Some("content_block_start" | "content_block_delta" | "message_delta")
    );
    // Text blocks must not be empty.
    if !can_begin || saying.text().is_empty() {
        return Vec::new();
    }
    let index = index(root);
    vec![
        event(&json!({
            "type": "content_block_start",
            "index": index,
            "content_block": { "type": "text", "text": "" },
        })),
        event(&json!({
            "type": "content_block_delta",
            "index": index,
            "delta": { "type": "text_delta", "text": saying.text() },
        })),
        event(&json!({ "type": "content_block_stop", "index": index })),
    ]
}

/// The `message` with the content of a stream of events.
pub(super) fn whole(transcript: &Transcript<'_>) -> Option<String> {
    let mut answer = transcript.first.root().get("message")?.to_json();
    let members = answer.as_object_mut()?;
    let blocks: Option<Vec<Json>> = transcript.parts_of(0).map(block).collect();
    members.insert("content".into(), blocks?.into());
    // The last event has the stop reason and the counts.
    let last = transcript.last.root();
    if last.text("type").as_deref() == Some("message_delta") {
        for member in last.get("delta").into_iter().flat_map(Value::members) {
            members.insert(member.key()?.into_owned(), member.to_json());
        }
    }
    if let Some(usage) = members.get_mut("usage").and_then(Json::as_object_mut) {
        for member in last.get("usage").into_iter().flat_map(Value::members) {
            usage.insert(member.key()?.into_owned(), member.to_json());
        }
    }
    let reason = members.get("stop_reason").and_then(Json::as_str);
    let read = reason.map(|word| ANTHROPIC.finish_words.read(word));
    let finish = transcript.finish_of(0);
    if read.as_ref() != finish {
        let word = finish.map(|finish| ANTHROPIC.finish_words.write(finish));
        members.insert("stop_reason".into(), word.into());
    }
    Some(answer.to_string())
}

/// The content block for a part.
fn block(part: &Part) -> Option<Json> {
    let (text, signature) = (&part.text, part.signature.as_deref());
    Some(match &part.call {
        Some((id, name)) => {
            json!({ "type": "tool_use", "id": id, "name": name, "input": part.arguments()? })
        }
        None if signature.is_some() || part.kind == DeltaKind::Reasoning => {
            let signature = signature.unwrap_or_default();
            json!({ "type": "thinking", "thinking": text, "signature": signature })
        }
        None => json!({ "type": "text", "text": text }),
    })
}
