//! `replays:`: recorded incidents, and sources of more.

use std::collections::BTreeSet;

use serde_json::{Map, json};
use squall_documents::{Fields, ValueReader};
use squall_journal::tape::ModelSource;

use super::chaos::Context;
use super::contract::ContractPart;
use super::session::{self, ReplaySession};
use crate::date_range::DateRange;

/// Incidents and their sources.
#[derive(Debug, Default)]
pub struct Replays {
    /// Sessions, including those in files.
    pub sessions: Vec<SuiteSession>,
    /// Where more are fetched from.
    pub sources: Vec<SessionSource>,
}

/// A project or a run of LangSmith that sessions are fetched from.
#[derive(Debug)]
pub struct SessionSource {
    /// The project's name, or the run's id.
    pub source: String,
    /// `error`, `warning` or `all`.
    pub status: &'static str,
    /// When its traces began.
    pub range: Option<DateRange>,
    /// Least duration of its traces, milliseconds.
    pub min_latency_ms: u64,
    /// Whether `ci` fetches it, as it does single runs.
    pub auto_import: bool,
}

/// One session of `replays.sessions`.
#[derive(Debug)]
pub enum SuiteSession {
    /// In a file that is not read yet.
    File,
    /// Written in the suite.
    Inline(Box<ReplaySession>),
}

impl Replays {
    /// Sets where responses to model calls come from, in all sessions.
    pub fn set_models(&mut self, models: ModelSource) {
        for session in &mut self.sessions {
            if let SuiteSession::Inline(replay) = session {
                replay.session.models = Some(models);
            }
        }
    }

    /// The contracts of sessions that have their own.
    pub fn contracts(&self) -> impl Iterator<Item = &ContractPart> {
        self.sessions.iter().filter_map(|session| match session {
            SuiteSession::File => None,
            SuiteSession::Inline(session) => session.contract.as_ref(),
        })
    }
}

pub(super) fn read(fields: &mut Fields<'_, '_>, context: Context<'_>) -> Replays {
    let mut ids = BTreeSet::new();
    let sessions = fields.field("sessions", "Incidents.", |value| {
        value.list("a list of replay sessions", |value| {
            let session = value.named("ReplaySession", |value| session(value, context))?;
            if let SuiteSession::Inline(inline) = &session
                && !inline.session.id.is_empty()
                && !ids.insert(inline.session.id.clone())
            {
                let id = &inline.session.id;
                value.error(format!("there is already a session `{id}`"));
            }
            Some(session)
        })
    });
    let sources = fields.field("sources", "Where more are fetched from.", |value| {
        value.list("a list of sources", |value| {
            value.fields("a source of sessions", source)
        })
    });
    Replays {
        sessions: sessions.unwrap_or_default(),
        sources: sources.unwrap_or_default(),
    }
}

fn session(value: &mut ValueReader<'_, '_>, context: Context<'_>) -> Option<SuiteSession> {
    value.fields("a replay session", |fields| {
        let about =
            "A file with the session; what is written beside it replaces what the file says.";
        let file = fields.words("file", about);
        let session = session::read(fields, context);
        fields.add_to_schema(|| {
            let either = json!([{ "required": ["file"] }, { "required": ["id", "input"] }]);
            Map::from_iter([("anyOf".to_owned(), either)])
        });
        if file.is_some() {
            return Some(SuiteSession::File);
        }
        if !fields.has("id") || !fields.has("input") {
            let message =
                "a session has `file`, or `id` and `input`, which is what the agent is asked";
            fields.reader.error(fields.position, message);
        }
        Some(SuiteSession::Inline(Box::new(session)))
    })
}

/// What each type of source names: a field and its description.
const SOURCES: [(&str, (&str, &str)); 2] = [
    ("langsmith", ("project", "the project's name")),
    ("langsmith_run", ("run_id", "the run's id")),
];

fn source(fields: &mut Fields<'_, '_>) -> Option<SessionSource> {
    fields.require("type", "`langsmith` or `langsmith_run`");
    let kind = fields.word("type", "What it is.", "source", &SOURCES);
    let project = fields.words("project", "Of `langsmith`: the project.");
    let run = fields.words("run_id", "Of `langsmith_run`: the run's id.");
    let filter = fields.block("filter", "Which of its runs.", "a filter", |fields| {
        let statuses = ["error", "warning", "all"].map(|status| (status, status));
        let about = "How they ended; default `error`.";
        let status = fields.word("status", about, "status", &statuses);
        let about = "When they began: `last_7_days`, `7d`, or two times with a slash.";
        let range = fields.parsed("date_range", about, DateRange::parse);
        let about = "Runs that took at least so many milliseconds.";
        let least = fields.whole("min_latency_ms", about, 0..=86_400_000, " milliseconds");
        Some((status, range, least.unwrap_or(0)))
    });
    let about = "Whether `ci` fetches its runs too; default false.";
    let auto_import = fields.flag("auto_import", about).unwrap_or(false);
    let (field, example) = kind?;
    fields.require(field, example);
    let (status, range, min_latency_ms) = filter.unwrap_or_default();
    let is_run = field == "run_id";
    let source = if is_run { run } else { project };
    Some(SessionSource {
        source: source?.value,
        status: status.unwrap_or("error"),
        range,
        min_latency_ms,
        auto_import: auto_import || is_run,
    })
}
