//! Changes one message that answers a call.

use squall_dialects::json::{Document, Edits, JsonKind, Value, quote};
use squall_dialects::mcp::{Id, Message, Text, TextPart};

use super::super::schema_drift;
use crate::changes::Amount;
use crate::changes::{ListDrift, ListDriftKind, SchemaDrift};

fn result_of(message: Message<'_>) -> Result<Value<'_>, String> {
    message
        .result()
        .ok_or_else(|| "the call was answered with an error".to_owned())
}

pub(super) fn readdress(
    message: Message<'_>,
    edits: &mut Edits<'_>,
    to: &dyn Fn(&Id) -> Id,
) -> Result<(), String> {
    let (id, place) = message
        .answers()
        .zip(message.id_place())
        .ok_or("the answer has no id")?;
    edits.replace(place, to(&id).as_json());
    Ok(())
}

/// Shortens the texts of a result, separately from its structured content, because both usually
/// have the same content.
pub(super) fn truncate(
    amount: Amount,
    message: Message<'_>,
    document: &Document<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    result_of(message)?;
    let texts = message.texts();
    let (structured, content): (Vec<Text>, Vec<Text>) = texts
        .iter()
        .partition(|text| text.part == TextPart::Structured);
    let mut longest = 0;
    for texts in [content, structured] {
        let read = |text: &Text| document.value(text.place).as_str().unwrap_or_default();
        let length: usize = texts.iter().map(|text| read(text).len()).sum();
        longest = longest.max(length);
        let mut left = amount.of(length);
        for text in &texts {
            let said = read(text);
            if said.len() > left {
                let cut = &said[..said.floor_char_boundary(left)];
                edits.replace(text.place, quote(cut));
            }
            left = left.saturating_sub(said.len());
        }
    }
    if edits.is_empty() {
        return Err(format!(
            "the result's text has {longest} bytes, and none is cut"
        ));
    }
    Ok(())
}

/// Lets a field drift in what the tool said: in what it says to programs, and in the JSON that it
/// says in words; if it is in none of those, in the result around them.
pub(super) fn drift_result(
    drift: &SchemaDrift,
    message: Message<'_>,
    whole: &Document<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let result = result_of(message)?;
    let structured = result.get("structuredContent");
    let texts = message.texts().into_iter();
    let spoken: Vec<(Value<'_>, String)> = texts
        .filter(|text| text.part == TextPart::Content)
        .map(|text| whole.value(text.place))
        .filter_map(|text| Some((text, text.as_str()?.into_owned())))
        .collect();
    let documents: Vec<(Value<'_>, Document<'_>)> = spoken
        .iter()
        .filter_map(|(place, text)| Some((*place, Document::parse(text.as_bytes()).ok()?)))
        .filter(|(_, document)| {
            matches!(document.root().kind(), JsonKind::Object | JsonKind::Array)
        })
        .collect();
    let field = structured
        .and_then(|part| schema_drift::field_of(drift, [part]))
        .or_else(|| {
            documents
                .iter()
                .find_map(|(_, document)| schema_drift::field_of(drift, [document.root()]))
        })
        .or_else(|| schema_drift::field_of(drift, [result]))
        .ok_or("the result has no fields")?;
    let drift = SchemaDrift {
        field: Some(field),
        ..drift.clone()
    };
    let mut outcome = Err(String::new());
    if let Some(structured) = structured {
        outcome = outcome.or(schema_drift::drift_below(&drift, edits, structured));
    }
    for (place, document) in &documents {
        let drifted = schema_drift::drifted(&drift, document.text().as_bytes());
        match drifted.map(String::from_utf8) {
            Ok(Ok(text)) => {
                edits.replace(place.id(), quote(&text));
                outcome = Ok(());
            }
            Ok(Err(_)) => {}
            Err(why) => outcome = outcome.or(Err(why)),
        }
    }
    outcome.or_else(|_| schema_drift::drift_below(&drift, edits, result))
}

pub(super) fn drift_list(
    drift: &ListDrift,
    instruction: &str,
    message: Message<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    result_of(message)?;
    let (list, tools) = message.tools().ok_or("the answer lists no tools")?;
    let tools: Vec<Value<'_>> = tools
        .into_iter()
        .filter(|item| {
            let wanted = drift.tools.as_ref();
            wanted.is_none_or(|glob| glob.matches(&item.name))
        })
        .map(|item| item.tool)
        .collect();
    if tools.is_empty() {
        return Err(match &drift.tools {
            Some(glob) => format!("the list has no tool called `{}`", glob.as_str()),
            None => "the list of tools is empty already".to_owned(),
        });
    }
    if drift.kind == ListDriftKind::Empty && drift.tools.is_none() {
        edits.replace(list.id(), "[]");
        return Ok(());
    }
    let mut changed = false;
    for tool in tools {
        changed |= match drift.kind {
            ListDriftKind::Description => describe_otherwise(tool, instruction, edits),
            ListDriftKind::Schema => rename_argument(tool, edits),
            ListDriftKind::Duplicates => {
                edits.replace(tool.id(), format!("{},{}", tool.raw(), tool.raw()));
                true
            }
            ListDriftKind::Empty => {
                edits.remove(tool.id());
                true
            }
        };
    }
    if changed {
        Ok(())
    } else {
        Err("no tool of the list takes an argument".to_owned())
    }
}

fn describe_otherwise(tool: Value<'_>, instruction: &str, edits: &mut Edits<'_>) -> bool {
    if let Some(description) = tool.get("description") {
        let before = description.as_str().unwrap_or_default();
        let after = format!("{before} {instruction}");
        edits.replace(description.id(), quote(after.trim()));
        return true;
    }
    let Some(name) = tool.get("name") else {
        return false;
    };
    edits.insert_after(name.id(), "description", quote(instruction));
    true
}

/// Renames a tool's first argument, in its properties and its required list.
fn rename_argument(tool: Value<'_>, edits: &mut Edits<'_>) -> bool {
    let schema = tool.get("inputSchema");
    let first = schema
        .and_then(|schema| schema.get("properties"))
        .and_then(|properties| properties.members().next());
    let Some((first, name)) = first.and_then(|first| Some((first, first.key()?))) else {
        return false;
    };
    let other = format!("{name}_v2");
    edits.rename(first.id(), &other);
    let required = schema.and_then(|schema| schema.get("required"));
    for required in required.into_iter().flat_map(Value::items) {
        if required.as_str().as_ref() == Some(&name) {
            edits.replace(required.id(), quote(&other));
        }
    }
    true
}
