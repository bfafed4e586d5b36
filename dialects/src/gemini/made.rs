//! Answers and events that are made up, or say something else.

use super::answer::index;
use super::request::{is_thought, items};
use crate::dialect::{EndOfChoice, Event, Part, Transcript};
use crate::json::{Edits, Value, quote};
use crate::model::{DeltaKind, Finish, Finished, Saying};
use crate::stream::Made;

/// Members of a candidate that say more about the words it held, or about its end.
const ABOUT_WORDS: [&str; 7] = [
    "finishMessage",
    "citationMetadata",
    "groundingMetadata",
    "urlContextMetadata",
    "logprobsResult",
    "avgLogprobs",
    "tokenCount",
];

/// What comes with an answer that ends with a call that is none, as JSON.
const BAD_CALL: &str = "\"Malformed function call\"";

/// What comes with an answer that a filter stopped.
const RATINGS: &str = "[{\"category\":\"HARM_CATEGORY_DANGEROUS_CONTENT\",\"probability\":\"HIGH\",\
                       \"blocked\":true}]";

/// The `finishReason` for a neutral word. There is none for a tool call, a refusal or an
/// overflowing context.
fn finish_word(finish: &Finish) -> String {
    quote(match finish {
        Finish::Done | Finish::Tool | Finish::Refused => "STOP",
        Finish::Length | Finish::Context => "MAX_TOKENS",
        Finish::Filtered => "SAFETY",
        Finish::BadTool => "MALFORMED_FUNCTION_CALL",
        Finish::Foreign(word) => word,
    })
}

/// Makes the candidate that ends at a place end for another reason, or not yet.
pub(super) fn put_finish(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    at: &Finished,
    finish: Option<&Finish>,
) {
    let candidates = items(root.get("candidates"));
    let ending = |candidate: &Value<'_>| {
        let reason = candidate.get("finishReason");
        reason.is_some_and(|reason| reason.id() == at.place)
    };
    // A prompt that was blocked cannot have ended for another reason: nothing was written.
    let Some(candidate) = candidates.into_iter().find(ending) else {
        return;
    };
    match finish {
        Some(finish) => edits.replace(at.place, finish_word(finish)),
        None => edits.remove(at.place),
    }
    let said = candidate.get("finishMessage");
    match (finish, said) {
        (Some(Finish::BadTool), Some(said)) => edits.replace(said.id(), BAD_CALL),
        (Some(Finish::BadTool), None) => edits.insert_after(at.place, "finishMessage", BAD_CALL),
        (_, Some(said)) => edits.remove(said.id()),
        (_, None) => {}
    }
}

/// The event that ends a choice, made after another one of it. `None` when that one holds no such
/// choice.
pub(super) fn finish_event(event: Event<'_>, end: &EndOfChoice<'_>) -> Option<Made> {
    let (mut edits, candidate) = alone(event, end.choice)?;
    ended(&mut edits, candidate, &[], "", Some(end.finish));
    if let Some(usage) = event.root().get("usageMetadata") {
        count(&mut edits, usage, end);
    }
    Some(Made::data(edits.apply()))
}

/// The event by which a choice says this, made after another one of it.
pub(super) fn say_event(event: Event<'_>, choice: u64, saying: Saying<'_>) -> Option<Made> {
    let (mut edits, candidate) = alone(event, choice)?;
    ended(&mut edits, candidate, &[], text(saying), None);
    // What is written is counted at the end, and it is not what the model wrote.
    if let Some(usage) = event.root().get("usageMetadata") {
        if let Some(written) = usage.get("candidatesTokenCount") {
            edits.remove(written.id());
        }
        total(&mut edits, usage, 0);
    }
    Some(Made::data(edits.apply()))
}

/// Makes a whole answer's choice say this and nothing else, behind its thinking.
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
    let content = candidate.get("content");
    let parts = items(content.and_then(|content| content.get("parts")));
    let thoughts: Vec<&str> = parts
        .take_while(|part| is_thought(*part))
        .map(Value::raw)
        .collect();
    ended(edits, candidate, &thoughts, text(saying), Some(finish));
    true
}

/// There is no field for refusals: models refuse in words.
fn text(saying: Saying<'_>) -> &str {
    match saying {
        Saying::Text(text) | Saying::Refusal(text) => text,
    }
}

/// The candidate that is a choice, if it has any members to go by.
fn find(root: Value<'_>, choice: u64) -> Option<Value<'_>> {
    let mut candidates = (0..).zip(items(root.get("candidates")));
    let found = candidates.find(|(position, item)| index(*item, *position) == choice)?;
    found.1.members().next().map(|_| found.1)
}

/// Edits that leave an event one choice, and that choice.
fn alone(event: Event<'_>, choice: u64) -> Option<(Edits<'_>, Value<'_>)> {
    let root = event.root();
    let candidate = find(root, choice)?;
    let mut edits = Edits::new(event.document);
    for other in items(root.get("candidates")).filter(|item| item.id() != candidate.id()) {
        edits.remove(other.id());
    }
    Some((edits, candidate))
}

/// Makes a candidate say `text` behind these thoughts and end so; `None`: not yet.
fn ended(
    edits: &mut Edits<'_>,
    candidate: Value<'_>,
    thoughts: &[&str],
    text: &str,
    finish: Option<&Finish>,
) {
    let filtered = finish == Some(&Finish::Filtered);
    let mut members = Vec::new();
    // Content that a filter stopped is left out.
    if !filtered || !text.is_empty() || !thoughts.is_empty() {
        members.push(format!("\"content\":{}", content(thoughts, text)));
    }
    members.extend(finish.map(|finish| format!("\"finishReason\":{}", finish_word(finish))));
    for member in candidate.members() {
        let key = member.key().unwrap_or_default();
        let replaced = matches!(&*key, "content" | "finishReason")
            || (filtered && key == "safetyRatings")
            || ABOUT_WORDS.contains(&&*key);
        if !replaced {
            members.push(format!("{}:{}", quote(&key), member.raw()));
        }
    }
    if filtered {
        members.push(format!("\"safetyRatings\":{RATINGS}"));
    }
    edits.replace(candidate.id(), format!("{{{}}}", members.join(",")));
}

fn content(thoughts: &[&str], text: &str) -> String {
    let mut parts: Vec<String> = thoughts.iter().map(|&thought| thought.to_owned()).collect();
    if parts.is_empty() || !text.is_empty() {
        parts.push(format!("{{\"text\":{}}}", quote(text)));
    }
    format!("{{\"parts\":[{}],\"role\":\"model\"}}", parts.join(","))
}

/// Makes token counts say what was written: of the model's words, at most what it has counted.
fn count(edits: &mut Edits<'_>, usage: Value<'_>, end: &EndOfChoice<'_>) {
    let number = |key| usage.get(key).and_then(Value::as_u64);
    let written = number("candidatesTokenCount");
    let at_most = || written.map_or(end.tokens, |written| written.min(end.tokens));
    let tokens = end.instead.unwrap_or_else(at_most);
    let prompt = usage.get("promptTokenCount");
    match (usage.get("candidatesTokenCount"), prompt) {
        (Some(there), _) => edits.replace(there.id(), tokens.to_string()),
        (None, Some(prompt)) => {
            edits.insert_after(prompt.id(), "candidatesTokenCount", &tokens.to_string());
        }
        (None, None) => {}
    }
    total(edits, usage, tokens);
}

/// Makes the sum of all counts that of an answer of so many tokens.
fn total(edits: &mut Edits<'_>, usage: Value<'_>, tokens: u64) {
    let others = [
        "promptTokenCount",
        "thoughtsTokenCount",
        "toolUsePromptTokenCount",
    ];
    let number = |key| usage.get(key).and_then(Value::as_u64);
    let others = others.into_iter().filter_map(number);
    if let Some(total) = usage.get("totalTokenCount") {
        let sum = others.fold(tokens, u64::saturating_add);
        edits.replace(total.id(), sum.to_string());
    }
}

/// The answer that says what a stream of events said.
pub(super) fn whole(transcript: &Transcript<'_>) -> Option<String> {
    let mut choices: Vec<u64> = transcript.parts.iter().map(|part| part.choice).collect();
    choices.extend(transcript.finishes.iter().map(|(choice, _)| *choice));
    choices.sort_unstable();
    choices.dedup();
    let (first, last) = (transcript.first.root(), transcript.last.root());
    let mut members = Vec::new();
    for member in first.members() {
        let key = member.key()?;
        match &*key {
            "candidates" => {
                let candidates: Vec<String> = choices
                    .iter()
                    .map(|choice| whole_candidate(transcript, *choice))
                    .collect();
                members.push(format!("\"candidates\":[{}]", candidates.join(",")));
            }
            "usageMetadata" => {
                let usage = last.get("usageMetadata").unwrap_or(member);
                members.push(format!("\"usageMetadata\":{}", usage.raw()));
            }
            other => members.push(format!("{}:{}", quote(other), member.raw())),
        }
    }
    (!choices.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

fn whole_candidate(transcript: &Transcript<'_>, choice: u64) -> String {
    let parts = transcript.parts.iter().filter(|part| part.choice == choice);
    let parts = whole_parts(parts);
    let content = if parts.is_empty() {
        "{\"role\":\"model\"}".to_owned()
    } else {
        format!("{{\"parts\":[{}],\"role\":\"model\"}}", parts.join(","))
    };
    let mut members = vec![format!("\"content\":{content}")];
    let mut finishes = transcript.finishes.iter();
    if let Some((_, finish)) = finishes.find(|(ended, _)| *ended == choice) {
        members.push(format!("\"finishReason\":{}", finish_word(finish)));
    }
    members.push(format!("\"index\":{choice}"));
    // What the last event says beside the words: ratings, sources.
    let last = find(transcript.last.root(), choice);
    for member in last.into_iter().flat_map(Value::members) {
        let key = member.key().unwrap_or_default();
        if !matches!(&*key, "content" | "finishReason" | "index") {
            members.push(format!("{}:{}", quote(&key), member.raw()));
        }
    }
    format!("{{{}}}", members.join(","))
}

/// The parts of a content. A signature that came with another part goes with it again.
fn whole_parts<'p>(parts: impl Iterator<Item = &'p Part>) -> Vec<String> {
    let mut written = Vec::new();
    let mut signature: Option<&str> = None;
    let signed = |signature: Option<&str>| {
        signature.map_or_else(String::new, |signature| {
            format!(",\"thoughtSignature\":{}", quote(signature))
        })
    };
    for part in parts {
        if part.kind == DeltaKind::Reasoning && part.text.is_empty() {
            let before = signature.replace(part.signature.as_deref().unwrap_or_default());
            written
                .extend(before.map(|before| format!("{{\"text\":\"\"{}}}", signed(Some(before)))));
            continue;
        }
        written.push(match &part.call {
            Some((id, name)) => {
                let id = match id.as_str() {
                    "" => String::new(),
                    id => format!("\"id\":{},", quote(id)),
                };
                let arguments = match part.text.as_str() {
                    "" => "{}",
                    arguments => arguments,
                };
                format!(
                    "{{\"functionCall\":{{{id}\"name\":{},\"args\":{arguments}}}{}}}",
                    quote(name),
                    signed(signature.take())
                )
            }
            None if part.kind == DeltaKind::Reasoning => format!(
                "{{\"text\":{},\"thought\":true{}}}",
                quote(&part.text),
                signed(part.signature.as_deref())
            ),
            None => format!(
                "{{\"text\":{}{}}}",
                quote(&part.text),
                signed(signature.take())
            ),
        });
    }
    written
        .extend(signature.map(|signature| format!("{{\"text\":\"\"{}}}", signed(Some(signature)))));
    written
}
