//! `replays:`: incidents that must not happen again, and where more of them come from.

use std::collections::BTreeSet;

use serde_json::Value;
use squall_profiles::document::{At, Tree};
use squall_profiles::error::Position;

use super::reader::{Fields, Reader};

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

/// A production incident: the input, what was answered then, what must hold now.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplaySession {
    /// Unique in the suite.
    pub id: String,
    /// What reports call it.
    pub name: Option<String>,
    /// What the agent is asked.
    pub input: String,
    /// Where it was captured. Default `manual`.
    pub source: String,
    /// When, as it was written.
    pub captured_at: Option<String>,
    /// What came before, oldest first.
    pub context: Vec<Value>,
    /// What went wrong then.
    pub expected_failure: Option<String>,
    /// Name of the contract that must hold; absent: the suite's own.
    pub contract: Option<String>,
    /// What tools answered then.
    pub tool_responses: Vec<ToolResponse>,
    /// The session as the document that a tape is made of.
    pub document: Value,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResponse {
    /// The tool's name.
    pub tool: String,
    /// Text, a map, or nothing.
    pub response: Value,
    /// Status; 0 is an error without one. Default 200.
    pub status: u16,
    /// How long it took, milliseconds. Default 0.
    pub latency_ms: u64,
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

#[derive(Clone, Copy)]
pub(super) enum OnEnd {
    Error,
    PassThrough,
}

pub(super) const ON_END: [(&str, OnEnd); 2] =
    [("error", OnEnd::Error), ("passthrough", OnEnd::PassThrough)];

pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Replays {
    let mut ids = BTreeSet::new();
    let sessions = fields.each("sessions", "a list of replay sessions", |reader, node| {
        let session = reader.fields(node, "a replay session", session)??;
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

fn session(fields: &mut Fields<'_, '_, '_>) -> Option<Session> {
    let file = fields.words("file");
    if fields.has("file") {
        // What else is said is the file's to say; the contract may be another one.
        let file = file?;
        return Some(Session::File {
            path: file.value,
            position: file.position,
        });
    }
    inline(fields).map(|session| Session::Inline(Box::new(session)))
}

fn inline(fields: &mut Fields<'_, '_, '_>) -> Option<ReplaySession> {
    let id = fields.words("id");
    let input = fields.words("input");
    if !fields.has("id") || !fields.has("input") {
        let message = "a session has `file`, or `id` and `input`".to_owned();
        let position = fields.position;
        fields.reader.error(position, message);
    }
    let words = |text: Option<At<String>>| text.map(|text| text.value);
    let context = fields.each("context", "a list of maps", |reader, node| {
        if let Tree::Map(_) = &node.value {
            return Some(node.value.to_json());
        }
        reader.misplaced(node.position, "a map");
        None
    });
    let tool_responses = fields.each("tool_responses", "a list", |reader, node| {
        reader.fields(node, "a map with `tool` and `response`", tool_response)?
    });
    let maps = |reader: &mut Reader<'_>, node: &At<Tree>| {
        let is_map = matches!(node.value, Tree::Map(_));
        if !is_map {
            reader.misplaced(node.position, "a map");
        }
        is_map.then_some(())
    };
    fields.each("llm_responses", "a list of maps", maps);
    fields.each("exchanges", "a list of maps", maps);
    fields.word("on_miss", "choice", &ON_END);
    fields.word("on_exhausted", "choice", &ON_END);
    let document = fields.document();
    Some(ReplaySession {
        name: words(fields.text("name")),
        source: words(fields.text("source")).unwrap_or_else(|| "manual".to_owned()),
        captured_at: words(fields.text("captured_at")),
        context: context.map(|list| list.value).unwrap_or_default(),
        expected_failure: words(fields.text("expected_failure")),
        contract: words(fields.words("contract")),
        tool_responses: tool_responses.map(|list| list.value).unwrap_or_default(),
        document,
        id: id?.value,
        input: input?.value,
    })
}

fn tool_response(fields: &mut Fields<'_, '_, '_>) -> Option<ToolResponse> {
    let tool = fields.words("tool");
    if !fields.has("tool") {
        fields.missing("tool", "the tool's name");
    }
    let response = fields.read("response", |reader, node| match &node.value {
        Tree::List(_) => {
            reader.misplaced(node.position, "a text, a map or `null`");
            None
        }
        value => Some(value.to_json()),
    });
    let status = match fields.node("status").map(|node| &node.value) {
        Some(Tree::Scalar { text, .. }) if text == "0" => Some(0),
        _ => fields.whole("status", 100..=599, ", or 0 for an error without one"),
    };
    let latency_ms = fields.whole("latency_ms", 0..=86_400_000, " milliseconds");
    Some(ToolResponse {
        tool: tool?.value,
        response: response.unwrap_or_default(),
        status: status
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(200),
        latency_ms: latency_ms.unwrap_or(0),
    })
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
