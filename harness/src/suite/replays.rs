//! `replays:`: incidents that must not happen again, and where more of them come from.

use std::collections::BTreeSet;

pub use squall_journal::tape::Session as ReplaySession;
use squall_profiles::document::{At, Tree};
use squall_profiles::error::Position;

use super::reader::{Fields, Reader};
use crate::session;

/// Incidents and where they come from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replays {
    /// Sessions, those in files included.
    pub sessions: Vec<Session>,
    /// Where more are fetched from.
    pub sources: Vec<Source>,
}

/// One session of `replays.sessions`.
#[derive(Debug, Clone, PartialEq)]
pub enum Session {
    /// It stands in a file, relative to the suite's.
    File {
        /// The path as it was written.
        path: String,
        /// Where it was written.
        position: Position,
    },
    /// It stands in the suite.
    Inline(Box<ReplaySession>),
}

/// Where sessions are fetched from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Runs of a `LangSmith` project.
    LangSmith {
        /// The project.
        project: String,
        /// Which of its runs.
        filter: Filter,
        /// Whether they are fetched by every run of the suite. Default false.
        auto_import: bool,
    },
    /// One run of `LangSmith`.
    LangSmithRun {
        /// Its id.
        run_id: String,
    },
}

/// Which runs of a project are fetched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// How they ended. Default: in an error.
    pub status: FilterStatus,
    /// As `last_7_days`; absent: any time.
    pub date_range: Option<String>,
    /// Runs that took at least so long, milliseconds.
    pub min_latency_ms: Option<u64>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FilterStatus {
    /// In an error.
    #[default]
    Error,
    /// Without one, and still not well.
    Warning,
    /// In any way.
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

pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Replays {
    let mut ids = BTreeSet::new();
    let sessions = fields.each("sessions", "a list of replay sessions", |reader, node| {
        let session = session(reader, node)?;
        if let Session::Inline(inline) = &session
            && !ids.insert(inline.id.clone())
        {
            let message = format!("a session `{}` stands here already", inline.id);
            reader.error(node.position, message);
        }
        Some(session)
    });
    let sources = fields.each("sources", "a list of sources", |reader, node| {
        reader.fields(node, "a source of sessions", source)?
    });
    Replays {
        sessions: sessions.map(|list| list.value).unwrap_or_default(),
        sources: sources.map(|list| list.value).unwrap_or_default(),
    }
}

/// What a session may say beside the file that it stands in.
pub(super) const BESIDE_FILE: [&str; 9] = [
    "id",
    "name",
    "input",
    "source",
    "captured_at",
    "context",
    "tool_responses",
    "expected_failure",
    "contract",
];

fn session(reader: &mut Reader<'_>, node: &At<Tree>) -> Option<Session> {
    let is_there = |name: &str, member: &(At<String>, At<Tree>)| {
        member.0.value == name && member.1.value != Tree::Null
    };
    let has = |name: &str| match &node.value {
        Tree::Map(members) => members.iter().any(|member| is_there(name, member)),
        Tree::List(_) | Tree::Scalar { .. } | Tree::Null => false,
    };
    if has("file") {
        return reader.fields(node, "a replay session", |fields| {
            // Set over what the file says, once it is opened.
            for name in BESIDE_FILE {
                fields.node(name);
            }
            let file = fields.words("file")?;
            Some(Session::File {
                path: file.value,
                position: file.position,
            })
        })?;
    }
    if !has("id") || !has("input") {
        let message = "a session has `file`, or `id` and `input`";
        reader.error(node.position, message);
        inline(reader, node, false);
        return None;
    }
    inline(reader, node, true).map(|session| Session::Inline(Box::new(session)))
}

/// A session without a `file` that is `null`, as good as absent.
fn without_file(node: &At<Tree>) -> At<Tree> {
    let mut node = node.clone();
    if let Tree::Map(members) = &mut node.value {
        members.retain(|(name, member)| name.value != "file" || member.value != Tree::Null);
    }
    node
}

/// `is_named`: whether it has an id and an input; that it has none was said already.
fn inline(reader: &mut Reader<'_>, node: &At<Tree>, is_named: bool) -> Option<ReplaySession> {
    let session::Read {
        session,
        mut wrong,
        notes,
    } = session::of_tree(&without_file(node));
    for (position, pointer, message) in notes {
        reader.below_pointer(&pointer, |reader| reader.note(position, message));
    }
    wrong.retain(|(_, pointer, _)| is_named || pointer != "/id");
    let is_fine = wrong.is_empty();
    for (position, pointer, message) in wrong {
        // What a variable stands for is not repeated.
        let message = if reader.has_variable(position) {
            let shown = reader.shown(position);
            format!("`{shown}` does not stand for what is allowed here")
        } else {
            message
        };
        reader.below_pointer(&pointer, |reader| reader.error(position, message));
    }
    let is_blank = session
        .input
        .as_deref()
        .is_none_or(|input| input.trim().is_empty());
    if is_fine && is_blank && is_named {
        let message = "`input` is empty; write what the agent is asked";
        reader.below("input", |reader| reader.error(node.position, message));
        return None;
    }
    is_fine.then_some(session)
}

fn source(fields: &mut Fields<'_, '_, '_>) -> Option<Source> {
    if !fields.has("type") {
        fields.missing("type", "`langsmith` or `langsmith_run`");
    }
    let kind = fields.word("type", "source", &SOURCES);
    let project = fields.words("project");
    let run_id = fields.words("run_id");
    let filter = fields.read("filter", |reader, node| {
        reader.fields(node, "a filter", |fields| Filter {
            status: fields
                .word("status", "status", &STATUSES)
                .unwrap_or_default(),
            date_range: fields.words("date_range").map(|text| text.value),
            min_latency_ms: fields.whole("min_latency_ms", 0..=86_400_000, " milliseconds"),
        })
    });
    let auto_import = fields.flag("auto_import").unwrap_or(false);
    match kind? {
        SourceType::Project => {
            if !fields.has("project") {
                fields.missing("project", "the project's name");
            }
            Some(Source::LangSmith {
                project: project?.value,
                filter: filter.unwrap_or_default(),
                auto_import,
            })
        }
        SourceType::Run => {
            if !fields.has("run_id") {
                fields.missing("run_id", "the run's id");
            }
            Some(Source::LangSmithRun {
                run_id: run_id?.value,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use squall_profiles::variables::Variables;

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
