//! `replays:`: recorded incidents, and sources of more.

use std::collections::BTreeSet;

use serde_json::{Map, json};

use squall_documents::{Fields, Position, ValueReader};
pub use squall_journal::tape::Session as ReplaySession;

use crate::session;

/// Incidents and their sources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replays {
    /// Sessions, including those in files.
    pub sessions: Vec<Session>,
    /// Sources of more sessions.
    pub sources: Vec<IncidentSource>,
}

/// One session of `replays.sessions`.
#[derive(Debug, Clone, PartialEq)]
pub enum Session {
    /// A file, with a path relative to the suite's.
    File {
        /// The path as written.
        path: String,
        /// Its position.
        position: Position,
    },
    /// Written in the suite.
    Inline(Box<ReplaySession>),
}

/// A source of sessions.
#[derive(Debug, Clone, PartialEq)]
pub enum IncidentSource {
    /// Runs of a `LangSmith` project.
    LangSmith {
        /// The project.
        project: String,
        /// Selects runs of the project.
        filter: Filter,
        /// Whether every run of the suite imports them. Default false.
        auto_import: bool,
    },
    /// One run of `LangSmith`.
    LangSmithRun {
        /// Its id.
        run_id: String,
    },
}

/// Selects runs of a project.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// The status of the runs. Default: error.
    pub status: FilterStatus,
    /// For example `last_7_days`; absent: any time.
    pub date_range: Option<String>,
    /// Minimum duration of the runs, in milliseconds.
    pub min_latency_ms: Option<u64>,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FilterStatus {
    /// It ended with an error.
    #[default]
    Error,
    /// It ended without an error, but with a problem.
    Warning,
    /// Any status.
    All,
}

pub(super) const STATUSES: [(&str, FilterStatus); 3] = [
    ("error", FilterStatus::Error),
    ("warning", FilterStatus::Warning),
    ("all", FilterStatus::All),
];

#[derive(Clone, Copy, PartialEq)]
pub(super) enum SourceType {
    Project,
    Run,
}

pub(super) const SOURCES: [(&str, SourceType); 2] = [
    ("langsmith", SourceType::Project),
    ("langsmith_run", SourceType::Run),
];

pub(super) fn read(fields: &mut Fields<'_, '_>) -> Replays {
    let mut ids = BTreeSet::new();
    let sessions = fields.field("sessions", "Incidents.", |value| {
        value.list("a list of replay sessions", |value| {
            let session = value.named("ReplaySession", session)?;
            if let Session::Inline(inline) = &session
                && !ids.insert(inline.id.clone())
            {
                value.error(format!("a session `{}` stands here already", inline.id));
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

fn session(value: &mut ValueReader<'_, '_>) -> Option<Session> {
    value.fields("a replay session", |fields| {
        let about =
            "A file with the session; what is written beside it replaces what the file says.";
        let file = fields.words("file", about);
        let session = session::read(fields);
        fields.add_to_schema(|| {
            let either = json!([{ "required": ["file"] }, { "required": ["id", "input"] }]);
            Map::from_iter([("anyOf".to_owned(), either)])
        });
        if let Some(file) = file {
            return Some(Session::File {
                path: file.value,
                position: file.position,
            });
        }
        if !fields.has("id") || !fields.has("input") {
            let message = "a session has `file`, or `id` and `input`";
            fields.reader.error(fields.position, message);
        }
        Some(Session::Inline(Box::new(session)))
    })
}

fn source(fields: &mut Fields<'_, '_>) -> Option<IncidentSource> {
    fields.require("type", "`langsmith` or `langsmith_run`");
    let kind = fields.word("type", "What it is.", "source", &SOURCES);
    let project = fields.words("project", "Of `langsmith`: the project.");
    let run_id = fields.words("run_id", "Of `langsmith_run`: the run's id.");
    let filter = fields.block("filter", "Which of its runs.", "a filter", |fields| {
        let about = "How they ended; default `error`.";
        let status = fields.word("status", about, "status", &STATUSES);
        let date_range = fields.words("date_range", "As `last_7_days`.");
        let about = "Runs that took at least so many milliseconds.";
        let least = fields.whole("min_latency_ms", about, 0..=86_400_000, " milliseconds");
        Some(Filter {
            status: status.unwrap_or_default(),
            date_range: date_range.map(|text| text.value),
            min_latency_ms: least,
        })
    });
    let about = "Whether every run fetches them; default false.";
    let auto_import = fields.flag("auto_import", about).unwrap_or(false);
    match kind? {
        SourceType::Project => {
            fields.require("project", "the project's name");
            Some(IncidentSource::LangSmith {
                project: project?.value,
                filter: filter.unwrap_or_default(),
                auto_import,
            })
        }
        SourceType::Run => {
            fields.require("run_id", "the run's id");
            Some(IncidentSource::LangSmithRun {
                run_id: run_id?.value,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::*;
    use crate::suite::{self, Suite, SuiteError};

    fn parsed(session: &str) -> Result<Suite, Vec<SuiteError>> {
        let text = format!(
            "agent: {{endpoint: 'http://a.test/'}}\ngolden_prompts: [x]\ninvariants: [{{type: completes}}]\n\
             replays: {{sessions: [{session}]}}\n"
        );
        suite::parse("s", &text, Variables::Refused)
    }

    #[test]
    fn a_file_that_is_null_is_as_good_as_none() {
        let suite = parsed("{file: null, id: one, input: hello}").expect("valid");
        assert!(
            matches!(&suite.replays.sessions[..], [Session::Inline(session)] if session.id == "one"),
            "{:?}",
            suite.replays.sessions
        );
        for nothing in ["{file: null}", "{file: }"] {
            let errors = parsed(nothing).expect_err("nothing to play");
            assert_eq!(
                errors[0].message,
                "a session has `file`, or `id` and `input`"
            );
        }
    }

    #[test]
    fn what_of_a_session_changes_nothing_is_a_note_of_the_suite() {
        let suite =
            parsed("{id: one, input: x, tool_responses: [{tool: t, status: 0, response: y}]}");
        let notes = suite.expect("valid").notes;
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert_eq!(
            notes[0].pointer,
            "/replays/sessions/0/tool_responses/0/response"
        );
    }
}
