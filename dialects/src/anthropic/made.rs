//! Answers and events that are made up, or say something else.

use std::borrow::Cow;

use super::answer;
use super::request::kind;
use crate::dialect::{EndOfChoice, Event, Part, Transcript};
use crate::json::{Edits, Kind, NodeId, Value, quote};
use crate::model::{DeltaKind, Finish, Finished, Saying};
use crate::stream::Made;

/// What stands in `stop_details` of a refusal that names no policy.
const REFUSAL: &str = "{\"type\":\"refusal\",\"category\":null,\"explanation\":null}";

/// An event of this type; `members` are those of its data that follow `type`, each led by a comma.
pub(super) fn event(name: &'static str, members: &str) -> Made {
    Made::event(name, format!("{{\"type\":\"{name}\"{members}}}"))
}

/// The `stop_reason` for a neutral word. There is none for a tool call that is no tool call.
fn finish_word(finish: &Finish) -> &str {
    match finish {
        Finish::Done | Finish::BadTool => "end_turn",
        Finish::Length => "max_tokens",
        Finish::Tool => "tool_use",
        Finish::Filtered | Finish::Refused => "refusal",
        Finish::Context => "model_context_window_exceeded",
        Finish::Foreign(word) => word,
    }
}

/// Writes a reason to stop at a place that was read, and what goes with it beside it.
pub(super) fn put_finish(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    at: &Finished,
    finish: Option<&Finish>,
) {
    let place = at.place;
    let said = [root.get("delta"), Some(root)];
    let said = said.into_iter().flatten().find(|said| {
        let reason = said.get("stop_reason");
        reason.is_some_and(|reason| reason.id() == place)
    });
    put(edits, said, place, finish);
}

/// Writes a reason to stop at `place`, a member of `said`.
fn put(edits: &mut Edits<'_>, said: Option<Value<'_>>, place: NodeId, finish: Option<&Finish>) {
    let word = finish.map(finish_word);
    edits.replace(place, word.map_or_else(null, quote));
    let beside = |key| said.and_then(|said| said.get(key));
    if let Some(sequence) = beside("stop_sequence") {
        edits.replace(sequence.id(), "null");
    }
    let details = if word == Some("refusal") {
        REFUSAL
    } else {
        "null"
    };
    match beside("stop_details") {
        // A refusal's own are better than ours.
        Some(there) if !there.is_null() && details == REFUSAL => {}
        Some(there) => edits.replace(there.id(), details),
        None if details == REFUSAL => edits.insert_after(place, "stop_details", details),
        None => {}
    }
}

/// The events that end the message at `event`.
pub(super) fn finish_events(at: Event<'_>, end: &EndOfChoice<'_>) -> Vec<Made> {
    let root = at.root();
    let opens = match kind(root).as_deref() {
        Some("content_block_delta") => true,
        // What is said in the place of the answer's end opens a block, too.
        Some("content_block_start" | "message_delta") => end.kept,
        _ => return Vec::new(),
    };
    let index = index(root);
    let stop = opens.then(|| event("content_block_stop", &format!(",\"index\":{index}")));
    stop.into_iter().chain([message_delta(at, end)]).collect()
}

/// The event that says why the message ends, and what was written.
fn message_delta(at: Event<'_>, end: &EndOfChoice<'_>) -> Made {
    const NAME: &str = "message_delta";
    let root = at.root();
    let delta = root.get("delta");
    let reason = delta.and_then(|delta| delta.get("stop_reason"));
    if let (Some(NAME), Some(reason)) = (kind(root).as_deref(), reason) {
        let mut edits = Edits::new(at.document);
        put(&mut edits, delta, reason.id(), Some(end.finish));
        let output = root
            .get("usage")
            .and_then(|usage| usage.get("output_tokens"));
        if let Some(output) = output {
            edits.replace(output.id(), end.tokens.to_string());
        }
        return Made::event(NAME, edits.apply());
    }
    let word = finish_word(end.finish);
    let details = if word == "refusal" {
        format!(",\"stop_details\":{REFUSAL}")
    } else {
        String::new()
    };
    let members = format!(
        ",\"delta\":{{\"stop_reason\":{},\"stop_sequence\":null{details}}},\
         \"usage\":{{\"output_tokens\":{}}}",
        quote(word),
        end.tokens
    );
    event(NAME, &members)
}

/// Which block an event is about; a message's end is about its first.
fn index(root: Value<'_>) -> u64 {
    let index = root.get("index").and_then(Value::as_u64);
    index.unwrap_or_default()
}

/// Makes a whole message say this and nothing else, behind its thinking.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let content = root.get("content");
    let Some(content) = content.filter(|content| content.kind() == Kind::Array) else {
        return false;
    };
    let thoughts = content.items().take_while(|block| answer::thinks(*block));
    let mut blocks: Vec<String> = thoughts.map(|block| block.raw().to_owned()).collect();
    // Nobody says nothing in a block.
    if !words(saying).is_empty() {
        let text = quote(words(saying));
        blocks.push(format!("{{\"type\":\"text\",\"text\":{text}}}"));
    }
    edits.replace(content.id(), format!("[{}]", blocks.join(",")));
    if let Some(reason) = root.get("stop_reason") {
        put(edits, Some(root), reason.id(), Some(finish));
    }
    true
}

/// The events by which a message says this from `root` on, the data of an event.
pub(super) fn say_events(root: Value<'_>, saying: Saying<'_>) -> Vec<Made> {
    let kind = kind(root);
    let kinds = [
        "content_block_start",
        "content_block_delta",
        "message_delta",
    ];
    // Nobody says nothing in a block.
    let says_nothing = words(saying).is_empty();
    if says_nothing || !kind.is_some_and(|kind| kinds.contains(&&*kind)) {
        return Vec::new();
    }
    let index = index(root);
    vec![
        event(
            "content_block_start",
            &format!(",\"index\":{index},\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}"),
        ),
        event(
            "content_block_delta",
            &format!(
                ",\"index\":{index},\"delta\":{{\"type\":\"text_delta\",\"text\":{}}}",
                quote(words(saying))
            ),
        ),
    ]
}

/// A refusal has no field of its own: it is text, and the reason to stop tells it.
fn words(saying: Saying<'_>) -> &str {
    match saying {
        Saying::Text(text) | Saying::Refusal(text) => text,
    }
}

/// The `message` that says what a stream of events said.
pub(super) fn whole(transcript: &Transcript<'_>) -> Option<String> {
    let message = transcript.first.root().get("message")?;
    let last = transcript.last.root();
    let ended = last
        .get("delta")
        .filter(|_| kind(last).as_deref() == Some("message_delta"));
    let mut members = Vec::new();
    for member in message.members() {
        let key = member.key()?;
        let json = match &*key {
            "content" => Cow::Owned(format!("[{}]", blocks(&transcript.parts).join(","))),
            "stop_reason" => Cow::Owned(reason(transcript, ended)),
            "usage" => Cow::Owned(merged(member, last.get("usage"))),
            other => {
                let later = ended.and_then(|ended| ended.get(other));
                Cow::Borrowed(later.unwrap_or(member).raw())
            }
        };
        members.push(format!("{}:{json}", quote(&key)));
    }
    // What only the end says, such as why it refused.
    for member in ended.into_iter().flat_map(Value::members) {
        let key = member.key()?;
        if message.get(&key).is_none() {
            members.push(format!("{}:{}", quote(&key), member.raw()));
        }
    }
    Some(format!("{{{}}}", members.join(",")))
}

/// The reason to stop, in the provider's own word where the stream ends with it.
fn reason(transcript: &Transcript<'_>, ended: Option<Value<'_>>) -> String {
    let Some((_, finish)) = transcript.finishes.first() else {
        return null();
    };
    let there = ended.and_then(|ended| ended.get("stop_reason")?.as_str());
    match there {
        Some(word) if answer::finish(&word) == *finish => quote(&word),
        _ => quote(finish_word(finish)),
    }
}

/// Token counts as they stood first, and as they stood last where they did.
fn merged(first: Value<'_>, last: Option<Value<'_>>) -> String {
    let later = |key: &str| last.and_then(|last| last.get(key));
    let of_first = first.members().map(|member| {
        let key = member.key().unwrap_or_default();
        let value = later(&key).unwrap_or(member);
        format!("{}:{}", quote(&key), value.raw())
    });
    let of_last = last.into_iter().flat_map(Value::members);
    let added = of_last.filter_map(|member| {
        let key = member.key()?;
        let new = first.get(&key).is_none();
        new.then(|| format!("{}:{}", quote(&key), member.raw()))
    });
    let members: Vec<String> = of_first.chain(added).collect();
    format!("{{{}}}", members.join(","))
}

/// Content blocks that say what these parts said.
fn blocks(parts: &[Part]) -> Vec<String> {
    let parts = parts.iter().filter(|part| part.choice == 0);
    parts.map(block).collect()
}

fn block(part: &Part) -> String {
    let text = quote(&part.text);
    match (&part.call, &part.signature, part.kind) {
        (Some((id, name)), _, _) => {
            // A call without arguments comes without a piece of them.
            let input = if part.text.is_empty() {
                "{}"
            } else {
                &part.text
            };
            format!(
                "{{\"type\":\"tool_use\",\"id\":{},\"name\":{},\"input\":{input}}}",
                quote(id),
                quote(name)
            )
        }
        (None, Some(signature), _) => {
            let signature = quote(signature);
            format!("{{\"type\":\"thinking\",\"thinking\":{text},\"signature\":{signature}}}")
        }
        (None, None, DeltaKind::Reasoning) => {
            format!("{{\"type\":\"thinking\",\"thinking\":{text},\"signature\":\"\"}}")
        }
        (None, None, _) => format!("{{\"type\":\"text\",\"text\":{text}}}"),
    }
}

fn null() -> String {
    "null".to_owned()
}

/// Takes out the results of Anthropic's own tools that stand behind block `part`.
pub(super) fn remove_results_behind(edits: &mut Edits<'_>, root: Value<'_>, part: u64) {
    let blocks = root.get("content").into_iter().flat_map(Value::items);
    for (_, block) in (0..).zip(blocks).filter(|(position, _)| *position > part) {
        if kind(block).is_some_and(|kind| kind.ends_with("_tool_result")) {
            edits.remove(block.id());
        }
    }
}
