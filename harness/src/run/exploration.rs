//! What an exploration over calls executed and found.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An exploration over calls. A point is a fault on a call of a prompt's invocation, or two of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Exploration")]
pub struct ExplorationRecord {
    /// Most invocations of the agent, the clean run included.
    pub budget: u64,
    /// Invocations of the agent: those of the clean run, and one for each executed point.
    pub invocations: u64,
    /// The interrupted run that it continues; `null` if there is none.
    pub resumed: Option<String>,
    /// SHA-256 of each member of the suite on which the results depend.
    #[serde(default)]
    pub suite: BTreeMap<String, String>,
    /// The agent's calls: those of the clean run, then those that occurred only under a fault.
    pub calls: Vec<ExploredCall>,
    /// The executed points, in order.
    pub points: Vec<FaultPoint>,
    /// Points with one fault, and those on a call that occurs only under other faults.
    pub single: FaultSpace,
    /// Pairs of faults on different logical calls of the clean run.
    pub pairs: FaultSpace,
}

/// A call of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExploredCall {
    /// Number of the golden prompt, from 1.
    pub prompt: u64,
    /// The tool, the model, or method, host and path.
    pub call: String,
    /// Its number among the calls of this name in the invocation, from 1.
    pub number: u64,
    /// Number of its logical call in the invocation: retries share it.
    pub logical: u64,
    /// The faults without which it does not occur; empty: it is a call of the clean run.
    pub under: Vec<PointFault>,
    /// The modes of the faults that its kind has.
    pub faults: Vec<String>,
    /// The conditions of a rule that matches it.
    pub conditions: Map<String, Value>,
    /// Its number among the calls that these conditions match, from 1.
    pub ordinal: u64,
}

/// A fault on a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PointFault {
    /// Index in `calls`.
    pub call: usize,
    /// The mode.
    pub fault: String,
}

/// An executed point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultPoint {
    /// Its name, which is also its scenario's.
    pub name: String,
    /// Its faults, in the order of their calls.
    pub faults: Vec<PointFault>,
    /// The result.
    pub state: PointState,
    /// Digest of what the agent did: its calls after the fault, the verdicts, and the class of its answer.
    pub behaviour: String,
}

/// The result of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointState {
    /// No invariant failed that passes without chaos.
    Passed,
    /// An invariant failed that passes without chaos.
    Failed,
    /// A fault was not applied: its call did not occur, or the fault has no effect on it.
    NotReached,
    /// No invariant could be judged.
    NotJudged,
}

/// A part of the fault space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultSpace {
    /// Known points.
    pub points: u64,
    /// Executed ones.
    pub executed: u64,
    /// Those that are not executed because they cannot tell more.
    pub pruned: u64,
}

impl PointState {
    /// The state, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotReached => "not reached",
            Self::NotJudged => "not judged",
        }
    }
}

impl FaultSpace {
    /// Executed points among those that are not pruned, in percent; 100 if there are none.
    pub fn coverage(&self) -> f64 {
        let all = self.points.saturating_sub(self.pruned);
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let share = self.executed as f64 / all.max(1) as f64;
        if all == 0 { 100.0 } else { share * 100.0 }
    }

    /// Points that neither were executed nor are pruned.
    pub fn left(&self) -> u64 {
        self.points.saturating_sub(self.executed + self.pruned)
    }
}

impl ExplorationRecord {
    /// Executed points in a state.
    pub fn in_state(&self, state: PointState) -> impl Iterator<Item = &FaultPoint> + Clone {
        self.points.iter().filter(move |point| point.state == state)
    }

    /// The members of a suite with these digests that differ from those of the exploration.
    pub fn changed_members(&self, digests: &BTreeMap<String, String>) -> Vec<String> {
        let names: BTreeSet<_> = self.suite.keys().chain(digests.keys()).collect();
        let changed = names
            .into_iter()
            .filter(|name| self.suite.get(*name) != digests.get(*name));
        changed.cloned().collect()
    }

    /// The executed point with this fault on this call and no other fault but those under which the call occurs.
    pub fn single_on(&self, call: usize, fault: &str) -> Option<&FaultPoint> {
        let faults = self.calls.get(call)?.under.len() + 1;
        let mut points = self.points.iter();
        points.find(|point| {
            let last = point.faults.last();
            point.faults.len() == faults
                && last.is_some_and(|last| last.call == call && last.fault == fault)
        })
    }

    /// The name of a call, as `2nd call of search`.
    pub fn call_name(&self, call: usize) -> String {
        let Some(call) = self.calls.get(call) else {
            return String::new();
        };
        let number = usize::try_from(call.number).unwrap_or(usize::MAX);
        format!("{} call of {}", crate::count::nth(number), call.call)
    }
}
