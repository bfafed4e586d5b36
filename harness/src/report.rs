//! Reports of runs.
//!
//! A [`Report`] is one document: the run, and the exchanges in its evidence. Every format is rendered from this
//! document alone, so a report that was stored as JSON gives the same page later:
//!
//! ```text
//! run ──▶ wanted ──▶ exchanges ──▶ Report ──▶ html | json | junit | markdown | jsonl
//! ```
//!
//! The texts in a report come from agents, models and other outside sources. Each format escapes them by its own
//! rules. Control characters are made visible ([`shown`]), and secrets are removed when the report is created.

mod advice;
pub mod certificate;
mod exploration;
mod failures;
pub mod html;
mod json;
mod jsonl;
mod junit;
mod load;
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

pub(crate) use self::advice::is_delay;
pub use self::exploration::{FAILED_PAIRS, HeatMap, exploration_lines, heat_map};
pub use self::failures::{FailedInvocation, FailureGroup, failed_invocations, failure_groups};
pub use self::html::page_policy;
pub use self::json::escaped;
pub(crate) use self::load::breaking;
pub use self::load::{LOAD, load_levels, load_lines};
pub use self::next::{next_step, shell_word};
pub use self::shown::shown;
pub(crate) use self::story::{call_name, place};
pub use self::words::{
    CREW, DISTRIBUTION, SHIFT, components, coverage, crew, distributions, milliseconds, repeats,
    replayed, score, shifts, shrunk, tests,
};
use crate::invariants::InvariantSeverity;
use crate::run::{CellRecord, CellState, EvidenceRecord, RunRecord};
use squall_documents::named;

/// The version that this code writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// Maximum number of exchanges in one report.
pub const MOST_EXCHANGES: usize = 1_000;

/// A run with the exchanges that its evidence refers to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of this format: 1.
    pub report_version: u32,
    /// Version of the Squall that created the report.
    pub squall_version: String,
    /// When the report was created, RFC 3339.
    pub made_at: String,
    /// The run.
    pub run: RunRecord,
    /// Its failed invocations in groups, the largest first.
    #[serde(default)]
    pub failure_groups: Vec<FailureGroup>,
    /// Exchanges in the run's evidence, oldest first: at most 1,000, with priority for those of failed cells.
    pub exchanges: Vec<ExchangeRecord>,
    /// Further exchanges in the evidence that exceed the maximum or are no longer stored.
    pub exchanges_left_out: u64,
    /// Whether the run is stored nowhere else. If so, no format refers to the stored run.
    #[serde(skip)]
    pub stands_alone: bool,
}

named! {
    /// A format of reports.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[schemars(rename = "Format")]
    pub enum ReportFormat {
        /// A self-contained HTML page.
        Html = "html",
        /// The document itself, which [`Report::read`] can read.
        Json = "json",
        /// `JUnit` XML: a test case for each cell.
        Junit = "junit",
        /// A comment for a pull request, shorter than 65,536 characters.
        Markdown = "markdown",
        /// JSON Lines: each failed invocation.
        Jsonl = "jsonl",
    }
}

impl ReportFormat {
    /// The file extension, without the dot, and the media type for `Content-Type`.
    fn kind_of_file(self) -> (&'static str, &'static str) {
        match self {
            Self::Html => ("html", "text/html; charset=utf-8"),
            Self::Json => ("json", "application/json"),
            Self::Junit => ("xml", "application/xml"),
            Self::Markdown => ("md", "text/markdown; charset=utf-8"),
            Self::Jsonl => ("jsonl", "application/jsonl"),
        }
    }

    /// The file extension, without the dot.
    pub fn extension(self) -> &'static str {
        self.kind_of_file().0
    }

    /// Its media type, for `Content-Type`.
    pub fn media_type(self) -> &'static str {
        self.kind_of_file().1
    }
}

/// Why a text is not a report.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON, or has another shape.
    #[error("this is no report of Squall: {0}; write one with `squall report RUN --format json`")]
    Shape(#[from] serde_json::Error),
    /// This code does not support its version.
    #[error(
        "the report is of version {found}, and this Squall reads version {VERSION}; \
         read it with the Squall that wrote it"
    )]
    Version {
        /// The value of `report_version`.
        found: Value,
    },
}

impl Report {
    /// The report of `run` at the time `made_at`, RFC 3339. Secrets are removed from every text from outside; those
    /// in exchanges were removed when they were journalled.
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
            failure_groups: failure_groups(&run),
            run,
            exchanges,
            exchanges_left_out: left_out,
            stands_alone: false,
        }
    }

    /// Reads a JSON report of this version or an earlier one.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        let mut document: Value = serde_json::from_str(text)?;
        // The version is checked first, because another version may have any shape.
        let found = document.get_mut("report_version").map(Value::take);
        match found {
            Some(found) if found != VERSION => Err(ReadError::Version { found }),
            _ => {
                let mut report: Self = serde_json::from_str(text)?;
                // Earlier reports have none.
                report.failure_groups = failure_groups(&report.run);
                Ok(report)
            }
        }
    }

    /// The report in a format, as the content of a file.
    pub fn render(&self, format: ReportFormat) -> String {
        let drawn = match format {
            ReportFormat::Html => html::document(self),
            ReportFormat::Json => return json::document(self),
            ReportFormat::Junit => junit::document(self),
            ReportFormat::Markdown => markdown::document(self),
            ReportFormat::Jsonl => return jsonl::document(self),
        };
        // The formats have escaped their texts, so this changes no part of their own syntax.
        shown(&drawn).into_owned()
    }

    /// The JSON Schema of the document.
    pub fn schema() -> Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// Ids of the exchanges for the report of a run: without duplicates, at most [`MOST_EXCHANGES`]. Those of failed
/// cells come first, then those of cells in error, then all others.
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

/// The priority of a state: the worst is first.
fn rank(state: CellState) -> u8 {
    match state {
        CellState::Failed => 0,
        CellState::Error => 1,
        CellState::NotExercised => 2,
        CellState::Passed => 3,
        CellState::NotApplicable => 4,
    }
}

/// The order of severities, highest first.
pub fn severity_rank(severity: &str) -> Option<usize> {
    let mut names = InvariantSeverity::NAMES.iter();
    names.position(|(name, _)| severity == *name)
}

/// Scenarios and invariants with their severities, each in order of first occurrence.
pub fn axes(cells: &[CellRecord]) -> (Vec<&str>, Vec<(&str, &str)>) {
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

/// The invocations that decided a cell's state; all of them if the run does not record it.
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
    let needed = run.shrunk.iter_mut().flat_map(|one| &mut one.needed);
    needed.for_each(&mut clean);
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
