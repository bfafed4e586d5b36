//! Reports: what a run came to, for those who were not there.
//!
//! A [`Report`] is one document: the run, and the exchanges that its evidence names. Everything else is
//! drawn from it and from nothing else, so that a report that was kept as JSON gives the same page later:
//!
//! ```text
//! run ──▶ wanted ──▶ exchanges ──▶ Report ──▶ html | json | junit | markdown
//! ```
//!
//! What stands in a report comes from agents, models and whoever wrote to them. Each form escapes it by its own rules,
//! what a reader would obey is made visible ([`shown`]), and secrets are taken out when the report is made.

mod advice;
pub mod certificate;
mod html;
mod json;
mod junit;
mod markdown;
mod next;
mod shown;
mod story;
mod words;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use squall_journal::record::ExchangeRecord;
use squall_journal::redact::Redactor;

pub use self::html::page_policy;
pub use self::json::escaped;
pub use self::next::next_step;
pub use self::shown::shown;
use crate::run::{CellRecord, CellState, EvidenceRecord, RunRecord};

/// The version of the document that this code writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// Most exchanges of one report.
pub const MOST_EXCHANGES: usize = 1_000;

/// What a run came to, with what it takes to understand it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this shape: 1.
    pub report_version: u32,
    /// Version of the Squall that made the report.
    pub squall_version: String,
    /// When it was made, RFC 3339.
    pub made_at: String,
    /// The run.
    pub run: RunRecord,
    /// Exchanges that the run's evidence names, oldest first: at most 1,000, those of failed cells before
    /// all others.
    pub exchanges: Vec<ExchangeRecord>,
    /// How many further exchanges the evidence names: over the bound, or not held any more.
    pub exchanges_left_out: u64,
    /// Whether the run is kept nowhere else: no form says then where there is more of it.
    #[serde(skip)]
    pub stands_alone: bool,
}

/// A form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A page that needs nothing from elsewhere.
    Html,
    /// The document itself, which [`Report::read`] reads back.
    Json,
    /// `JUnit` XML: a test case for each cell.
    Junit,
    /// A comment for a pull request, under 65,536 characters.
    Markdown,
}

impl Format {
    /// Every form.
    pub const ALL: [Self; 4] = [Self::Html, Self::Json, Self::Junit, Self::Markdown];

    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Json => "json",
            Self::Junit => "junit",
            Self::Markdown => "markdown",
        }
    }

    /// The form of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// How files of it end, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Json => "json",
            Self::Junit => "xml",
            Self::Markdown => "md",
        }
    }

    /// Its media type, for `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json",
            Self::Junit => "application/xml",
            Self::Markdown => "text/markdown; charset=utf-8",
        }
    }
}

/// Why a text is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no JSON, or of another shape.
    #[error("this is no report of Squall: {0}; write one with `squall report RUN --format json`")]
    Shape(#[from] serde_json::Error),
    /// It is of a version that this code does not know.
    #[error(
        "the report is of version {found}, and this Squall reads version {VERSION}; \
         read it with the Squall that wrote it"
    )]
    Version {
        /// What `report_version` says.
        found: Value,
    },
}

impl Report {
    /// The report of `run`, as it was seen at `made_at`, RFC 3339. Secrets are taken out of every text that
    /// came from outside; the exchanges' were when they were journalled.
    pub fn new(
        mut run: RunRecord,
        mut exchanges: Vec<ExchangeRecord>,
        made_at: String,
        redactor: &Redactor,
    ) -> Self {
        redact(&mut run, redactor);
        let named: BTreeSet<&str> = ids(run.cells.iter()).collect();
        exchanges.retain(|exchange| named.contains(exchange.id.as_str()));
        exchanges.sort_by(|a, b| (&a.started_at, &a.id).cmp(&(&b.started_at, &b.id)));
        let left_out = named.len().saturating_sub(exchanges.len()) as u64;
        Self {
            report_version: VERSION,
            squall_version: env!("CARGO_PKG_VERSION").to_owned(),
            made_at,
            run,
            exchanges,
            exchanges_left_out: left_out,
            stands_alone: false,
        }
    }

    /// Reads a report that was written as JSON, by this version or an earlier one.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        let mut document: Value = serde_json::from_str(text)?;
        // Said of a version first: of another one the shape may differ anywhere.
        let found = document.get_mut("report_version").map(Value::take);
        match found {
            Some(found) if found != VERSION => Err(ReadError::Version { found }),
            _ => Ok(serde_json::from_str(text)?),
        }
    }

    /// The report in a form, as the whole text of a file.
    pub fn render(&self, format: Format) -> String {
        let drawn = match format {
            Format::Html => html::document(self),
            Format::Json => return json::document(self),
            Format::Junit => junit::document(self),
            Format::Markdown => markdown::document(self),
        };
        // Forms escape what they are made of; what is left to be made visible is no part of them.
        shown(&drawn).into_owned()
    }

    /// The JSON Schema of the document.
    pub fn schema() -> Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// Ids of the exchanges that the report of a run has a place for: each once, at most [`MOST_EXCHANGES`],
/// those of failed cells first, then of those in error, then all others.
pub fn wanted(run: &RunRecord) -> Vec<String> {
    let mut cells: Vec<_> = run.cells.iter().collect();
    cells.sort_by_key(|cell| rank(cell.state));
    let mut seen = BTreeSet::new();
    let each_once = ids(cells.into_iter()).filter(|id| seen.insert(*id));
    each_once.take(MOST_EXCHANGES).map(str::to_owned).collect()
}

fn ids<'a>(cells: impl Iterator<Item = &'a CellRecord>) -> impl Iterator<Item = &'a str> {
    let evidence = cells.flat_map(|cell| &cell.evidence);
    evidence.flat_map(|invocation| invocation.exchanges.iter().map(String::as_str))
}

/// How much a state has to say: the worst first.
fn rank(state: CellState) -> u8 {
    match state {
        CellState::Failed => 0,
        CellState::Error => 1,
        CellState::NotExercised => 2,
        CellState::Passed => 3,
        CellState::NotApplicable => 4,
    }
}

/// Scenarios and invariants, these with their severities, each in the order in which it first comes.
fn axes(cells: &[CellRecord]) -> (Vec<&str>, Vec<(&str, &str)>) {
    let (mut columns, mut rows) = (Vec::new(), Vec::new());
    for cell in cells {
        if !columns.contains(&cell.scenario.as_str()) {
            columns.push(&cell.scenario);
        }
        let row = (cell.invariant.as_str(), cell.severity.as_str());
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    (columns, rows)
}

/// The invariants that were judged in some scenario.
pub fn exercised(run: &RunRecord) -> BTreeSet<&str> {
    let judged = |cell: &&CellRecord| match cell.state {
        CellState::Passed | CellState::Failed | CellState::Error => true,
        CellState::NotExercised | CellState::NotApplicable => false,
    };
    let judged = run.cells.iter().filter(judged);
    judged.map(|cell| cell.invariant.as_str()).collect()
}

/// The invocations that made a cell what it is; all of them, where a run does not say.
fn telling(cell: &CellRecord) -> impl Iterator<Item = &EvidenceRecord> {
    let evidence = cell.evidence.iter();
    evidence.filter(|invocation| invocation.state.is_none_or(|state| state == cell.state))
}

fn redact(run: &mut RunRecord, redactor: &Redactor) {
    let mut clean = |text: &mut String| redactor.text(text, usize::MAX);
    clean(&mut run.name);
    run.warnings.iter_mut().for_each(&mut clean);
    for text in [
        &mut run.error,
        &mut run.reason,
        &mut run.agent,
        &mut run.tester,
    ] {
        text.iter_mut().for_each(&mut clean);
    }
    run.made_of().for_each(&mut clean);
    for cell in &mut run.cells {
        cell.reason.iter_mut().for_each(&mut clean);
        for invocation in &mut cell.evidence {
            clean(&mut invocation.prompt);
            invocation.answer.iter_mut().for_each(&mut clean);
            invocation.reason.iter_mut().for_each(&mut clean);
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod testing;
