//! Synthetic answers and events, and edits of answers.

use std::slice;

use serde_json::{Value as Json, json};

use super::answer::{REASONS, RESPONSES, thinks};
use crate::json::{Edits, JsonKind, Value};
use crate::model::{Finish, Saying};
use crate::stream::SyntheticEvent;

/// The `response` that a document is or that an event contains.
fn response(root: Value<'_>) -> Value<'_> {
    root.get("response").unwrap_or(root)
}

/// Sets the end of a response; returns the new name of its event.
pub(super) fn put_finish(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    finish: Option<&Finish>,
) -> Option<&'static str> {
    let word = finish.map_or("in_progress", |it| RESPONSES.finish_words.write(it));
    let name = match word {
        "in_progress" => "response.in_progress",
        "completed" => "response.completed",
        "failed" => "response.failed",
        _ => "response.incomplete",
    };
    let response = response(root);
    if let Some(status) = response.get("status") {
        edits.replace(status.id(), json!(word));
        let reason = finish.filter(|_| word == "incomplete");
        let details = reason.map(|finish| json!({ "reason": REASONS.write(finish) }));
        let there = response.get("incomplete_details");
        if there.is_some() || details.is_some() {
            let details = details.unwrap_or_default();
            edits.set(there, status.id(), "incomplete_details", details);
        }
    }
    root.get("response")?;
    if let Some(there) = root.get("type") {
        edits.replace(there.id(), json!(name));
    }
    Some(name)
}

/// Replaces the content of a whole response; its reasoning stays.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let response = response(root);
    let output = response.get("output");
    let Some(output) = output.filter(|output| output.kind() == JsonKind::Array) else {
        return false;
    };
    let thoughts = output.items().take_while(|item| thinks(*item));
    let mut said: Vec<Json> = thoughts.map(Value::to_json).collect();
    // Messages must not be empty.
    if !saying.text().is_empty() {
        let first = output.items().nth(said.len());
        let id = first.and_then(|item| item.text("id"));
        let id = message_id(id.or_else(|| response.text("id")).as_deref());
        said.push(message(&id, "completed", &[part(saying, saying.text())]));
    }
    edits.replace(output.id(), Json::from(said));
    put_finish(edits, root, Some(finish));
    true
}

/// The events with this text as a complete message, to replace the event with the data `root`.
pub(super) fn say_events(root: Value<'_>, saying: Saying<'_>) -> Vec<SyntheticEvent> {
    let text = saying.text();
    let kind = root.text("type").unwrap_or_default();
    if text.is_empty() || !kind.starts_with("response.") {
        return Vec::new();
    }
    let id = ["item", "response"].map(|key| root.get(key)?.text("id"));
    let id = id.into_iter().flatten().next();
    let id = message_id(id.or_else(|| root.text("item_id")).as_deref());
    let index = root.number("output_index").unwrap_or_default();
    let (empty, full) = (part(saying, ""), part(saying, text));
    let (delta, done) = match saying {
        Saying::Text(_) => (
            json!({ "type": "response.output_text.delta", "delta": text, "logprobs": [] }),
            json!({ "type": "response.output_text.done", "text": text, "logprobs": [] }),
        ),
        Saying::Refusal(_) => (
            json!({ "type": "response.refusal.delta", "delta": text }),
            json!({ "type": "response.refusal.done", "refusal": text }),
        ),
    };
    let of_item = [
        (
            "response.output_item.added",
            message(&id, "in_progress", &[]),
        ),
        (
            "response.output_item.done",
            message(&id, "completed", slice::from_ref(&full)),
        ),
    ];
    let [added, ended] =
        of_item.map(|(kind, item)| json!({ "type": kind, "output_index": index, "item": item }));
    let of_part = [
        json!({ "type": "response.content_part.added", "part": empty }),
        delta,
        done,
        json!({ "type": "response.content_part.done", "part": full }),
    ];
    let of_part = of_part.map(|mut event| {
        event["item_id"] = id.as_str().into();
        event["output_index"] = index.into();
        event["content_index"] = 0.into();
        event
    });
    let events = [added].into_iter().chain(of_part).chain([ended]);
    let numbered = (number(root)..).zip(events);
    let made = numbered.map(|(number, mut event)| {
        event["sequence_number"] = number.into();
        let name = event["type"].as_str().unwrap_or_default();
        SyntheticEvent::event(name.to_owned(), event.to_string())
    });
    made.collect()
}

/// An event's number.
pub(super) fn number(root: Value<'_>) -> u64 {
    root.number("sequence_number").unwrap_or_default()
}

/// A message's id, derived from that of the replaced item or response.
fn message_id(id: Option<&str>) -> String {
    let id = id.unwrap_or("msg_0");
    let digits = id.split_once('_').map_or(id, |(_, digits)| digits);
    format!("msg_{digits}")
}

fn message(id: &str, status: &str, content: &[Json]) -> Json {
    json!({
        "id": id,
        "type": "message",
        "status": status,
        "content": content,
        "role": "assistant",
    })
}

fn part(saying: Saying<'_>, text: &str) -> Json {
    match saying {
        Saying::Text(_) => {
            json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": text })
        }
        Saying::Refusal(_) => json!({ "type": "refusal", "refusal": text }),
    }
}
