//! Answers and chunks that are made up, or say something else.

use super::answer::{REASONING, index, items};
use crate::dialect::{Event, Transcript};
use crate::json::{Edits, Value, quote};
use crate::model::{DeltaKind, Finish, Saying};
use crate::stream::Made;

/// The `finish_reason` for a neutral word, as JSON. A refusal ends with `stop` here, and an
/// overflowing context with `length`.
pub(super) fn finish_word(finish: &Finish) -> String {
    match finish {
        Finish::Done | Finish::Refused | Finish::BadTool => quote("stop"),
        Finish::Length | Finish::Context => quote("length"),
        Finish::Tool => quote("tool_calls"),
        Finish::Filtered => quote("content_filter"),
        Finish::Foreign(word) => quote(word),
    }
}

/// A chunk made after another one of `choice`: with this delta and finish reason, no other choice
/// and no token counts. `None` when that one holds no such choice.
pub(super) fn chunk(event: Event<'_>, choice: u64, delta: &str, finish: &str) -> Option<Made> {
    let root = event.root();
    let mut edits = Edits::new(event.document);
    let mut found = false;
    for (position, item) in (0..).zip(items(root.get("choices"))) {
        let there = item
            .get("delta")
            .filter(|_| !found && index(item, position) == choice);
        let Some(there) = there else {
            edits.remove(item.id());
            continue;
        };
        found = true;
        edits.replace(there.id(), delta);
        match item.get("finish_reason") {
            Some(reason) => edits.replace(reason.id(), finish),
            // Some servers mention it only at the end.
            None if finish == "null" => {}
            None => edits.insert_after(there.id(), "finish_reason", finish),
        }
        if let Some(logprobs) = item.get("logprobs") {
            edits.replace(logprobs.id(), "null");
        }
    }
    if let Some(usage) = root.get("usage") {
        edits.replace(usage.id(), "null");
    }
    found.then(|| Made::data(edits.apply()))
}

/// A chunk made after another one of `choice` that says this.
pub(super) fn say_chunk(event: Event<'_>, choice: u64, saying: Saying<'_>) -> Option<Made> {
    let mut choices = (0..).zip(items(event.root().get("choices")));
    let found = choices.find(|(position, item)| index(*item, *position) == choice)?;
    // Who speaks is said once.
    let role = found.1.get("delta")?.get("role");
    let role = role.map_or_else(String::new, |role| format!("\"role\":{},", role.raw()));
    let delta = match saying {
        Saying::Text(text) => format!("{{{role}\"content\":{}}}", quote(text)),
        Saying::Refusal(text) => {
            format!("{{{role}\"content\":null,\"refusal\":{}}}", quote(text))
        }
    };
    chunk(event, choice, &delta, "null")
}

/// Makes a whole answer's choice say this and nothing else, behind its thinking.
pub(super) fn say(
    edits: &mut Edits<'_>,
    root: Value<'_>,
    choice: u64,
    saying: Saying<'_>,
    finish: &Finish,
) -> bool {
    let mut choices = (0..).zip(items(root.get("choices")));
    let found = choices.find(|(position, item)| index(*item, *position) == choice);
    let Some((item, message)) = found.and_then(|(_, item)| Some((item, item.get("message")?)))
    else {
        return false;
    };
    let (content, refusal) = match saying {
        Saying::Text(text) => (quote(text), "null".to_owned()),
        Saying::Refusal(text) => ("null".to_owned(), quote(text)),
    };
    let content = behind_thoughts(message.get("content"), saying).unwrap_or(content);
    match (message.get("content"), message.members().last()) {
        (Some(there), _) => edits.replace(there.id(), content),
        (None, Some(last)) => edits.insert_after(last.id(), "content", &content),
        (None, None) => return false,
    }
    match (message.get("refusal"), message.get("content")) {
        (Some(there), _) => edits.replace(there.id(), refusal),
        (None, Some(there)) if refusal != "null" => {
            edits.insert_after(there.id(), "refusal", &refusal);
        }
        (None, _) => {}
    }
    for member in message.members() {
        let says_more = matches!(
            member.key().as_deref(),
            Some("tool_calls" | "function_call" | "audio")
        );
        if says_more {
            edits.remove(member.id());
        }
    }
    if let Some(reason) = item.get("finish_reason") {
        edits.replace(reason.id(), finish_word(finish));
    }
    if let Some(logprobs) = item.get("logprobs") {
        edits.replace(logprobs.id(), "null");
    }
    true
}

/// A content in parts that says this behind its thinking, as Mistral writes it; `None`: it holds none.
fn behind_thoughts(content: Option<Value<'_>>, saying: Saying<'_>) -> Option<String> {
    let thoughts = items(content).take_while(|part| part.get("thinking").is_some());
    let mut parts: Vec<String> = thoughts.map(|part| part.raw().to_owned()).collect();
    if parts.is_empty() {
        return None;
    }
    if let Saying::Text(text) = saying
        && !text.is_empty()
    {
        parts.push(format!("{{\"type\":\"text\",\"text\":{}}}", quote(text)));
    }
    Some(format!("[{}]", parts.join(",")))
}

/// The `chat.completion` that says what a stream of chunks said.
pub(super) fn whole(transcript: &Transcript<'_>) -> Option<String> {
    let first = transcript.first.root();
    let mut choices: Vec<u64> = transcript.parts.iter().map(|part| part.choice).collect();
    choices.extend(transcript.finishes.iter().map(|(choice, _)| *choice));
    choices.sort_unstable();
    choices.dedup();
    if choices.is_empty() {
        return None;
    }
    let choices: Vec<String> = choices
        .into_iter()
        .map(|choice| whole_choice(transcript, choice))
        .collect();
    let mut members = Vec::new();
    for member in first.members() {
        let key = member.key()?;
        match &*key {
            "object" => members.push("\"object\":\"chat.completion\"".to_owned()),
            "choices" => members.push(format!("\"choices\":[{}]", choices.join(","))),
            // Padding of streams, and what follows below.
            "usage" | "obfuscation" => {}
            other => members.push(format!("{}:{}", quote(other), member.raw())),
        }
    }
    let counts = transcript
        .last
        .root()
        .get("usage")
        .filter(|usage| !usage.is_null());
    let usage = match (counts, transcript.tokens) {
        (Some(usage), _) => usage.raw().to_owned(),
        (None, (Some(input), Some(output))) => format!(
            "{{\"prompt_tokens\":{input},\"completion_tokens\":{output},\"total_tokens\":{}}}",
            input.saturating_add(output)
        ),
        (None, _) => "null".to_owned(),
    };
    members.push(format!("\"usage\":{usage}"));
    Some(format!("{{{}}}", members.join(",")))
}

/// Lists that stand one behind the other, as one.
fn one_list(lists: &str) -> String {
    let (mut items, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    let (mut in_text, mut escaped) = (false, false);
    for (at, byte) in lists.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth += 1;
                begin = if depth == 1 { at + 1 } else { begin };
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    items.push(lists[begin..at].trim());
                }
            }
            _ => {}
        }
    }
    format!("[{}]", items.join(","))
}

fn whole_choice(transcript: &Transcript<'_>, choice: u64) -> String {
    let parts = || transcript.parts.iter().filter(|part| part.choice == choice);
    let text = |kind: DeltaKind| {
        let mut of_kind = parts().filter(|part| part.kind == kind).peekable();
        of_kind.peek()?;
        let text: String = of_kind.map(|part| part.text.as_str()).collect();
        (!text.is_empty()).then(|| quote(&text))
    };
    let null = || "null".to_owned();
    let mut message = vec![
        "\"role\":\"assistant\"".to_owned(),
        format!("\"content\":{}", text(DeltaKind::Text).unwrap_or_else(null)),
        format!(
            "\"refusal\":{}",
            text(DeltaKind::Refusal).unwrap_or_else(null)
        ),
    ];
    for thinking in parts().filter(|part| part.kind == DeltaKind::Reasoning) {
        let name = match thinking.part {
            REASONING => "reasoning",
            _ => "reasoning_content",
        };
        if !thinking.text.is_empty() {
            message.push(format!("\"{name}\":{}", quote(&thinking.text)));
        }
        let details = thinking.signature.as_deref().map(one_list);
        message.extend(details.map(|details| format!("\"reasoning_details\":{details}")));
    }
    let calls: Vec<String> = parts()
        .filter_map(|part| {
            let (id, name) = part.call.as_ref()?;
            Some(format!(
                "{{\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{}}}}}",
                quote(id),
                quote(name),
                quote(&part.text)
            ))
        })
        .collect();
    if !calls.is_empty() {
        message.push(format!("\"tool_calls\":[{}]", calls.join(",")));
    }
    let mut finishes = transcript.finishes.iter();
    let finish = finishes.find(|(ended, _)| *ended == choice);
    format!(
        "{{\"index\":{choice},\"message\":{{{message}}},\"logprobs\":null,\"finish_reason\":{}}}",
        finish.map_or_else(null, |(_, finish)| finish_word(finish)),
        message = message.join(","),
    )
}

#[cfg(test)]
mod tests {
    use super::one_list;

    #[test]
    fn lists_become_one_whatever_stands_in_them() {
        for (lists, one) in [
            ("[1]", "[1]"),
            (
                r#"[{"a":"]["}][{"b":[2]},3]"#,
                r#"[{"a":"]["},{"b":[2]},3]"#,
            ),
        ] {
            assert_eq!(one_list(lists), one);
        }
    }
}
