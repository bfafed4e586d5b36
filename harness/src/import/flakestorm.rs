//! flakestorm: replay sessions, configurations that contain some, and JSON reports, whose failed results become
//! sessions with the mutated prompt.

use serde_json::{Map, Value};
use squall_journal::tape::Session;

use super::{Imported, entries, words};

/// The fields of flakestorm's sessions.
const FIELDS: [&str; 9] = [
    "id",
    "name",
    "source",
    "captured_at",
    "input",
    "context",
    "tool_responses",
    "expected_failure",
    "contract",
];

pub(super) fn read(document: &Value, name: &str) -> Result<Imported, String> {
    let mut imported = Imported::default();
    if let Some(results) = document["mutations"].as_array() {
        let started = words(document, "started_at");
        for (result, number) in results.iter().zip(1..) {
            failure(
                result,
                format!("{name}-{number:03}"),
                started,
                &mut imported,
            );
        }
        return Ok(imported);
    }
    if let Some(cells) = document["cells"].as_array() {
        for cell in cells.iter().filter(|cell| cell["passed"] == false) {
            let text = |name: &str| words(cell, name).unwrap_or("?");
            let what = format!("{} under {}", text("invariant_id"), text("scenario_name"));
            imported.leave_out(what, "a report of a contract does not have the prompts");
        }
        return Ok(imported);
    }
    let listed = document.pointer("/replays/sessions").unwrap_or(document);
    for listed in entries(listed) {
        if let Some(file) = words(listed, "file") {
            imported.leave_out(
                format!("session {file}"),
                "it is in another file; import that file",
            );
        } else {
            imported
                .sessions
                .extend(session(listed, &mut imported.unmapped)?);
        }
    }
    Ok(imported)
}

/// A session of flakestorm. Other fields are listed.
fn session(listed: &Value, unmapped: &mut Vec<super::Unmapped>) -> Result<Option<Session>, String> {
    let members = listed.as_object();
    let members = members.filter(|it| it.contains_key("input") || it.contains_key("id"));
    let members = members.ok_or(
        "it is neither a session (`id`, `input`), a configuration with `replays`, nor a JSON report with `mutations`",
    )?;
    let mut known = Map::new();
    for (name, value) in members {
        if FIELDS.contains(&name.as_str()) {
            // flakestorm writes null for what is absent.
            if !value.is_null() {
                known.insert(name.clone(), value.clone());
            }
        } else {
            unmapped.push(super::Unmapped {
                what: format!("field `{name}`"),
                why: "sessions have no such field".to_owned(),
            });
        }
    }
    let text = Value::from(known).to_string();
    let read = crate::session::parse("", &text);
    read.map(Some).map_err(|errors| {
        let each = errors.iter();
        let told: Vec<_> = each
            .map(|it| format!("{}: {}", it.pointer, it.message))
            .collect();
        told.join("; ")
    })
}

/// A failed result of a report.
fn failure(result: &Value, id: String, started: Option<&str>, imported: &mut Imported) {
    if result["passed"] != false {
        return;
    }
    let mutation = &result["mutation"];
    let Some(input) = words(mutation, "mutated").or_else(|| words(result, "original_prompt"))
    else {
        return imported.leave_out(id, "the result has no prompt");
    };
    let checks = result["checks"].as_array().into_iter().flatten();
    let failed = checks
        .filter(|check| check["passed"] == false)
        .map(|check| {
            let (kind, details) = (words(check, "check_type"), words(check, "details"));
            format!(
                "{}: {}",
                kind.unwrap_or("check"),
                details.unwrap_or("failed")
            )
        });
    let reasons: Vec<_> = words(result, "error")
        .map(str::to_owned)
        .into_iter()
        .chain(failed)
        .collect();
    let kind = words(mutation, "type").unwrap_or("mutation");
    let original = words(result, "original_prompt").unwrap_or_default();
    imported.sessions.push(Session {
        id,
        name: Some(format!("{kind} of: {original}")),
        source: Some("flakestorm report".to_owned()),
        captured_at: words(mutation, "created_at").or(started).map(str::to_owned),
        input: vec![input.to_owned()],
        expected_failure: (!reasons.is_empty()).then(|| reasons.join("; ")),
        ..Session::default()
    });
}
