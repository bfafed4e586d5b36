//! Whether a tool result in a model request reports a failure.

use serde_json::Value;

use super::phrases;
use crate::trace::ToolReport;

/// How a result represents a failure, if structure or words decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reported {
    /// It hides the failure: it is empty or reports success.
    Hidden,
    /// It is reported.
    Failure,
}

/// Members that contain an error, unless they are empty.
const ERRORS: [&str; 4] = ["error", "errors", "exception", "traceback"];
/// Members that are true on success.
const SUCCESSES: [&str; 3] = ["ok", "success", "successful"];
/// Members that are true on failure.
const FAILURES: [&str; 3] = ["iserror", "failed", "timedout"];
/// Members that contain a status.
const STATUSES: [&str; 3] = ["status", "statuscode", "code"];

/// `answer` is the failed call's own response; a result that repeats it hides nothing.
pub(super) fn reported(report: &ToolReport, answer: &str) -> Option<Reported> {
    if let Ok(Value::Object(block)) = serde_json::from_str(&report.text)
        && block.iter().any(|(name, value)| match flat(name).as_str() {
            "iserror" => *value == Value::Bool(true),
            "status" => value == "error",
            _ => false,
        })
    {
        return Some(Reported::Failure);
    }
    let document = serde_json::from_str(&report.content);
    let document = document.unwrap_or_else(|_| Value::String(report.content.clone()));
    let content = document.as_str().unwrap_or(&report.content);
    if !answer.trim().is_empty() && content.contains(answer.trim()) {
        return Some(Reported::Failure);
    }
    of(&document)
}

/// What a document reports: a failure anywhere in it, else success.
fn of(value: &Value) -> Option<Reported> {
    match value {
        Value::Null => Some(Reported::Hidden),
        Value::Bool(_) | Value::Number(_) => None,
        Value::String(text) => prose(text),
        Value::Array(items) if items.is_empty() => Some(Reported::Hidden),
        Value::Array(items) => items.iter().map(of).max().flatten(),
        Value::Object(members) if members.is_empty() => Some(Reported::Hidden),
        Value::Object(members) => {
            let all = members.iter();
            let all = all.map(|(name, value)| member(&flat(name), value));
            all.max().flatten()
        }
    }
}

fn member(name: &str, value: &Value) -> Option<Reported> {
    let verdict = |fails| {
        Some(if fails {
            Reported::Failure
        } else {
            Reported::Hidden
        })
    };
    match value {
        _ if ERRORS.contains(&name) => verdict(holds_something(value)),
        Value::Bool(is) if SUCCESSES.contains(&name) => verdict(!is),
        Value::Bool(is) if FAILURES.contains(&name) => verdict(*is),
        Value::Number(number) if STATUSES.contains(&name) => match number.as_u64()? {
            200..400 => verdict(false),
            400..600 => verdict(true),
            _ => None,
        },
        // A part of a result may be missing without a false statement.
        Value::Null | Value::Array(_) | Value::Object(_) => {
            of(value).filter(|found| *found == Reported::Failure)
        }
        _ => of(value),
    }
}

fn prose(text: &str) -> Option<Reported> {
    if let Ok(inner @ (Value::Null | Value::Array(_) | Value::Object(_))) =
        serde_json::from_str(text)
    {
        return of(&inner);
    }
    if text.trim().is_empty() {
        return Some(Reported::Hidden);
    }
    (phrases::says(text) || phrases::names_a_status(text)).then_some(Reported::Failure)
}

/// A member's name in lower case, without word separators.
fn flat(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether a member for errors is non-empty.
fn holds_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => {
            !["", "none", "null", "no"].contains(&text.trim().to_lowercase().as_str())
        }
        Value::Array(items) => items.iter().any(holds_something),
        Value::Object(members) => members.values().any(holds_something),
    }
}
