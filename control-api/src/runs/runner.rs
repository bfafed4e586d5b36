//! What carries runs of one kind out.

use std::sync::Arc;
use std::time::Duration;

use squall_journal::reach::{Pending, Reach, Rules};
use squall_journal::run::{CellRecord, CoverageRecord, RunKind, ScoresRecord};

use crate::problem::Detail;

/// Carries runs of one kind out, and judges them. It reaches the proxy through [`Tools::reach`] only.
pub trait Runner: Send + Sync {
    /// Which kind.
    fn kind(&self) -> RunKind;

    /// All that is wrong with an order, before it is queued: with pointers into what was posted.
    fn check(&self, order: &Order) -> Vec<Detail>;

    /// Carries an order out. It is dropped when the run is ended by others.
    fn run<'a>(
        &'a self,
        order: &'a Order,
        tools: Tools<'a>,
    ) -> Pending<'a, Result<Verdict, RunError>>;
}

/// What was asked for, checked.
#[derive(Debug, Clone)]
pub struct Order {
    /// The run's id.
    pub id: String,
    /// What it tries.
    pub kind: RunKind,
    /// The scope it works in.
    pub scope: String,
    /// The suite, its variables expanded. It holds secrets.
    pub suite: serde_json::Value,
    /// The contract that the suite or the order names; `None` when neither does.
    pub contract: Option<serde_json::Value>,
    /// The rules that the order's profile or the suite's `chaos` gives; `None` for neither.
    pub rules: Option<Rules>,
    /// What those rules are called in reports: the profile's name, `chaos` for the suite's own.
    pub scenario: String,
    /// Seed of every draw.
    pub seed: u64,
    /// Invocations of the agent at once; `None`: not said.
    pub concurrency: Option<u64>,
    /// Whether a single cell that proves nothing makes the run inconclusive.
    pub strict: bool,
    /// The score to reach, 0 to 100; `None`: not said.
    pub min_score: Option<f64>,
    /// How often everything is done; `None`: not said.
    pub repeat: Option<u64>,
    /// Id of the run to compare with; `None`: not said.
    pub baseline: Option<String>,
}

/// What a runner works with.
#[derive(Clone)]
pub struct Tools<'a> {
    /// The proxy.
    pub reach: Arc<dyn Reach>,
    /// Who is told what happens.
    pub report: &'a dyn Report,
    /// The scope of what names none, when nothing is in force there that this run would replace.
    pub shared_scope: Option<String>,
    /// Held while chaos is in force for scopes that are not the run's own: one run at a time.
    pub exclusive: Arc<tokio::sync::Mutex<()>>,
}

/// Is told what happens in a run.
pub trait Report: Send + Sync {
    /// So many of so many askings of the agent are done.
    fn progress(&self, done: u64, of: u64) -> Pending<'_, ()>;
    /// A cell was judged. It becomes part of the run.
    fn cell(&self, cell: CellRecord) -> Pending<'_, ()>;
    /// What was tried so far.
    fn coverage(&self, coverage: CoverageRecord);
}

/// How a run has gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether the agent did what is demanded; `None`: nothing is proved.
    pub passed: Option<bool>,
    /// 0 to 100; `None`: there was nothing to judge.
    pub score: Option<f64>,
    /// Scores of its parts.
    pub scores: ScoresRecord,
    /// Why, where the cells do not say.
    pub reason: Option<String>,
}

/// Why a run could not be carried to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The proxy did not do what it was asked to.
    #[error(transparent)]
    Reach(#[from] squall_journal::reach::ReachError),
    /// The agent cannot be asked at all.
    #[error("the agent cannot be asked: {0}")]
    Agent(String),
}

/// How long the last exchanges of an asking may take to end once the agent has answered.
pub(super) const SETTLE: Duration = Duration::from_secs(2);
