//! Synthetic answers and chunks, and edits of answers.

use serde_json::{Deserializer, Value as Json, json};

use super::answer::{REASONING, choices};
use super::providers::OPENAI;
use crate::answer::{Event, Transcript};
use crate::dialect::put_word;
use crate::json::{Edits, Value};
use crate::model::{DeltaKind, Finish, Saying};
use crate::stream::SyntheticEvent;

/// A chunk modelled on another one of `choice`: with this delta, without finish reason, other choices and token
/// counts. `None` if that chunk does not contain the choice.
fn chunk(event: Event<'_>, choice: u64, delta: Json) -> Option<SyntheticEvent> {
    let root = event.root();
    let (_, found) = choices(root).find(|(index, _)| *index == choice)?;
    let there = found.get("delta")?;
    let mut edits = Edits::new(event.document);
    for item in root.list("choices").filter(|it| it.id() != found.id()) {
        edits.remove(item.id());
    }
    edits.replace(there.id(), delta);
    if let Some(reason) = found.get("finish_reason") {
        edits.replace(reason.id(), "null");
    }
    let counts = [found.get("logprobs"), root.get("usage")];
    for counts in counts.into_iter().flatten() {
        edits.replace(counts.id(), "null");
    }
    Some(SyntheticEvent::data(edits.apply()))
}

/// A chunk with this text, modelled on another one of `choice`.
pub(super) fn say_chunk(
    event: Event<'_>,
    choice: u64,
    saying: Saying<'_>,
) -> Option<SyntheticEvent> {
    let (_, found) = choices(event.root()).find(|(index, _)| *index == choice)?;
    let mut delta = json!({});
    // The role is sent only once.
    if let Some(role) = found.get("delta")?.get("role") {
        delta["role"] = role.to_json();
    }
    match saying {
        Saying::Text(text) => delta["content"] = text.into(),
        Saying::Refusal(text) => {
            delta["content"] = Json::Null;
            delta["refusal"] = text.into();
        }
    }
    chunk(event, choice, delta)
}

/// Replaces the content of a choice in a whole answer; its reasoning stays.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    choice: u64,
    saying: Saying<'_>,
    finish: &Finish,
) -> Option<()> {
    let (_, item) = choices(root).find(|(index, _)| *index == choice)?;
    let message = item.get("message")?;
    let content = message.get("content");
    let place = content.or_else(|| message.members().next())?.id();
    let (text, refusal) = match saying {
        Saying::Text(text) => (json!(text), Json::Null),
        Saying::Refusal(text) => (Json::Null, json!(text)),
    };
    let text = behind_thoughts(content, saying).unwrap_or(text);
    edits.set(content, place, "content", text);
    if message.get("refusal").is_some() || !refusal.is_null() {
        edits.set(message.get("refusal"), place, "refusal", refusal);
    }
    for key in ["tool_calls", "function_call", "audio"] {
        if let Some(more) = message.get(key) {
            edits.remove(more.id());
        }
    }
    if let Some(reason) = item.get("finish_reason") {
        put_word(edits, &OPENAI, reason.id(), Some(finish));
    }
    if let Some(logprobs) = item.get("logprobs") {
        edits.replace(logprobs.id(), "null");
    }
    Some(())
}

/// A content in parts, as Mistral uses, with this text after its reasoning; `None`: it contains no reasoning.
fn behind_thoughts(content: Option<Value<'_>>, saying: Saying<'_>) -> Option<Json> {
    let thoughts = content?
        .items()
        .take_while(|it| it.get("thinking").is_some());
    let mut parts: Vec<Json> = thoughts.map(Value::to_json).collect();
    if parts.is_empty() {
        return None;
    }
    if let Saying::Text(text) = saying
        && !text.is_empty()
    {
        parts.push(json!({ "type": "text", "text": text }));
    }
    Some(parts.into())
}

/// The `chat.completion` with the content of a stream of chunks.
pub(super) fn whole(transcript: &Transcript<'_>) -> Option<String> {
    let mut answer = transcript.first.root().to_json();
    let members = answer.as_object_mut()?;
    let choices = transcript.choices().into_iter();
    let choices: Vec<Json> = choices.map(|it| whole_choice(transcript, it)).collect();
    if choices.is_empty() {
        return None;
    }
    // Padding of streams.
    members.shift_remove("obfuscation");
    members.shift_remove("usage");
    members.insert("object".into(), "chat.completion".into());
    members.insert("choices".into(), choices.into());
    let counts = transcript.last.root().given("usage").map(Value::to_json);
    let usage = match (counts, transcript.tokens) {
        (Some(usage), _) => usage,
        (None, (Some(input), Some(output))) => json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input.saturating_add(output),
        }),
        (None, _) => Json::Null,
    };
    members.insert("usage".into(), usage);
    Some(answer.to_string())
}

fn whole_choice(transcript: &Transcript<'_>, choice: u64) -> Json {
    let parts = transcript.parts_of(choice);
    let mut message = json!({
        "role": "assistant",
        "content": transcript.text_of(choice, DeltaKind::Text),
        "refusal": transcript.text_of(choice, DeltaKind::Refusal),
    });
    let thoughts = parts.clone().filter(|it| it.kind == DeltaKind::Reasoning);
    for thinking in thoughts {
        let name = match thinking.part {
            REASONING => "reasoning",
            _ => "reasoning_content",
        };
        if !thinking.text.is_empty() {
            message[name] = thinking.text.as_str().into();
        }
        if let Some(lists) = &thinking.signature {
            // Each event had a separate list.
            let lists = Deserializer::from_str(lists).into_iter::<Vec<Json>>();
            message["reasoning_details"] = lists.flatten().flatten().collect();
        }
    }
    let call = |(id, name): &(String, String), arguments: &str| {
        json!({
            "id": id,
            "type": "function",
            "function": { "name": name, "arguments": arguments },
        })
    };
    let calls = parts.filter_map(|part| Some(call(part.call.as_ref()?, &part.text)));
    let calls: Vec<Json> = calls.collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let finish = transcript.finish_of(choice);
    json!({
        "index": choice,
        "message": message,
        "logprobs": null,
        "finish_reason": finish.map(|finish| OPENAI.finish_words.write(finish)),
    })
}
