//! A run as the API shows it: `GET /v1/runs/{id}`.

mod comparison;
mod crew;
mod distribution;
mod exploration;
mod load;
mod replay;
mod state;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::comparison::{CellChange, ComparisonRecord, ShiftRecord};
pub use self::crew::CrewEdge;
pub use self::distribution::DistributionRecord;
pub use self::exploration::{
    ExplorationRecord, ExploredCall, FaultPoint, FaultSpace, PointFault, PointState,
};
pub use self::load::{LatencyQuantiles, LimitReaction, LoadFailures, LoadLevel, LoadRecord};
pub use self::replay::{ArgumentChange, CallDivergence, DivergenceState, ReplayRecord};
pub use self::state::{RunKind, RunState};
use crate::count::count;
use squall_documents::named;

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunRecord {
    /// Unique id. Ids sort by creation time.
    pub id: String,
    /// What the run executes.
    pub kind: RunKind,
    /// The suite's name.
    pub name: String,
    /// The current state.
    pub state: RunState,
    /// The overall score, 0 to 100; `null` until there is something to judge.
    pub score: Option<f64>,
    /// Whether the agent met the pass criteria; `null` unless the run has passed or failed.
    pub passed: Option<bool>,
    /// What was executed.
    pub coverage: CoverageRecord,
    /// The scores of its parts.
    pub scores: ScoresRecord,
    /// The judged cells with their evidence. Not in lists.
    #[serde(default)]
    pub cells: Vec<CellRecord>,
    /// How many cells of each invariant passed, also in lists; absent before the first cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invariants: Vec<InvariantRecord>,
    /// The record of each scenario, in the suite's order.
    #[serde(default)]
    pub scenarios: Vec<ScenarioRecord>,
    /// The agent's recovery rate for each family of faults that was applied, by name.
    #[serde(default)]
    pub recoveries: Vec<RecoveryRecord>,
    /// How consistent the repeats are; `null` without repeats.
    #[serde(default)]
    pub stability: Option<StabilityRecord>,
    /// The distributions of latency, length, cost and calls in each scenario. Not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distributions: Vec<DistributionRecord>,
    /// The search for failing mutants; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// The replayed sessions, with what the agent did otherwise than when they were recorded.
    #[serde(default)]
    pub replays: Vec<ReplayRecord>,
    /// What crossed the edges of a crew, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crew: Vec<CrewEdge>,
    /// Changes since the baseline run; `null` without a baseline.
    #[serde(default)]
    pub comparison: Option<ComparisonRecord>,
    /// Warnings that limit what the run proves, for example a stateful agent without a reset.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The failures that were shrunk to the smallest sets of faults. Not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shrunk: Vec<ShrunkRecord>,
    /// What an exploration over calls executed and found; absent in other runs and in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exploration: Option<ExplorationRecord>,
    /// What a run of kind `load` measured; absent in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
    /// The checks of a run of kind `verify`, in order.
    #[serde(default)]
    pub checks: Vec<CheckRecord>,
    /// Seed of every draw.
    pub seed: u64,
    /// When the run was created, RFC 3339.
    pub created_at: String,
    /// Who created it: the name of the token; absent if no token was required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// When the run was approved, RFC 3339; `null` if it was not, or needed no approval.
    #[serde(default)]
    pub approved_at: Option<String>,
    /// Who approved it: the name of the token; `null` if no token was required.
    #[serde(default)]
    pub approved_by: Option<String>,
    /// When the run started, RFC 3339; `null` before.
    pub started_at: Option<String>,
    /// When the run ended, RFC 3339; `null` before.
    pub finished_at: Option<String>,
    /// What failed; `null` unless the state is `errored`.
    pub error: Option<String>,
    /// Why the run ended as it did, if the cells do not show it; `null` otherwise.
    pub reason: Option<String>,
    /// Id of the daemon that executes the run.
    pub daemon: String,
    /// The spread run of which this one executes a scenario; absent in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<PartOf>,
    /// The documents of the run, with their versions.
    pub documents: Vec<DocumentVersion>,
    /// The agent: its type, and its address or command, without secrets; `null` if unknown.
    #[serde(default)]
    pub agent: Option<String>,
    /// The tester named on certificates, from the suite; `null` if the suite names none.
    #[serde(default)]
    pub tester: Option<String>,
    /// The minimum score, 0 to 100; `null` if none is set.
    #[serde(default)]
    pub min_score: Option<f64>,
    /// The score from which a certificate states that the agent passed, from the suite; `null` if the suite sets
    /// none.
    #[serde(default)]
    pub pass_threshold: Option<f64>,
    /// The certificate format, `html` or `pdf`, from the suite; `null` if the suite sets none.
    #[serde(default)]
    pub certificate_format: Option<String>,
    /// The suite's file on the machine of the command; `null` if it has the default name, or for requests of others.
    #[serde(default)]
    pub suite_file: Option<String>,
    /// The invariants of the run's parts, in the suite's order.
    #[serde(default)]
    pub demands: Vec<DemandRecord>,
}

impl RunRecord {
    /// A run that has not started.
    pub fn queued(id: &str, kind: RunKind, name: &str, seed: u64) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            name: name.to_owned(),
            seed,
            ..Self::default()
        }
    }

    /// Id of the spread run that it is part of, or its own.
    pub fn whole(&self) -> &str {
        self.part_of.as_ref().map_or(&self.id, |part| &part.run)
    }

    /// The texts of invariants, rules and sessions.
    pub fn made_of(&mut self) -> impl Iterator<Item = &mut String> {
        let rules = self.scenarios.iter_mut().flat_map(|one| &mut one.rules);
        let demands = self.demands.iter_mut().map(|one| &mut one.parameters);
        let replays = self.replays.iter_mut().flat_map(|one| {
            let changes = one.calls.iter_mut().flat_map(|call| &mut call.changes);
            let values =
                changes.flat_map(|change| change.recorded.iter_mut().chain(&mut change.made));
            let texts = one.name.iter_mut().chain(&mut one.expected_failure);
            texts.chain(values)
        });
        rules.chain(demands).chain(replays)
    }
}

/// An invariant as configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Demand")]
pub struct DemandRecord {
    /// The id of the invariant, as in cells.
    pub invariant: String,
    /// Its type.
    pub r#type: String,
    /// The weight of a failure: `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// Its other settings as `name: value`, variables not expanded; empty if there are none.
    pub parameters: String,
}

/// A version of a document that a run uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentVersion {
    /// `suite`, `contract` or `profile`; `agent` for a file that the agent is started with.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The stored version, from 1; `null` for a built-in profile, a file, or a suite sent with the run.
    pub version: Option<i64>,
    /// The suite's own `version` field; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_version: Option<String>,
    /// The text's SHA-256, 64 hex digits.
    pub digest: String,
}

impl DocumentVersion {
    /// The version for people: the stored number and the document's own version.
    pub fn shown_version(&self) -> Option<String> {
        match (self.version, &self.own_version) {
            (Some(number), Some(own)) => Some(format!("{number} ({own})")),
            (Some(number), None) => Some(number.to_string()),
            (None, own) => own.clone(),
        }
    }
}

/// What was executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Coverage")]
pub struct CoverageRecord {
    /// The number of cells.
    pub cells: u64,
    /// Cells under chaos.
    pub chaos_cells: u64,
    /// Cells under chaos in which a planned fault was applied.
    pub exercised: u64,
    /// Applications of rules.
    pub rules_applied: u64,
    /// Invocations of the agent.
    pub agent_invocations: u64,
}

impl CoverageRecord {
    /// Raises both counts to these minimums, which include what is not judged yet.
    pub fn and_tried(&mut self, agent_invocations: u64, rules_applied: u64) {
        self.agent_invocations = self.agent_invocations.max(agent_invocations);
        self.rules_applied = self.rules_applied.max(rules_applied);
    }

    /// Adds what another run executed.
    pub fn add(&mut self, other: &Self) {
        self.cells += other.cells;
        self.chaos_cells += other.chaos_cells;
        self.exercised += other.exercised;
        self.rules_applied += other.rules_applied;
        self.agent_invocations += other.agent_invocations;
    }
}

/// Scores of a run's parts, 0 to 100; `null` for a part that did not run or could not be judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Scores")]
pub struct ScoresRecord {
    /// Score of mutated prompts.
    pub mutation_robustness: Option<f64>,
    /// Score of golden prompts under chaos.
    pub chaos_resilience: Option<f64>,
    /// Score of the contract.
    pub contract_compliance: Option<f64>,
    /// Score of recorded sessions.
    pub replay_regression: Option<f64>,
    /// Weighted mean of the other scores.
    pub overall: Option<f64>,
}

/// The result of an invariant in a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cell")]
pub struct CellRecord {
    /// Id or type of the invariant.
    pub invariant: String,
    /// Name of the scenario.
    pub scenario: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// The outcome.
    pub state: CellState,
    /// The reason for the outcome.
    pub reason: Option<String>,
    /// Applications of planned faults.
    pub faults_applied: u64,
    /// The type of mutation, if the prompt is mutated.
    pub mutation: Option<String>,
    /// Whether the invariant also fails without chaos.
    #[serde(default)]
    pub baseline_failed: bool,
    /// The invocations that it was judged on.
    pub evidence: Vec<EvidenceRecord>,
}

/// The cells of an invariant in all scenarios.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "InvariantCounts")]
pub struct InvariantRecord {
    /// Id or type of the invariant.
    pub invariant: String,
    /// Cells in which it holds.
    pub passed: u64,
    /// Cells in which it holds or does not.
    pub judged: u64,
}

impl InvariantRecord {
    /// The invariants of these cells, in order of first occurrence.
    pub fn of(cells: &[CellRecord]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for cell in cells {
            let known = all.iter().position(|one| one.invariant == cell.invariant);
            let at = known.unwrap_or_else(|| {
                all.push(Self {
                    invariant: cell.invariant.clone(),
                    passed: 0,
                    judged: 0,
                });
                all.len() - 1
            });
            all[at].passed += u64::from(cell.state == CellState::Passed);
            let is_judged = matches!(cell.state, CellState::Passed | CellState::Failed);
            all[at].judged += u64::from(is_judged);
        }
        all
    }
}

named! {
    /// The outcome of a cell.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CellState {
        /// The invariant holds.
        Passed = "passed",
        /// The invariant does not hold.
        Failed = "failed",
        /// No planned fault was applied.
        NotExercised = "not_exercised",
        /// The invariant does not apply to this scenario.
        NotApplicable = "not_applicable",
        /// The invariant could not be judged.
        Error = "error",
    }
}

/// The record of a scenario in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Scenario")]
pub struct ScenarioRecord {
    /// Its name.
    pub name: String,
    /// Whether it has chaos.
    pub under_chaos: bool,
    /// Applications of planned faults, in all invocations of the scenario.
    pub rules_applied: u64,
    /// Invocations of the agent in the scenario.
    pub invocations: u64,
    /// Invocations in which every invariant that could be judged holds.
    #[serde(default)]
    pub passed: u64,
    /// Invocations that passed or failed.
    #[serde(default)]
    pub judged: u64,
    /// Its rules, one line each, with their parameters and the texts that they inject.
    #[serde(default)]
    pub rules: Vec<String>,
    /// Id of the daemon that executed it in a spread run; absent in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<String>,
}

/// The place of a part in a spread run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartOf {
    /// Id of the spread run.
    pub run: String,
    /// The scenario that the part executes.
    pub scenario: String,
}

/// The agent's recovery rate for one family of faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Recovery")]
pub struct RecoveryRecord {
    /// `network_faults`, `tool_faults`, `llm_faults`, `context_attacks` or `conversation_faults`.
    pub family: String,
    /// Invocations in which a fault of the family was applied and all invariants hold.
    pub passed: u64,
    /// Invocations in which a fault of the family was applied and that could be judged.
    pub judged: u64,
    /// `passed` divided by `judged`, 0 to 100.
    pub rate: f64,
    /// Lower end of the 95 % Wilson interval of `rate`, 0 to 100.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
}

/// How consistent the repeats of the same invocation are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Stability")]
pub struct StabilityRecord {
    /// The number of repeats, at least 2.
    pub repeats: u64,
    /// Prompts in a scenario that could be judged in every repeat, or failed in one of them.
    pub judged: u64,
    /// Judged prompts that passed in every repeat (pass^k).
    pub always_passed: u64,
    /// Judged prompts that passed in some repeats and failed in others.
    pub flaky: u64,
    /// `always_passed` divided by `judged`, 0 to 100; `null` if nothing could be judged.
    pub pass_k: Option<f64>,
}

/// One invocation of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Evidence")]
pub struct EvidenceRecord {
    /// The repeat, from 1; `null` without repeats, and in runs recorded before this field existed.
    #[serde(default)]
    pub repeat: Option<u64>,
    /// The prompt.
    pub prompt: String,
    /// The agent's answer; `null` if there is none.
    pub answer: Option<String>,
    /// Duration of the invocation, in milliseconds.
    pub latency_ms: f64,
    /// Ids of the exchanges in the invocation.
    pub exchanges: Vec<String>,
    /// The decisive exchange: the one that the invariant found, or the last that a fault made fail; `null` if there
    /// is none.
    #[serde(default)]
    pub telling: Option<String>,
    /// The mode of the fault on the decisive exchange, or else on the last exchange that a fault made fail, or else on
    /// the first with a fault, or else the fault of the conversation; absent without faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The call with that fault, or else the decisive one: a tool, a model, a host with a path, or `the conversation`;
    /// absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The outcome of this invocation alone; `null` in runs recorded before this field existed.
    #[serde(default)]
    pub state: Option<CellState>,
    /// The reason for that outcome.
    #[serde(default)]
    pub reason: Option<String>,
    /// Applications of planned faults in the invocation.
    #[serde(default)]
    pub faults_applied: u64,
    /// How the prompt or the request was changed; absent without mutation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutant: Option<MutantRecord>,
}

impl EvidenceRecord {
    /// The turns that the agent was asked. Those of a golden prompt are one text.
    pub fn turns(&self) -> Vec<String> {
        let turns = self.mutant.as_ref().map(|mutant| mutant.turns.clone());
        let turns = turns.filter(|turns| !turns.is_empty());
        turns.unwrap_or_else(|| vec![self.prompt.clone()])
    }
}

impl MutantRecord {
    /// Its texts, for redaction.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let turns = self.original.iter_mut().chain(&mut self.turns);
        turns.chain(&mut self.lineage).chain(&mut self.request)
    }
}

/// How a golden prompt was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mutant")]
pub struct MutantRecord {
    /// The type of mutation.
    pub kind: String,
    /// The turns of the golden prompt.
    pub original: Vec<String>,
    /// The turns of the mutant, if there are several; else `prompt` has the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
    /// How it was made, oldest step first.
    pub lineage: Vec<String>,
    /// The change of the HTTP request, as JSON; `null`: the prompt is changed.
    pub request: Option<String>,
}

/// The search for failing mutants of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Search")]
pub struct SearchRecord {
    /// The executed generations.
    pub generations: u64,
    /// Their invocations.
    pub invocations: u64,
    /// The cost of their model calls in US dollars by the suite's `prices`; `null`: there are no prices.
    pub dollars: Option<f64>,
    /// The number of mutants that failed, for each generation.
    pub failed: Vec<u64>,
    /// Why it ended.
    pub ended: String,
}

/// The smallest set of faults with which an invariant still fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Shrunk")]
pub struct ShrunkRecord {
    /// Id or type of the invariant.
    pub invariant: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Number of faults in the failed invocation.
    pub of: u64,
    /// The faults that are enough, one text each; empty if the failure does not reproduce with all of them, or if it
    /// happens without them too.
    pub needed: Vec<String>,
    /// Invocations of the agent.
    pub invocations: u64,
    /// Whether each of the needed faults is known to be necessary; `false` if the limit of invocations was reached.
    pub is_minimal: bool,
    /// Whether the invariant fails without any of the faults too.
    #[serde(default)]
    pub fails_without: bool,
}

impl ShrunkRecord {
    /// The result in words: `1 of 7 faults is enough: 503 on the 2nd call of search`.
    pub fn result(&self) -> String {
        let of = count(self.of, "fault");
        let needed = self.needed.join("; ");
        match self.needed.len() {
            0 if self.fails_without && self.of == 1 => "fails without the fault too".to_owned(),
            0 if self.fails_without => format!("fails without any of the {of}"),
            0 => format!("does not reproduce with the same {of}"),
            1 => format!("1 of {of} is enough: {needed}"),
            some if self.is_minimal => format!("{some} of {of} are needed together: {needed}"),
            some => {
                let invocations = self.invocations;
                format!(
                    "{some} of {of} are enough, perhaps fewer ({invocations} invocations were not enough): {needed}"
                )
            }
        }
    }
}

/// One check of a run's requirements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Check")]
pub struct CheckRecord {
    /// What was checked: `suite`, `reset`, `agent`, `answer`, `proxy`, `scopes`, `upstreams`, `models`, `tools` or
    /// `model`.
    pub name: String,
    /// The outcome.
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// What to change; `null` if nothing has to change.
    #[serde(default)]
    pub advice: Option<String>,
    /// JSON pointer into the suite, to the value to change; `null` if the suite is not the cause.
    #[serde(default)]
    pub pointer: Option<String>,
    /// The same position in the suite's text: `file:line:column`.
    #[serde(default)]
    pub place: Option<String>,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// The requirement is met.
    Passed,
    /// A run is possible, but proves less than it could.
    Warned,
    /// A run is impossible, or would prove nothing.
    Failed,
    /// Not checked: it is not required, or an earlier check failed.
    Skipped,
}

/// A run changed its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvent {
    /// When the state changed, RFC 3339.
    pub at: String,
    /// Id of the run.
    pub id: String,
    /// What the run executes.
    pub kind: RunKind,
    /// The suite's name.
    pub name: String,
    /// The new state.
    pub state: RunState,
    /// The overall score, once the run has ended and could be judged.
    pub score: Option<f64>,
    /// What failed, or why the run ended as it did.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_states_are_called_alike_everywhere() {
        for (name, state) in RunState::NAMES {
            assert_eq!(serde_json::json!(state), *name);
            assert_eq!(RunState::parse(name), Some(*state));
        }
        for (name, kind) in RunKind::NAMES {
            assert_eq!(serde_json::json!(kind), *name);
            assert_eq!(RunKind::parse(name), Some(*kind));
        }
    }
}
