//! What carries runs of one kind out.

use std::num::NonZeroUsize;
use std::sync::Arc;

use squall_harness::reach::{Pending, Reach};
use squall_harness::run::{
    CheckRecord, ComparisonRecord, DemandRecord, DocumentVersion, RecoveryRecord, RunKind,
    RunRecord, ScenarioRecord, ScoresRecord, StabilityRecord,
};
use squall_harness::runner::{Tell, Trial};
use squall_harness::scores::Bar;
use squall_harness::suite::Suite;

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
    /// What it is called, as its suite is.
    pub name: String,
    /// What the scopes that it works in begin with.
    pub scope: String,
    /// The suite, a contract that it or the order names in its place. It holds secrets.
    pub suite: Arc<Suite>,
    /// What of that contract changes nothing, or surely is not meant.
    pub doubts: Vec<String>,
    /// The chaos that the order's profile or the suite's `chaos` gives; `None` for neither.
    pub chaos: Option<Trial>,
    /// Whether that is the order's profile.
    pub names_profile: bool,
    /// Seed of every draw.
    pub seed: u64,
    /// Invocations of the agent at once, 1 to 100.
    pub concurrency: NonZeroUsize,
    /// What has to be reached.
    pub bar: Bar,
    /// How often everything is done, at least 1.
    pub repeat: u64,
    /// The run to compare with; `None`: not said.
    pub baseline: Option<Arc<RunRecord>>,
    /// Whether the run fails where it is worse than that one.
    pub fails_if_worse: bool,
}

/// What a runner works with.
#[derive(Clone)]
pub struct Tools<'a> {
    /// The proxy.
    pub reach: Arc<dyn Reach>,
    /// Who is told what happens.
    pub tell: &'a dyn Tell,
    /// The scope of what names none.
    pub shared_scope: String,
    /// Held while chaos is in force for scopes that are not the run's own: one run at a time.
    pub exclusive: Arc<tokio::sync::Mutex<()>>,
    /// Whether somebody has approved the run: else it reaches no host that needs approval.
    pub approved: bool,
}

/// How a run has gone. Its cells were told before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Whether the agent did what is demanded; `None`: nothing is proved.
    pub passed: Option<bool>,
    /// 0 to 100; `None`: there was nothing to judge.
    pub score: Option<f64>,
    /// Scores of its parts.
    pub scores: ScoresRecord,
    /// Why.
    pub reason: Option<String>,
    /// How each scenario went.
    pub scenarios: Vec<ScenarioRecord>,
    /// What was demanded.
    pub demands: Vec<DemandRecord>,
    /// Files that the agent is started with.
    pub documents: Vec<DocumentVersion>,
    /// How the agent recovers from each family of faults.
    pub recoveries: Vec<RecoveryRecord>,
    /// How far repeats agree; `None` when everything was done once.
    pub stability: Option<StabilityRecord>,
    /// What became better and worse since another run; `None` when none was named.
    pub comparison: Option<ComparisonRecord>,
    /// What makes the run worth less than it looks.
    pub warnings: Vec<String>,
    /// What a run of kind `verify` has looked at.
    pub checks: Vec<CheckRecord>,
}

/// Why a run could not be carried to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The proxy did not do what it was asked to.
    #[error(transparent)]
    Reach(#[from] squall_harness::reach::ReachError),
    /// The agent cannot be asked at all.
    #[error("{0}")]
    Agent(String),
    /// Nothing could be learnt from the suite's model, or of embeddings.
    #[error("nobody was there to judge: {0}")]
    Model(String),
}
