//! Answers and events in Bedrock's own words that are made up, or say something else.

use crate::dialect::{EndOfChoice, Event, Part, Transcript};
use crate::json::{Document, Edits, Value, quote};
use crate::model::{DeltaKind, Finish, Saying};
use crate::stream::Made;

/// The `stopReason` for a neutral word, as JSON. A refusal ends like any answer here.
pub(super) fn finish_word(finish: &Finish) -> String {
    match finish {
        Finish::Done | Finish::Refused => quote("end_turn"),
        Finish::Length => quote("max_tokens"),
        Finish::Tool => quote("tool_use"),
        Finish::Filtered => quote("content_filtered"),
        Finish::Context => quote("model_context_window_exceeded"),
        Finish::BadTool => quote("malformed_tool_use"),
        Finish::Foreign(word) => quote(word),
    }
}

/// An event made after `event`: padded as that one is, and inside of a member named after it if
/// that one is.
fn another(event: Event<'_>, like: Value<'_>, name: &'static str, members: &str) -> Made {
    // Bedrock pads events with a `p` of random length, so that lengths tell nothing.
    let padding = like.get("p");
    let padding = padding.map_or_else(String::new, |p| format!(",\"p\":{}", p.raw()));
    let data = format!("{{{members}{padding}}}");
    match event.name() {
        Some(_) => Made::event(name, data),
        None => Made::data(format!("{{{}:{data}}}", quote(name))),
    }
}

fn index(event: Value<'_>) -> u64 {
    let index = event.get("contentBlockIndex").and_then(Value::as_u64);
    index.unwrap_or_default()
}

/// The end of the block that is open, if any, and of the message.
pub(super) fn finish_events(
    event: Event<'_>,
    name: &str,
    inside: Value<'_>,
    end: &EndOfChoice<'_>,
) -> Vec<Made> {
    if !matches!(
        name,
        "contentBlockStart" | "contentBlockDelta" | "contentBlockStop" | "messageStop"
    ) {
        return Vec::new();
    }
    let mut events = Vec::new();
    if end.kept {
        let stop = format!("\"contentBlockIndex\":{}", index(inside));
        events.push(another(event, inside, "contentBlockStop", &stop));
    }
    let reason = format!("\"stopReason\":{}", finish_word(end.finish));
    events.push(another(event, inside, "messageStop", &reason));
    events
}

/// The event that says this.
pub(super) fn say_event(
    event: Event<'_>,
    name: &str,
    inside: Value<'_>,
    saying: Saying<'_>,
) -> Option<Made> {
    if matches!(name, "messageStart" | "metadata") {
        return None;
    }
    let delta = format!(
        "\"contentBlockIndex\":{},\"delta\":{{\"text\":{}}}",
        index(inside),
        quote(words(saying))
    );
    Some(another(event, inside, "contentBlockDelta", &delta))
}

/// There is no field for refusals.
fn words(saying: Saying<'_>) -> &str {
    match saying {
        Saying::Text(text) | Saying::Refusal(text) => text,
    }
}

/// Makes the answer to `Converse` say this and nothing else, behind its thinking; no text is no
/// block.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let message = root.get("output").and_then(|output| output.get("message"));
    let Some(content) = message.and_then(|message| message.get("content")) else {
        return false;
    };
    let text = words(saying);
    let thinks = |block: &Value<'_>| block.get("reasoningContent").is_some();
    let thoughts = content.items().take_while(thinks);
    let mut blocks: Vec<String> = thoughts.map(|block| block.raw().to_owned()).collect();
    if !text.is_empty() {
        blocks.push(format!("{{\"text\":{}}}", quote(text)));
    }
    edits.replace(content.id(), format!("[{}]", blocks.join(",")));
    if let Some(reason) = root.get("stopReason") {
        edits.replace(reason.id(), finish_word(finish));
    }
    true
}

/// The answer to `Converse` that says what a stream said. `last` is the event with the counts.
pub(super) fn whole(transcript: &Transcript<'_>, last: Value<'_>) -> Option<String> {
    let (metrics, usage) = (last.get("metrics")?, last.get("usage")?);
    let (_, finish) = transcript.finishes.first()?;
    let blocks: Option<Vec<String>> = transcript.parts.iter().map(block).collect();
    Some(format!(
        "{{\"metrics\":{},\"output\":{{\"message\":{{\"content\":[{}],\"role\":\"assistant\"}}}},\
         \"stopReason\":{},\"usage\":{}}}",
        metrics.raw(),
        blocks?.join(","),
        finish_word(finish),
        usage.raw(),
    ))
}

fn block(part: &Part) -> Option<String> {
    if let Some((id, name)) = &part.call {
        let arguments = match part.text.trim() {
            "" => "{}",
            arguments => Document::parse(arguments.as_bytes()).ok()?.text(),
        };
        return Some(format!(
            "{{\"toolUse\":{{\"input\":{arguments},\"name\":{},\"toolUseId\":{}}}}}",
            quote(name),
            quote(id)
        ));
    }
    let text = quote(&part.text);
    Some(match part.kind {
        DeltaKind::Reasoning | DeltaKind::Signature => {
            let signature = part.signature.as_ref();
            let signature = signature.map(|it| format!("\"signature\":{},", quote(it)));
            let signature = signature.unwrap_or_default();
            format!("{{\"reasoningContent\":{{\"reasoningText\":{{{signature}\"text\":{text}}}}}}}")
        }
        DeltaKind::Text
        | DeltaKind::Refusal
        | DeltaKind::ToolId
        | DeltaKind::ToolName
        | DeltaKind::ToolArguments => format!("{{\"text\":{text}}}"),
    })
}
