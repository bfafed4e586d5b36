//! Synthetic answers and lines, and edits of answers.

use serde_json::{Map, Value as Json, json};

use super::answer::OLLAMA;
use crate::answer::Transcript;
use crate::json::{Edits, Value};
use crate::model::{DeltaKind, Finish, Saying};

/// Members that only the last line of a stream has.
const OF_THE_END: [&str; 8] = [
    "done_reason",
    "context",
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
];

/// Content of a message that is replaced together with its text.
const REPLACED: [&str; 2] = ["tool_calls", "images"];

/// Changes or removes the finish reason of the last line.
pub(super) fn put_finish(edits: &mut Edits<'_>, root: Value<'_>, finish: Option<&Finish>) {
    let (Some(finish), Some(done)) = (finish, root.get("done")) else {
        return take_end_back(edits, root);
    };
    let word = json!(OLLAMA.finish_words.write(finish));
    edits.set(root.get("done_reason"), done.id(), "done_reason", word);
}

/// Changes a last line to one that continues.
fn take_end_back(edits: &mut Edits<'_>, root: Value<'_>) {
    for member in root.members() {
        match member.key().as_deref() {
            Some("done") => edits.replace(member.id(), "false"),
            Some(key) if OF_THE_END.contains(&key) => edits.remove(member.id()),
            _ => {}
        }
    }
}

/// Replaces the content of a whole answer or of a last line; its reasoning stays. There is no field for refusals.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let said = put_words(edits, root, saying.text());
    if said && root.get("done").is_some() {
        put_finish(edits, root, Some(finish));
    }
    said
}

/// Replaces an answer's text and removes its other content. False if it has no field for text.
fn put_words(edits: &mut Edits<'_>, root: Value<'_>, text: &str) -> bool {
    let said = root.get("message").unwrap_or(root);
    let Some(words) = said.get("content").or_else(|| said.get("response")) else {
        return false;
    };
    edits.replace(words.id(), json!(text));
    let more = REPLACED.iter().filter_map(|key| said.get(key));
    for more in more.chain(root.get("logprobs")) {
        edits.remove(more.id());
    }
    true
}

/// The answer with the content of a stream of lines.
pub(super) fn whole(transcript: &Transcript<'_>) -> Option<String> {
    let root = transcript.last.root();
    root.get("done")?;
    let is_chat = root.get("message").is_some();
    let words = words(transcript, if is_chat { "content" } else { "response" })?;
    let mut members = Map::new();
    for member in root.members() {
        let key = member.key()?;
        match (&*key, is_chat) {
            ("message", true) => {
                let mut message = Map::from_iter([("role".into(), "assistant".into())]);
                message.extend(words.clone());
                members.insert(key.into_owned(), message.into());
            }
            ("response", false) => members.extend(words.clone()),
            ("thinking" | "tool_calls", false) => {}
            _ => {
                members.insert(key.into_owned(), member.to_json());
            }
        }
    }
    Some(Json::from(members).to_string())
}

/// The content as members.
fn words(transcript: &Transcript<'_>, text_field: &str) -> Option<Map<String, Json>> {
    let text = transcript.text_of(0, DeltaKind::Text);
    let mut members = Map::new();
    members.insert(text_field.into(), text.unwrap_or_default().into());
    if let Some(thinking) = transcript.text_of(0, DeltaKind::Reasoning) {
        members.insert("thinking".into(), thinking.into());
    }
    let mut calls = Vec::new();
    for part in transcript.parts_of(0) {
        if let Some((id, name)) = &part.call {
            let (index, arguments) = (calls.len(), part.arguments()?);
            let mut call = json!({
                "function": { "index": index, "name": name, "arguments": arguments },
            });
            if !id.is_empty() {
                call["id"] = id.as_str().into();
            }
            calls.push(call);
        }
    }
    if !calls.is_empty() {
        members.insert("tool_calls".into(), calls.into());
    }
    Some(members)
}
