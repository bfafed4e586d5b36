//! Results of tools among the messages of a model call.

use squall_dialects::Dialect;
use squall_dialects::json::{Document, Edits, JsonKind, quote};
use squall_dialects::model::{Conversation, ResultSaying, ToolResult};

use super::unseen;
use crate::changes::{Amount, Injection, ResultChange, SchemaDrift, Tools};
use crate::faults::injection::{has_canary, inject_below, inject_into};
use crate::faults::schema_drift;

/// Changes the results of these tools that the model has not seen yet.
pub(super) fn change(
    change: &ResultChange,
    tools: &Tools,
    dialect: &dyn Dialect,
    body: &Document<'_>,
    conversation: &Conversation<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let mut changed = false;
    let mut why = NONE_HERE.to_owned();
    for result in of_tools(tools, conversation) {
        let done = match change {
            ResultChange::Instruction(_) if carries_canary(body, result) => Err(CARRIES.to_owned()),
            _ if result.says_nothing() && asks_for_words(change) => Err(SILENT.to_owned()),
            ResultChange::Output(text) | ResultChange::Instruction(text) => {
                dialect.say_result(edits, body, result, ResultSaying::Output(text));
                Ok(())
            }
            ResultChange::Failure(text) => {
                dialect.say_result(edits, body, result, ResultSaying::Failure(text));
                Ok(())
            }
            ResultChange::Truncate(amount) => match beginnings(*amount, body, result) {
                Some(kept) => {
                    dialect.say_result(edits, body, result, ResultSaying::Output(&kept));
                    Ok(())
                }
                None => Err(TOO_SHORT.to_owned()),
            },
            ResultChange::Drift(drift) => drift_in(drift, body, result, edits),
            ResultChange::Stale => replace(earlier(result, conversation), body, result, edits),
            ResultChange::Swapped => {
                replace(other(result, body, conversation), body, result, edits)
            }
        };
        match done {
            Ok(()) => changed = true,
            Err(reason) => why = reason,
        }
    }
    if changed { Ok(()) } else { Err(why) }
}

/// Puts an instruction into one of these tools' results; none that carries one already.
pub(super) fn inject(
    injection: &Injection,
    tools: &Tools,
    body: &Document<'_>,
    conversation: &Conversation<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let results: Vec<_> = of_tools(tools, conversation).collect();
    let clean: Vec<_> = results
        .iter()
        .filter(|result| !carries_canary(body, result) && !result.says_nothing())
        .collect();
    let count = u64::try_from(clean.len()).unwrap_or(u64::MAX);
    let Some(at) = injection.choice.checked_rem(count) else {
        return Err(match results.len() {
            0 => NONE_HERE.to_owned(),
            _ if results.iter().all(|result| result.says_nothing()) => SILENT.to_owned(),
            _ => CARRIES.to_owned(),
        });
    };
    let chosen = clean[usize::try_from(at).unwrap_or_default()];
    // Of a list of texts the last one: what is behind a text is behind all of it.
    match chosen.texts.last() {
        Some(text) if body.value(chosen.content).kind() != JsonKind::Object => {
            inject_into(injection, edits, body.value(text.place));
            Ok(())
        }
        _ => inject_below(injection, edits, body.value(chosen.content)),
    }
}

const CARRIES: &str = "the tool's result carries an injected instruction already";
const SILENT: &str = "the tool's result says nothing that could be changed";
const NONE_HERE: &str = "the request brings no tool's result that the rule is about";

/// Whether a change needs something that the tool has said.
fn asks_for_words(change: &ResultChange) -> bool {
    match change {
        ResultChange::Output(text) => text.is_empty(),
        ResultChange::Instruction(_) | ResultChange::Failure(_) => false,
        ResultChange::Truncate(_)
        | ResultChange::Drift(_)
        | ResultChange::Stale
        | ResultChange::Swapped => true,
    }
}

fn carries_canary(body: &Document<'_>, result: &ToolResult<'_>) -> bool {
    has_canary(body.value(result.content).raw())
}

fn of_tools<'c, 'd>(
    tools: &Tools,
    conversation: &'c Conversation<'d>,
) -> impl Iterator<Item = &'c ToolResult<'d>> {
    unseen(conversation).filter(|result| tools.has(result.tool.as_deref()))
}

/// The beginnings of all that a result says, a line each, in its order; of a result that says
/// nothing as text, the beginning of its JSON. `None` if none of it is longer.
fn beginnings(amount: Amount, body: &Document<'_>, result: &ToolResult<'_>) -> Option<String> {
    let texts = result.texts.iter().map(|said| (said.place, &*said.text));
    let values = result.values.iter();
    let values = values.map(|place| (*place, body.value(*place).raw()));
    let mut said: Vec<_> = texts.chain(values).collect();
    let content = body.value(result.content);
    if said.is_empty() || content.kind() == JsonKind::Object {
        said = vec![(result.content, content.raw())];
    }
    said.sort_by_key(|(place, _)| *place);
    let kept = said.iter().map(|(_, text)| beginning(text, amount));
    kept.clone().any(|kept| kept.is_some()).then(|| {
        let lines = said.iter().zip(kept);
        let lines = lines.map(|((_, whole), kept)| kept.unwrap_or(whole));
        let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        lines.join("\n")
    })
}

const TOO_SHORT: &str = "the tool's result is no longer than that";

/// The beginning of a text, ending between two characters; `None` if that is all of it.
fn beginning(text: &str, amount: Amount) -> Option<&str> {
    let length = amount.of(text.len());
    (length < text.len()).then(|| &text[..text.floor_char_boundary(length)])
}

/// Changes one field of the JSON in each of a result's texts, or of the JSON that it is.
fn drift_in(
    drift: &SchemaDrift,
    body: &Document<'_>,
    result: &ToolResult<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let content = body.value(result.content);
    if content.kind() == JsonKind::Object {
        return schema_drift::drift_below(drift, edits, content);
    }
    let mut done = Err("the tool's result holds no JSON".to_owned());
    for said in &result.texts {
        let Ok(inner) = Document::parse(said.text.as_bytes()) else {
            continue;
        };
        if !matches!(inner.root().kind(), JsonKind::Object | JsonKind::Array) {
            continue;
        }
        match drifted_text(drift, &said.text) {
            Ok(text) => {
                edits.replace(said.place, quote(&text));
                done = Ok(());
            }
            Err(why) if done.is_err() => done = Err(why),
            Err(_) => {}
        }
    }
    if done.is_ok() {
        return done;
    }
    // Blocks of JSON beside the texts.
    let blocks = content.items().filter_map(|block| block.get("json"));
    for block in blocks {
        if schema_drift::drift_below(drift, edits, block).is_ok() {
            done = Ok(());
        }
    }
    done
}

fn drifted_text(drift: &SchemaDrift, text: &str) -> Result<String, String> {
    let json = schema_drift::drifted(drift, text.as_bytes())?;
    String::from_utf8(json).map_err(|error| error.to_string())
}

/// Puts another result's content in a result's place.
fn replace(
    by: Option<&ToolResult<'_>>,
    body: &Document<'_>,
    result: &ToolResult<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let by = by.filter(|by| !by.says_nothing());
    let by = by.ok_or("the conversation holds no other result to give in its place")?;
    edits.replace(result.content, body.value(by.content).raw());
    Ok(())
}

/// What the same tool said the last time.
fn earlier<'c, 'd>(
    result: &ToolResult<'d>,
    conversation: &'c Conversation<'d>,
) -> Option<&'c ToolResult<'d>> {
    let before = conversation
        .tool_results
        .iter()
        .take_while(|other| other.place != result.place);
    before.filter(|other| other.tool == result.tool).last()
}

/// What another call was told: the nearest that was told something else.
fn other<'c, 'd>(
    result: &ToolResult<'d>,
    body: &Document<'_>,
    conversation: &'c Conversation<'d>,
) -> Option<&'c ToolResult<'d>> {
    let results = &conversation.tool_results;
    let at = results.iter().position(|one| one.place == result.place)?;
    let raw = |one: &ToolResult<'_>| -> String { body.value(one.content).raw().to_owned() };
    let differs = |other: &&ToolResult<'_>| raw(other) != raw(result);
    let before = results[..at].iter().rfind(differs);
    before.or_else(|| results[at + 1..].iter().find(differs))
}
