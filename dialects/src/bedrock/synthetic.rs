//! Synthetic answers and events in Bedrock's own format, and edits of answers.

use serde_json::{Value as Json, json};

use super::answer::BEDROCK;
use crate::answer::{Event, Part, Transcript};
use crate::dialect::put_word;
use crate::json::{Document, Edits, Value};
use crate::model::{DeltaKind, Finish, ResultSaying, Saying, ToolResult};
use crate::stream::SyntheticEvent;

/// Replaces a tool's result.
pub(super) fn say_result(
    edits: &mut Edits<'_>,
    body: &Document<'_>,
    result: &ToolResult<'_>,
    saying: ResultSaying<'_>,
) {
    edits.replace(result.content, blocks(Vec::new(), saying.text()));
    if let ResultSaying::Failure(_) = saying {
        let status = body.value(result.place).get("status");
        edits.set(status, result.content, "status", "\"error\"");
    }
}

/// Blocks followed by a text block; text blocks must not be empty.
fn blocks(mut blocks: Vec<Json>, text: &str) -> Json {
    if !text.is_empty() {
        blocks.push(json!({ "text": text }));
    }
    blocks.into()
}

/// An event modelled on `event`: with the same padding, and inside a member named after it if that one is.
fn another(
    event: Event<'_>,
    like: Value<'_>,
    name: &'static str,
    mut data: Json,
) -> SyntheticEvent {
    // Bedrock pads events with a `p` of random length to hide their real lengths.
    if let Some(padding) = like.get("p") {
        data["p"] = padding.to_json();
    }
    match event.name {
        Some(_) => SyntheticEvent::event(name, data.to_string()),
        None => SyntheticEvent::data(json!({ name: data }).to_string()),
    }
}

/// The events with this text. There is no field for refusals.
pub(super) fn say_events(
    event: Event<'_>,
    name: &str,
    inside: Value<'_>,
    saying: Saying<'_>,
) -> Vec<SyntheticEvent> {
    if matches!(name, "messageStart" | "metadata") {
        return Vec::new();
    }
    let index = inside.number("contentBlockIndex").unwrap_or_default();
    let delta = json!({ "contentBlockIndex": index, "delta": { "text": saying.text() } });
    let stop = json!({ "contentBlockIndex": index });
    vec![
        another(event, inside, "contentBlockDelta", delta),
        another(event, inside, "contentBlockStop", stop),
    ]
}

/// Replaces the content of the response to `Converse`; its reasoning stays.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let Some(content) = root.path(&["output", "message", "content"]) else {
        return false;
    };
    let thinks = |block: &Value<'_>| block.get("reasoningContent").is_some();
    let thoughts = content.items().take_while(thinks).map(Value::to_json);
    edits.replace(content.id(), blocks(thoughts.collect(), saying.text()));
    if let Some(reason) = root.get("stopReason") {
        put_word(edits, &BEDROCK, reason.id(), Some(finish));
    }
    true
}

/// The response to `Converse` with the content of a stream. `last` is the event with the counts.
pub(super) fn whole(transcript: &Transcript<'_>, last: Value<'_>) -> Option<String> {
    let blocks: Option<Vec<Json>> = transcript.parts.iter().map(block).collect();
    let answer = json!({
        "metrics": last.get("metrics")?.to_json(),
        "output": { "message": { "content": blocks?, "role": "assistant" } },
        "stopReason": BEDROCK.finish_words.write(transcript.finish_of(0)?),
        "usage": last.get("usage")?.to_json(),
    });
    Some(answer.to_string())
}

fn block(part: &Part) -> Option<Json> {
    let text = part.text.as_str();
    Some(match (&part.call, part.kind) {
        (Some((id, name)), _) => {
            json!({ "toolUse": { "input": part.arguments()?, "name": name, "toolUseId": id } })
        }
        (None, DeltaKind::Reasoning | DeltaKind::Signature) => {
            let mut shown = json!({ "text": text });
            if let Some(signature) = &part.signature {
                shown["signature"] = signature.as_str().into();
            }
            json!({ "reasoningContent": { "reasoningText": shown } })
        }
        (None, _) => json!({ "text": text }),
    })
}
