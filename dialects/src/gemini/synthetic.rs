//! Synthetic answers and events, and edits of answers.

use serde_json::{Map, Value as Json, json};

use super::answer::{GEMINI, candidates};
use crate::answer::{Part, Transcript};
use crate::dialect::put_word;
use crate::json::{Edits, Value};
use crate::model::{DeltaKind, Finish, Finished, Saying};

/// Members of a candidate that describe its text or its end.
const ABOUT_WORDS: [&str; 7] = [
    "finishMessage",
    "citationMetadata",
    "groundingMetadata",
    "urlContextMetadata",
    "logprobsResult",
    "avgLogprobs",
    "tokenCount",
];

/// Changes or removes the finish reason of the candidate that ends at a place.
pub(super) fn put_finish(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    at: &Finished,
    finish: Option<&Finish>,
) {
    let ends_here = |candidate: &Value<'_>| {
        let reason = candidate.get("finishReason");
        reason.is_some_and(|reason| reason.id() == at.place)
    };
    // The answer to a blocked prompt has no text, so its finish reason cannot change.
    let Some(candidate) = root.list("candidates").find(ends_here) else {
        return;
    };
    match finish {
        Some(_) => put_word(edits, &GEMINI, at.place, finish),
        None => edits.remove(at.place),
    }
    let message = candidate.get("finishMessage");
    if finish == Some(&Finish::BadTool) {
        let why = json!("Malformed function call");
        edits.set(message, at.place, "finishMessage", why);
    } else if let Some(message) = message {
        edits.remove(message.id());
    }
}

/// Replaces the content of a choice in a whole answer; its reasoning stays.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    choice: u64,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let Some(candidate) = find(root, choice) else {
        return false;
    };
    let content = candidate.get("content").into_iter();
    let parts = content.flat_map(|content| content.list("parts"));
    let thoughts = parts.take_while(|part| part.flag("thought"));
    let thoughts = thoughts.map(Value::to_json).collect();
    let ended = ended(candidate, thoughts, saying.text(), finish);
    edits.replace(candidate.id(), ended);
    true
}

/// The candidate of a choice, unless it is empty.
fn find(root: Value<'_>, choice: u64) -> Option<Value<'_>> {
    let (_, found) = candidates(root).find(|(index, _)| *index == choice)?;
    found.members().next().map(|_| found)
}

/// A candidate with `text` after this reasoning and with this finish reason.
fn ended(candidate: Value<'_>, mut parts: Vec<Json>, text: &str, finish: &Finish) -> Json {
    let filtered = *finish == Finish::Filtered;
    let mut members = Map::new();
    // Content that a filter stopped is omitted.
    if !filtered || !text.is_empty() || !parts.is_empty() {
        if parts.is_empty() || !text.is_empty() {
            parts.push(json!({ "text": text }));
        }
        members.insert("content".into(), content(&parts));
    }
    let word = GEMINI.finish_words.write(finish);
    members.insert("finishReason".into(), word.into());
    for member in candidate.members() {
        let key = member.key().unwrap_or_default();
        let replaced = matches!(&*key, "content" | "finishReason")
            || (filtered && key == "safetyRatings")
            || ABOUT_WORDS.contains(&&*key);
        if !replaced {
            members.insert(key.into_owned(), member.to_json());
        }
    }
    if filtered {
        let category = "HARM_CATEGORY_DANGEROUS_CONTENT";
        let rating = json!({ "category": category, "probability": "HIGH", "blocked": true });
        members.insert("safetyRatings".into(), json!([rating]));
    }
    members.into()
}

fn content(parts: &[Json]) -> Json {
    json!({ "parts": parts, "role": "model" })
}

/// The answer with the content of a stream of events.
pub(super) fn whole(transcript: &Transcript<'_>) -> Option<String> {
    let mut answer = transcript.first.root().to_json();
    let members = answer.as_object_mut()?;
    let choices = transcript.choices().into_iter();
    let choices: Option<Vec<Json>> = choices.map(|it| whole_candidate(transcript, it)).collect();
    let choices = choices.filter(|choices| !choices.is_empty())?;
    members.insert("candidates".into(), choices.into());
    if let Some(usage) = transcript.last.root().get("usageMetadata") {
        members.insert("usageMetadata".into(), usage.to_json());
    }
    Some(answer.to_string())
}

fn whole_candidate(transcript: &Transcript<'_>, choice: u64) -> Option<Json> {
    let parts = whole_parts(transcript.parts_of(choice))?;
    let mut members = Map::new();
    let content = if parts.is_empty() {
        json!({ "role": "model" })
    } else {
        content(&parts)
    };
    members.insert("content".into(), content);
    if let Some(finish) = transcript.finish_of(choice) {
        let word = GEMINI.finish_words.write(finish);
        members.insert("finishReason".into(), word.into());
    }
    members.insert("index".into(), choice.into());
    // Other data in the last event, such as ratings and sources.
    let last = find(transcript.last.root(), choice);
    for member in last.into_iter().flat_map(Value::members) {
        let key = member.key().unwrap_or_default().into_owned();
        members.entry(key).or_insert_with(|| member.to_json());
    }
    Some(members.into())
}

/// The parts of a content. A signature that arrived with another part is attached again.
fn whole_parts<'p>(parts: impl Iterator<Item = &'p Part>) -> Option<Vec<Json>> {
    let signed = |mut part: Json, signature: Option<&str>| {
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature.into();
        }
        part
    };
    let empty = || json!({ "text": "" });
    let mut whole = Vec::new();
    let mut signature: Option<&str> = None;
    for part in parts {
        let text = part.text.as_str();
        let written = match (&part.call, part.kind) {
            (None, DeltaKind::Reasoning) if text.is_empty() => {
                let before = signature.replace(part.signature.as_deref().unwrap_or_default());
                whole.extend(before.map(|before| signed(empty(), Some(before))));
                continue;
            }
            (None, DeltaKind::Reasoning) => signed(
                json!({ "text": text, "thought": true }),
                part.signature.as_deref(),
            ),
            (None, _) => signed(json!({ "text": text }), signature.take()),
            (Some((id, name)), _) => {
                let mut call = json!({ "name": name, "args": part.arguments()? });
                if !id.is_empty() {
                    call["id"] = id.as_str().into();
                }
                signed(json!({ "functionCall": call }), signature.take())
            }
        };
        whole.push(written);
    }
    whole.extend(signature.map(|signature| signed(empty(), Some(signature))));
    Some(whole)
}
