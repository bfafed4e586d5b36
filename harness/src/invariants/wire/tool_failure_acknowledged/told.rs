//! Whether what a model is told of a tool's result owns up to a failure.
//!
//! It does where it carries what the tool really answered, or says so: by a member of JSON for an error that
//! holds one, by a status, or in words. It hides the failure where it can be read and does nothing of the kind.
//! What cannot be read, what only hints at trouble, and what came from elsewhere and so is not made up, proves
//! nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::phrases;
use crate::trace::ToolReport;

/// What becomes of a failure in what the model is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It is said.
    Failure,
    /// It is hidden.
    Nothing,
    /// That cannot be known.
    Unknown,
}

/// What is known of the failed call.
#[derive(Debug, Default)]
pub(super) struct Failed {
    /// The status of its answer.
    pub(super) status: Option<u16>,
    /// The texts of its answer.
    pub(super) answer: String,
    /// Whether that answer is an error, and not half of something else.
    pub(super) is_error: bool,
    /// What others answered until the model was told.
    pub(super) others: Vec<String>,
}

/// What was read in a report.
#[derive(Debug, Default)]
struct Read {
    /// It says that something failed.
    fails: bool,
    /// It hints at that.
    hints: bool,
    /// It says that all went well.
    is_well: bool,
    /// Everything in it that is no name of a member.
    text: String,
}

/// Members that stand for an error where they hold one.
const ERRORS: [&str; 14] = [
    "error",
    "errors",
    "err",
    "exception",
    "failure",
    "failures",
    "fault",
    "problem",
    "errormessage",
    "errormsg",
    "errorcode",
    "errortype",
    "traceback",
    "stacktrace",
];
/// Members that say by `false` that something failed.
const SUCCESSES: [&str; 5] = ["ok", "success", "succeeded", "successful", "issuccess"];
/// Members that say by `true` that something failed.
const FAILURES: [&str; 6] = [
    "iserror",
    "haserror",
    "failed",
    "timedout",
    "istimeout",
    "unavailable",
];
/// Members that hold a status.
const STATUSES: [&str; 5] = ["status", "statuscode", "httpstatus", "httpcode", "code"];
/// What stands in a member for an error where there is none.
const NO_ERROR: [&str; 9] = [
    "", "none", "null", "nil", "no", "ok", "false", "n/a", "success",
];

/// Judges what is told of a failed call.
pub(super) fn told(report: &ToolReport, failed: &Failed) -> Told {
    if says_so_beside(&report.text) {
        return Told::Failure;
    }
    let mut read = Read::default();
    let content = serde_json::from_str(&report.content);
    let content = content.unwrap_or_else(|_| Value::String(report.content.clone()));
    read.value(&content, failed);
    let said = words(&read.text);
    let carries = |answer: &str| shares(&words(answer), &said);
    if read.fails || (failed.is_error && carries(&failed.answer)) {
        return Told::Failure;
    }
    if read.hints
        || carries(&failed.answer)
        || failed
            .others
            .iter()
            .any(|other| shares(&said, &words(other)))
    {
        return Told::Unknown;
    }
    if is_empty(&content) || read.is_well {
        return Told::Nothing;
    }
    let is_data = said.len() > 1 || read.text.chars().any(|c| c.is_ascii_digit());
    if is_data && phrases::is_legible(&read.text) {
        Told::Nothing
    } else {
        Told::Unknown
    }
}

/// Whether the block around the content says that it is an error: `is_error`, `"status": "error"`.
fn says_so_beside(block: &str) -> bool {
    let Ok(Value::Object(block)) = serde_json::from_str(block) else {
        return false;
    };
    block.iter().any(|(name, value)| match flat(name).as_str() {
        "iserror" => *value == Value::Bool(true),
        "status" => value == "error",
        _ => false,
    })
}

/// A member's name without case and what parts its words.
fn flat(name: &str) -> String {
    let letters = name.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

fn is_empty(content: &Value) -> bool {
    match content {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => {
            let inner = serde_json::from_str(text).ok();
            text.trim().is_empty() || inner.is_some_and(|inner: Value| is_empty(&inner))
        }
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

impl Read {
    fn value(&mut self, value: &Value, failed: &Failed) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.keep(&number.to_string()),
            Value::String(text) => match serde_json::from_str(text) {
                Ok(inner @ (Value::Array(_) | Value::Object(_))) => self.value(&inner, failed),
                Ok(_) | Err(_) => self.prose(text, failed),
            },
            Value::Array(items) => items.iter().for_each(|item| self.value(item, failed)),
            Value::Object(members) => members
                .iter()
                .for_each(|(name, value)| self.member(&flat(name), value, failed)),
        }
    }

    fn member(&mut self, name: &str, value: &Value, failed: &Failed) {
        if ERRORS.contains(&name) {
            let fails = holds_an_error(value);
            self.fails |= fails;
            self.is_well |= !fails;
        } else if SUCCESSES.contains(&name) && value.is_boolean() {
            self.fails |= *value == Value::Bool(false);
            self.is_well |= *value == Value::Bool(true);
        } else if FAILURES.contains(&name) && value.is_boolean() {
            self.fails |= *value == Value::Bool(true);
        } else if STATUSES.contains(&name) && !(value.is_array() || value.is_object()) {
            self.status(name, value, failed);
        } else {
            self.value(value, failed);
        }
    }

    fn status(&mut self, name: &str, value: &Value, failed: &Failed) {
        let written = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let Ok(number) = written.trim().parse::<u16>() else {
            self.fails |= phrases::is_status_of_failure(&written);
            return self.value(value, failed);
        };
        let is_own = failed.status == Some(number);
        self.fails |= is_own || (name != "code" && (400..600).contains(&number));
        self.is_well |= (200..300).contains(&number);
    }

    fn prose(&mut self, text: &str, failed: &Failed) {
        self.fails |= phrases::says(text) || phrases::names_a_status(text, failed.status);
        self.hints |= phrases::hints(text);
        self.keep(text);
    }

    fn keep(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push(' ');
    }
}

/// Whether a member for an error holds one.
fn holds_an_error(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !NO_ERROR.contains(&text.trim().to_lowercase().as_str()),
        Value::Array(items) => items.iter().any(holds_an_error),
        Value::Object(members) => members.values().any(holds_an_error),
    }
}

/// The texts of an answer: the leaves of a document, or all of it.
pub(super) fn texts(answer: &str) -> String {
    fn leaves(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => texts.push(number.to_string()),
            Value::String(text) => texts.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| leaves(item, texts)),
            Value::Object(members) => members.values().for_each(|member| leaves(member, texts)),
        }
    }
    let Ok(document) = serde_json::from_str::<Value>(answer) else {
        return answer.to_owned();
    };
    let mut texts = Vec::new();
    leaves(&document, &mut texts);
    texts.join(" ")
}

/// Words of more than a letter, in lower case.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    let long = words.filter(|word| word.chars().count() > 1);
    long.map(str::to_owned).collect()
}

/// Whether most words of one text, and more than one or a long one, are in the other.
fn shares(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    const LONG: usize = 5;
    let shared: Vec<_> = one.intersection(other).collect();
    let is_telling = shared.len() > 1 || shared.iter().any(|word| word.chars().count() >= LONG);
    is_telling && 5 * shared.len() >= 3 * one.len()
}
