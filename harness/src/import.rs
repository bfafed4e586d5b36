//! Imports incidents that other tools recorded, as replay sessions.
//!
//! ```text
//! har, vcr ────────────────▶ http::HttpImport ─┐
//! otlp, langsmith, langfuse ─▶ Trace ──────────┼─▶ Imported: sessions, and what could not be mapped
//! flakestorm ──────────────────────────────────┘
//! ```
//!
//! Each format is a function from bytes to [`Imported`], without I/O. Secrets are redacted before a session leaves
//! this module.

mod fetch;
mod flakestorm;
mod har;
mod http;
mod langfuse;
mod langsmith;
mod message;
pub mod otlp;
#[cfg(test)]
mod tests;
mod trace;
mod vcr;

pub use self::fetch::{FetchError, Fetching, Service};

use std::borrow::Cow;
use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use squall_journal::redact::Redactor;
use squall_journal::tape::{Content, RecordedExchange, Session};

/// Longest file that is imported, bytes.
pub const LONGEST: usize = 64 << 20;

squall_documents::named! {
    /// What wrote an incident.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ImportFormat {
        /// HTTP archives, HAR 1.2.
        Har = "har",
        /// Sessions and JSON reports of flakestorm.
        Flakestorm = "flakestorm",
        /// Runs of LangSmith.
        Langsmith = "langsmith",
        /// Traces of Langfuse.
        Langfuse = "langfuse",
        /// Traces of OpenTelemetry.
        Otlp = "otlp",
        /// Cassettes of VCR.py and of Ruby's VCR.
        Vcr = "vcr",
    }
}

/// A part of an incident that is not in its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unmapped {
    /// The part: `POST https://api.example/v1/book`, `field user_id`.
    pub what: String,
    /// Why it could not be mapped.
    pub why: String,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// What is not in them.
    pub unmapped: Vec<Unmapped>,
}

/// How to import.
#[derive(Debug, Clone, Copy)]
pub struct ImportOptions<'a> {
    /// Name of the source: a file's name without its extension. The id of a session that has none.
    pub name: &'a str,
    /// Removes secrets.
    pub redactor: &'a Redactor,
    /// Names in the suite's `tools:`, if there is a suite.
    pub tools: Option<&'a BTreeSet<String>>,
}

impl Imported {
    fn leave_out(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.unmapped.push(Unmapped {
            what: what.into(),
            why: why.into(),
        });
    }

    /// Adds the result of another import.
    pub fn extend(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
        self.unmapped.extend(other.unmapped);
    }

    /// Numbers equal ids. Ids that differ only in case are equal: they are names of files.
    pub fn number_ids(&mut self) {
        let mut taken = BTreeSet::new();
        for session in &mut self.sessions {
            let id = &session.id;
            let numbered = (2..).map(|number| format!("{id}-{number}"));
            let mut all = std::iter::once(id.clone()).chain(numbered);
            let free = all.find(|id| taken.insert(id.to_ascii_lowercase()));
            let free = free.unwrap_or_default();
            if free != *id {
                self.unmapped.push(Unmapped {
                    what: format!("the id {id}"),
                    why: format!("another session has it; the second one is {free}"),
                });
                session.id = free;
            }
        }
    }

    /// Redacts everything, gives each session an id of its own, and lists what is missing in the sessions.
    fn finish(mut self, options: ImportOptions<'_>) -> Self {
        let mut tools = BTreeSet::new();
        for session in &mut self.sessions {
            redact(options.redactor, session);
            session.id = session_id(&session.id, options.name);
        }
        self.number_ids();
        let mut sessions = std::mem::take(&mut self.sessions);
        for session in &mut sessions {
            if session.input.is_empty() {
                let why = "no user message was found; write `input` into the session before a run replays it";
                self.leave_out(format!("the input of {}", session.id), why);
            }
            tools.extend(session.tool_responses.iter().map(|one| one.tool.clone()));
        }
        self.sessions = sessions;
        for tool in tools {
            if options.tools.is_some_and(|known| !known.contains(&tool)) {
                let why = "the suite's `tools:` does not name it, so only MCP calls of a tool with this name get its responses";
                self.leave_out(format!("requests of tool {tool}"), why);
            }
        }
        for one in &mut self.unmapped {
            options.redactor.text(&mut one.what, 300);
            options.redactor.text(&mut one.why, 300);
        }
        self
    }
}

/// Imports a file.
pub fn read(
    format: ImportFormat,
    bytes: &[u8],
    options: ImportOptions<'_>,
) -> Result<Imported, String> {
    if bytes.len() > LONGEST {
        return Err(format!("it has more than {} MiB", LONGEST >> 20));
    }
    let imported = match format {
        ImportFormat::Har => har::read(&json(bytes)?, options),
        ImportFormat::Flakestorm => flakestorm::read(&document(bytes)?, options.name),
        ImportFormat::Vcr => vcr::read(text(bytes)?, options),
        ImportFormat::Langsmith => langsmith::read(&lines(bytes)?),
        ImportFormat::Langfuse => langfuse::read(&lines(bytes)?),
        ImportFormat::Otlp => otlp::read(bytes),
    };
    imported.map(|imported| imported.finish(options))
}

/// A text in UTF-8, without a byte order mark.
fn text(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8: {error}"))?;
    Ok(text.trim_start_matches('\u{feff}'))
}

fn json(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_str(text(bytes)?).map_err(|error| format!("it is not JSON: {error}"))
}

/// A document in JSON, or a list of the documents on the lines.
fn lines(bytes: &[u8]) -> Result<Value, String> {
    let documents = serde_json::Deserializer::from_str(text(bytes)?).into_iter::<Value>();
    let documents: Result<Vec<Value>, _> = documents.collect();
    let mut documents = documents.map_err(|error| format!("it is not JSON: {error}"))?;
    match documents.len() {
        1 => Ok(documents.remove(0)),
        _ => Ok(documents.into()),
    }
}

/// The sessions of spans.
pub fn of_spans(spans: Vec<otlp::Span>, redactor: &Redactor) -> Imported {
    let options = ImportOptions {
        name: "trace",
        redactor,
        tools: None,
    };
    otlp::sessions((spans, 0)).finish(options)
}

/// A document in JSON or YAML.
fn document(bytes: &[u8]) -> Result<Value, String> {
    let text = text(bytes)?;
    if text.trim_start().starts_with(['{', '[']) {
        return json(bytes);
    }
    let tree = squall_documents::parse("", text);
    tree.map(|tree| tree.value.to_json())
        .map_err(|error| format!("line {}: {}", error.position.line, error.message))
}

/// The entries of a list, or the one value without a list.
fn entries(value: &Value) -> &[Value] {
    let list = value.as_array();
    list.map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// A text member that is not blank.
fn words<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    let text = value.get(name)?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

/// An id that is valid in file names and in the API, made from `text` or else from `name`.
fn session_id(text: &str, name: &str) -> String {
    let valid = |text: &str| -> String {
        let letters = text.chars().take(60).map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => letter,
            _ => '-',
        });
        let id: String = letters.collect();
        id.trim_matches(['-', '.']).to_owned()
    };
    let ids = [valid(text), valid(name)];
    let id = ids.into_iter().find(|id| !id.is_empty());
    id.unwrap_or_else(|| "session".to_owned())
}

/// Removes secrets from every text of a session.
fn redact(redactor: &Redactor, session: &mut Session) {
    let texts = [
        Some(&mut session.id),
        session.name.as_mut(),
        session.source.as_mut(),
        session.expected_failure.as_mut(),
    ];
    for text in texts.into_iter().flatten().chain(&mut session.input) {
        redactor.text(text, usize::MAX);
    }
    session
        .context
        .iter_mut()
        .for_each(|it| redactor.document(it));
    for one in &mut session.tool_responses {
        redactor.text(&mut one.tool, usize::MAX);
        redactor.document(&mut one.response);
    }
    let recorded = session
        .llm_responses
        .iter_mut()
        .chain(&mut session.exchanges);
    recorded.for_each(|exchange| redact_exchange(redactor, exchange));
}

fn redact_exchange(redactor: &Redactor, exchange: &mut RecordedExchange) {
    let (matching, answer) = (&mut exchange.matching, &mut exchange.answer);
    if let Some(url) = &mut matching.url {
        redactor.url(url, usize::MAX);
    }
    if let Some(body) = &mut matching.body {
        body.0 = redactor.body(None, &body.0);
    }
    for (name, value) in &mut answer.headers {
        if let Cow::Owned(redacted) = redactor.header(name, value) {
            *value = redacted;
        }
    }
    let pieces = match &mut answer.content {
        Content::Body(body) => std::slice::from_mut(body).iter_mut().collect(),
        Content::Stream(pieces) => pieces.iter_mut().map(|it| &mut it.data).collect::<Vec<_>>(),
    };
    for data in pieces {
        data.0 = redactor.body(None, &data.0);
    }
}
