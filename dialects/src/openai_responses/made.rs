//! Answers and events that are made up, or say something else.

use std::borrow::Cow;

use super::answer::thinks;
use super::request::kind;
use crate::json::{Edits, Kind, Value, quote};
use crate::model::{Finish, Saying};
use crate::stream::Made;

/// Status and reason for a neutral word, and the name of the event that ends with it.
fn words(finish: Option<&Finish>) -> (Cow<'_, str>, Option<&'static str>, &'static str) {
    let Some(finish) = finish else {
        return ("in_progress".into(), None, "response.in_progress");
    };
    let (status, reason) = match finish {
        Finish::Done | Finish::Tool | Finish::Refused | Finish::BadTool => ("completed", None),
        Finish::Length | Finish::Context => ("incomplete", Some("max_output_tokens")),
        Finish::Filtered => ("incomplete", Some("content_filter")),
        Finish::Foreign(status) => (status.as_str(), None),
    };
    let name = match status {
        "completed" => "response.completed",
        "failed" => "response.failed",
        _ => "response.incomplete",
    };
    (status.into(), reason, name)
}

/// The `response` that a document is, or that an event holds.
fn response(root: Value<'_>) -> Value<'_> {
    root.get("response").unwrap_or(root)
}

/// Makes a response say that it ends so; returns the new name of an event that holds it.
pub(super) fn put_finish(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    finish: Option<&Finish>,
) -> Option<&'static str> {
    let response = response(root);
    let (status, reason, name) = words(finish);
    if let Some(there) = response.get("status") {
        edits.replace(there.id(), quote(&status));
    }
    let details = reason.map_or_else(null, |reason| format!("{{\"reason\":{}}}", quote(reason)));
    match (response.get("incomplete_details"), response.get("status")) {
        (Some(there), _) => edits.replace(there.id(), details),
        (None, Some(status)) if reason.is_some() => {
            edits.insert_after(status.id(), "incomplete_details", &details);
        }
        (None, _) => {}
    }
    root.get("response")?;
    if let Some(there) = root.get("type") {
        edits.replace(there.id(), quote(name));
    }
    Some(name)
}

/// Makes the item that holds `place`, or that an event closes, say that it was cut short.
pub(super) fn put_cut(edits: &mut Edits<'_>, root: Value<'_>, place: Value<'_>) {
    let output = response(root).get("output");
    let items = output.into_iter().flat_map(Value::items);
    let mut items = items.chain(root.get("item"));
    let place = place.span();
    let holds = |item: &Value<'_>| item.span().start <= place.start && place.end <= item.span().end;
    let status = items.find(holds).and_then(|item| item.get("status"));
    if let Some(status) = status.filter(|status| status.kind() == Kind::String) {
        edits.replace(status.id(), "\"incomplete\"");
    }
}

/// Makes a whole response say this and nothing else, behind its reasoning.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let response = response(root);
    let output = response.get("output");
    let Some(output) = output.filter(|output| output.kind() == Kind::Array) else {
        return false;
    };
    let thoughts = output.items().take_while(|item| thinks(*item));
    let mut said: Vec<&str> = thoughts.map(Value::raw).collect();
    // Nobody says nothing in a message.
    let message = (!text(saying).is_empty()).then(|| {
        let first = output.items().nth(said.len());
        let id = first.and_then(|item| item.get("id")?.as_str());
        let id = message_id(id.or_else(|| response.get("id")?.as_str()).as_deref());
        let content = part(saying, text(saying));
        message(&id, "completed", &content)
    });
    said.extend(message.as_deref());
    edits.replace(output.id(), format!("[{}]", said.join(",")));
    put_finish(edits, root, Some(finish));
    true
}

/// The events by which a response says this from `root` on, the data of an event: a message, from
/// its beginning to its end.
pub(super) fn say_events(root: Value<'_>, saying: Saying<'_>) -> Vec<Made> {
    let text = text(saying);
    let Some(name) = kind(root).filter(|_| !text.is_empty()) else {
        return Vec::new();
    };
    if !name.starts_with("response.") {
        return Vec::new();
    }
    let id = [root.get("item"), root.get("response")]
        .into_iter()
        .flatten()
        .find_map(|there| there.get("id")?.as_str());
    let id = message_id(id.or_else(|| root.get("item_id")?.as_str()).as_deref());
    let index = root.get("output_index").and_then(Value::as_u64);
    let index = index.unwrap_or_default();
    let kind = match saying {
        Saying::Text(_) => "output_text",
        Saying::Refusal(_) => "refusal",
    };
    let whole = quote(text);
    let of_part = format!(
        ",\"item_id\":{},\"output_index\":{index},\"content_index\":0",
        quote(&id)
    );
    let of_item = format!(",\"output_index\":{index}");
    let logprobs = match saying {
        Saying::Text(_) => ",\"logprobs\":[]",
        Saying::Refusal(_) => "",
    };
    let (empty, full) = (part(saying, ""), part(saying, text));
    let done = match saying {
        Saying::Text(_) => format!(",\"text\":{whole}{logprobs}"),
        Saying::Refusal(_) => format!(",\"refusal\":{whole}"),
    };
    let events = [
        (
            "response.output_item.added".to_owned(),
            format!("{of_item},\"item\":{}", message(&id, "in_progress", "")),
        ),
        (
            "response.content_part.added".to_owned(),
            format!("{of_part},\"part\":{empty}"),
        ),
        (
            format!("response.{kind}.delta"),
            format!("{of_part},\"delta\":{whole}{logprobs}"),
        ),
        (format!("response.{kind}.done"), format!("{of_part}{done}")),
        (
            "response.content_part.done".to_owned(),
            format!("{of_part},\"part\":{full}"),
        ),
        (
            "response.output_item.done".to_owned(),
            format!("{of_item},\"item\":{}", message(&id, "completed", &full)),
        ),
    ];
    let numbered = (number(root)..).zip(events);
    let made = numbered.map(|(number, (name, members))| {
        let data = format!(
            "{{\"type\":{},\"sequence_number\":{number}{members}}}",
            quote(&name)
        );
        Made::event(name, data)
    });
    made.collect()
}

/// An event's number.
pub(super) fn number(root: Value<'_>) -> u64 {
    let number = root.get("sequence_number").and_then(Value::as_u64);
    number.unwrap_or_default()
}

/// A message's id, made from that of what it stands for.
fn message_id(id: Option<&str>) -> String {
    let id = id.unwrap_or("msg_0");
    let digits = id.split_once('_').map_or(id, |(_, digits)| digits);
    format!("msg_{digits}")
}

fn message(id: &str, status: &str, content: &str) -> String {
    format!(
        "{{\"id\":{},\"type\":\"message\",\"status\":{},\"content\":[{content}],\
         \"role\":\"assistant\"}}",
        quote(id),
        quote(status),
    )
}

fn part(saying: Saying<'_>, text: &str) -> String {
    let text = quote(text);
    match saying {
        Saying::Text(_) => format!(
            "{{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":{text}}}"
        ),
        Saying::Refusal(_) => format!("{{\"type\":\"refusal\",\"refusal\":{text}}}"),
    }
}

fn text(saying: Saying<'_>) -> &str {
    match saying {
        Saying::Text(text) | Saying::Refusal(text) => text,
    }
}

fn null() -> String {
    "null".to_owned()
}
