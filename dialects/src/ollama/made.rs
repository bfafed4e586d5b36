//! Answers and lines that are made up, or say something else.

use crate::dialect::{EndOfChoice, Event, Part, Transcript};
use crate::json::{Edits, Value, quote};
use crate::model::{DeltaKind, Finish, Finished, Saying};
use crate::stream::Made;

/// What a line has that ends a stream, and others have not.
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

/// What a message says beside its words.
const ALL_ELSE: [&str; 3] = ["thinking", "tool_calls", "images"];

/// The `done_reason` for a neutral word. There are but two.
fn done_reason(finish: &Finish) -> String {
    quote(match finish {
        Finish::Length | Finish::Context => "length",
        Finish::Done | Finish::Tool | Finish::Filtered | Finish::Refused | Finish::BadTool => {
            "stop"
        }
        Finish::Foreign(word) => word,
    })
}

/// Makes a line that ends end for another reason, or not yet.
pub(super) fn put_finish(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    at: &Finished,
    finish: Option<&Finish>,
) {
    let done = root.get("done");
    match (finish, done) {
        (Some(finish), Some(done)) if done.id() == at.place => {
            edits.insert_after(done.id(), "done_reason", &done_reason(finish));
        }
        (Some(finish), _) => edits.replace(at.place, done_reason(finish)),
        (None, _) => take_end_back(edits, root),
    }
}

/// Makes a line say that more follows.
fn take_end_back(edits: &mut Edits<'_>, root: Value<'_>) {
    for member in root.members() {
        match member.key().as_deref() {
            Some("done") => edits.replace(member.id(), "false"),
            Some(key) if OF_THE_END.contains(&key) => edits.remove(member.id()),
            _ => {}
        }
    }
}

/// The line that ends a stream, made after one that did. `None` after any other: its counts are
/// the server's to tell.
pub(super) fn last_line(event: Event<'_>, end: &EndOfChoice<'_>) -> Option<Made> {
    let root = ended(event)?;
    let mut edits = Edits::new(event.document);
    put_words(&mut edits, root, "", &ALL_ELSE).then_some(())?;
    put_reason(&mut edits, root, end.finish);
    if let Some(count) = root.get("eval_count") {
        let written = count.as_u64().unwrap_or(end.tokens);
        edits.replace(count.id(), written.min(end.tokens).to_string());
    }
    Some(Made::data(edits.apply()))
}

/// The line that says this, made after one that ends a stream. `None` after any other: then the
/// last line says it.
pub(super) fn line(event: Event<'_>, saying: Saying<'_>) -> Option<Made> {
    let root = ended(event)?;
    let mut edits = Edits::new(event.document);
    put_words(&mut edits, root, text(saying), &ALL_ELSE).then_some(())?;
    take_end_back(&mut edits, root);
    Some(Made::data(edits.apply()))
}

/// The outermost object of a line that ends a stream.
fn ended(event: Event<'_>) -> Option<Value<'_>> {
    let root = event.root();
    let done = root.get("done").and_then(Value::as_bool);
    (done == Some(true)).then_some(root)
}

/// Makes a whole answer, or a stream's last line, say this and nothing else, behind its
/// thinking.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let said = put_words(edits, root, text(saying), &["tool_calls", "images"]);
    if said {
        put_reason(edits, root, finish);
    }
    said
}

/// There is no field for refusals: models refuse in words.
fn text(saying: Saying<'_>) -> &str {
    match saying {
        Saying::Text(text) | Saying::Refusal(text) => text,
    }
}

/// Makes an answer's words these, and takes out what else it says. False when it has no place for any.
fn put_words(edits: &mut Edits<'_>, root: Value<'_>, text: &str, without: &[&str]) -> bool {
    let said = root.get("message").unwrap_or(root);
    let Some(words) = said.get("content").or_else(|| said.get("response")) else {
        return false;
    };
    edits.replace(words.id(), quote(text));
    for more in without {
        if let Some(more) = said.get(more) {
            edits.remove(more.id());
        }
    }
    if let Some(logprobs) = root.get("logprobs") {
        edits.remove(logprobs.id());
    }
    true
}

fn put_reason(edits: &mut Edits<'_>, root: Value<'_>, finish: &Finish) {
    match (root.get("done_reason"), root.get("done")) {
        (Some(reason), _) => edits.replace(reason.id(), done_reason(finish)),
        (None, Some(done)) => edits.insert_after(done.id(), "done_reason", &done_reason(finish)),
        (None, None) => {}
    }
}

/// The answer that says what a stream of lines said.
pub(super) fn whole(transcript: &Transcript<'_>) -> Option<String> {
    let root = transcript.last.root();
    root.get("done")?;
    let parts = transcript.parts.iter().filter(|part| part.choice == 0);
    let parts: Vec<&Part> = parts.collect();
    let chat = root.get("message").is_some();
    let words = words(&parts, if chat { "content" } else { "response" });
    let mut members = Vec::new();
    for member in root.members() {
        let key = member.key()?;
        match (&*key, chat) {
            ("message", true) => {
                members.push(format!("\"message\":{{\"role\":\"assistant\",{words}}}"));
            }
            ("response", false) => members.push(words.clone()),
            ("thinking" | "tool_calls", false) => {}
            (other, _) => members.push(format!("{}:{}", quote(other), member.raw())),
        }
    }
    Some(format!("{{{}}}", members.join(",")))
}

/// What parts say, as members.
fn words(parts: &[&Part], text_field: &str) -> String {
    let text = |kind: DeltaKind| -> String {
        let of_kind = parts.iter().filter(|part| part.kind == kind);
        of_kind.map(|part| part.text.as_str()).collect()
    };
    let mut members = vec![format!(
        "{}:{}",
        quote(text_field),
        quote(&text(DeltaKind::Text))
    )];
    let thinking = text(DeltaKind::Reasoning);
    if !thinking.is_empty() {
        members.push(format!("\"thinking\":{}", quote(&thinking)));
    }
    let calls = parts
        .iter()
        .filter_map(|part| Some((part, part.call.as_ref()?)));
    let calls: Vec<String> = (0..)
        .zip(calls)
        .map(|(index, (part, (id, name)))| {
            let id = match id.as_str() {
                "" => String::new(),
                id => format!("\"id\":{},", quote(id)),
            };
            let arguments = match part.text.as_str() {
                "" => "{}",
                arguments => arguments,
            };
            format!(
                "{{{id}\"function\":{{\"index\":{index},\"name\":{},\"arguments\":{arguments}}}}}",
                quote(name)
            )
        })
        .collect::<Vec<String>>();
    if !calls.is_empty() {
        members.push(format!("\"tool_calls\":[{}]", calls.join(",")));
    }
    members.join(",")
}
