//! Rounds: a run that plans further parts from the results of those it has executed.

use super::RunError;
use super::jobs::InvocationJob;
use super::plan::{RunPart, Trial};
use super::result::InvocationResult;
use crate::reach::Seen;
use crate::run::CellState;

/// Plans the parts of the next round. The names of their scenarios must be new in the run: draws depend on them.
pub(super) trait Rounds<'s>: Send {
    /// The parts to execute after `last`, the judged invocations of the last round; empty: the run is done.
    fn next(&mut self, last: &[RanInvocation<'_>]) -> Result<Vec<RunPart<'s>>, RunError>;

    /// The calls of a level of load whose invocations cannot be told apart; called before [`Self::next`].
    fn level_seen(&mut self, _: Seen) {}
}

/// A run of one round.
pub(super) struct OneRound;

impl<'s> Rounds<'s> for OneRound {
    fn next(&mut self, _: &[RanInvocation<'_>]) -> Result<Vec<RunPart<'s>>, RunError> {
        Ok(Vec::new())
    }
}

/// A judged invocation.
pub(super) struct RanInvocation<'r> {
    pub(super) trial: &'r Trial,
    pub(super) job: &'r InvocationJob<'r>,
    pub(super) result: &'r InvocationResult,
    /// The verdicts of the invariants that judge it.
    pub(super) verdicts: &'r [InvocationVerdict],
}

/// The verdict of one invariant on one invocation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InvocationVerdict {
    /// The invariant's name in cells.
    pub(super) invariant: String,
    pub(super) state: CellState,
    /// Whether the invariant also fails without chaos.
    pub(super) fails_without_chaos: bool,
    /// How far the invariant is from failing, 0 to 1; `None`: its kind has no number.
    pub(super) margin: Option<f64>,
}
