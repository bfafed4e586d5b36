//! A run as the API shows it: `GET /v1/runs/{id}`.

mod state;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::state::{RunKind, RunState};

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunRecord {
    /// Unique, and sorting by when it was asked for.
    pub id: String,
    /// What it tries.
    pub kind: RunKind,
    /// The suite's name.
    pub name: String,
    /// How far it is.
    pub state: RunState,
    /// 0 to 100; `null` until there is something to judge.
    pub score: Option<f64>,
    /// Whether the agent did what is demanded; `null` unless the run has passed or failed.
    pub passed: Option<bool>,
    /// What was tried.
    pub coverage: CoverageRecord,
    /// The scores of its parts.
    pub scores: ScoresRecord,
    /// What was judged, with the evidence. Not in lists.
    #[serde(default)]
    pub cells: Vec<CellRecord>,
    /// How each scenario went, in the suite's order.
    #[serde(default)]
    pub scenarios: Vec<ScenarioRecord>,
    /// How the agent recovers from each family of faults that was applied, by name.
    #[serde(default)]
    pub recoveries: Vec<RecoveryRecord>,
    /// How far repeats agree; `null` when everything was done once.
    #[serde(default)]
    pub stability: Option<StabilityRecord>,
    /// What became better and worse since another run; `null` when none was named.
    #[serde(default)]
    pub comparison: Option<ComparisonRecord>,
    /// What makes the run worth less than it looks: an agent that keeps state and is not reset, say.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What a run of kind `verify` has looked at, in order.
    #[serde(default)]
    pub checks: Vec<CheckRecord>,
    /// Seed of every draw.
    pub seed: u64,
    /// When it was asked for, RFC 3339.
    pub created_at: String,
    /// When somebody said yes to it, RFC 3339; `null` where nobody has, or need.
    #[serde(default)]
    pub approved_at: Option<String>,
    /// Who did: a token's name; `null` where no token was asked for.
    #[serde(default)]
    pub approved_by: Option<String>,
    /// When it came to its turn, RFC 3339; `null` before.
    pub started_at: Option<String>,
    /// When it was over, RFC 3339; `null` before.
    pub finished_at: Option<String>,
    /// What went wrong; `null` unless it is errored.
    pub error: Option<String>,
    /// Why it ended as it did, where the cells do not say; `null` otherwise.
    pub reason: Option<String>,
    /// Id of the daemon that executes it.
    pub daemon: String,
    /// The documents it is made of, and which version of each.
    pub documents: Vec<DocumentVersion>,
    /// The agent: its type, and where it is or what it is started with, without secrets; `null` when
    /// nobody knows.
    #[serde(default)]
    pub agent: Option<String>,
    /// Who signs certificates of it, as its suite says; `null` when it does not.
    #[serde(default)]
    pub tester: Option<String>,
    /// The score that it had to reach, 0 to 100; `null` when none was asked for.
    #[serde(default)]
    pub min_score: Option<f64>,
    /// The score from which on a certificate of it says that the agent passed, as its suite says; `null` when it
    /// does not.
    #[serde(default)]
    pub pass_threshold: Option<f64>,
    /// `html` or `pdf`: the form of its certificates, as its suite says; `null` when it does not.
    #[serde(default)]
    pub certificate_format: Option<String>,
    /// What was demanded; by parts, in the suite's order.
    #[serde(default)]
    pub demands: Vec<DemandRecord>,
}

impl RunRecord {
    /// A run that has not begun.
    pub fn queued(id: &str, kind: RunKind, name: &str, seed: u64) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            name: name.to_owned(),
            state: RunState::Queued,
            score: None,
            passed: None,
            coverage: CoverageRecord::default(),
            scores: ScoresRecord::default(),
            cells: Vec::new(),
            scenarios: Vec::new(),
            recoveries: Vec::new(),
            stability: None,
            comparison: None,
            warnings: Vec::new(),
            checks: Vec::new(),
            seed,
            created_at: String::new(),
            approved_at: None,
            approved_by: None,
            started_at: None,
            finished_at: None,
            error: None,
            reason: None,
            daemon: String::new(),
            documents: Vec::new(),
            agent: None,
            tester: None,
            min_score: None,
            pass_threshold: None,
            certificate_format: None,
            demands: Vec::new(),
        }
    }

    /// The texts of demands and rules.
    pub fn made_of(&mut self) -> impl Iterator<Item = &mut String> {
        let rules = self.scenarios.iter_mut().flat_map(|one| &mut one.rules);
        let demands = self.demands.iter_mut().map(|one| &mut one.parameters);
        rules.chain(demands)
    }
}

/// What an invariant demands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Demand")]
pub struct DemandRecord {
    /// The invariant's id, as cells have it.
    pub invariant: String,
    /// Its type.
    pub r#type: String,
    /// What a failure counts: `critical`, `high`, `medium`, `low`.
    pub severity: String,
    /// All that is written of it beside, `name: value`, without what variables stand for; empty: nothing.
    pub parameters: String,
}

/// A version of a document that a run is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentVersion {
    /// `suite`, `contract` or `profile`; `agent` is a file that the agent is started with.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Which version, from 1; `null` for what has none: a built-in profile, a file's, a suite that came
    /// with the run.
    pub version: Option<i64>,
    /// What a suite says of its own version; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_version: Option<String>,
    /// The text's SHA-256, 64 hex digits.
    pub digest: String,
}

impl DocumentVersion {
    /// The version for people: its number, and what it says of itself.
    pub fn told_version(&self) -> Option<String> {
        match (self.version, &self.own_version) {
            (Some(number), Some(own)) => Some(format!("{number} ({own})")),
            (Some(number), None) => Some(number.to_string()),
            (None, own) => own.clone(),
        }
    }
}

/// What was tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Coverage")]
pub struct CoverageRecord {
    /// Cells there are.
    pub cells: u64,
    /// Those of them that are under chaos.
    pub chaos_cells: u64,
    /// Of these, those in which a planned fault was applied.
    pub exercised: u64,
    /// How often a rule was applied.
    pub rules_applied: u64,
    /// How often the agent was asked.
    pub agent_invocations: u64,
}

impl CoverageRecord {
    /// Takes in what was done at least, whatever of it is judged.
    pub fn and_tried(&mut self, agent_invocations: u64, rules_applied: u64) {
        self.agent_invocations = self.agent_invocations.max(agent_invocations);
        self.rules_applied = self.rules_applied.max(rules_applied);
    }
}

/// Scores of a run's parts, 0 to 100; `null` for what did not run, or could not be judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Scores")]
pub struct ScoresRecord {
    /// Of mutated prompts.
    pub mutation_robustness: Option<f64>,
    /// Of golden prompts under chaos.
    pub chaos_resilience: Option<f64>,
    /// Of a contract.
    pub contract_compliance: Option<f64>,
    /// Of recorded sessions.
    pub replay_regression: Option<f64>,
    /// All of them, weighted.
    pub overall: Option<f64>,
}

/// An invariant in a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cell")]
pub struct CellRecord {
    /// What is demanded, by its id or type.
    pub invariant: String,
    /// Under which chaos.
    pub scenario: String,
    /// `critical`, `high`, `medium` or `low`.
    pub severity: String,
    /// What became of it.
    pub state: CellState,
    /// Why.
    pub reason: Option<String>,
    /// How often a planned fault was applied.
    pub faults_applied: u64,
    /// The type of mutation, of a mutated prompt.
    pub mutation: Option<String>,
    /// Whether it fails without chaos too.
    #[serde(default)]
    pub baseline_failed: bool,
    /// What it was judged by.
    pub evidence: Vec<EvidenceRecord>,
}

/// What became of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// The agent did what is demanded.
    Passed,
    /// It did not.
    Failed,
    /// No planned fault was applied.
    NotExercised,
    /// It is not demanded here.
    NotApplicable,
    /// It could not be judged.
    Error,
}

/// A scenario, as it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Scenario")]
pub struct ScenarioRecord {
    /// Its name.
    pub name: String,
    /// Whether there is chaos in it.
    pub under_chaos: bool,
    /// How often a planned fault was applied in it, whatever was judged.
    pub rules_applied: u64,
    /// How often the agent was asked in it.
    pub invocations: u64,
    /// Its rules, a line each, with their parameters and the texts that they inject.
    #[serde(default)]
    pub rules: Vec<String>,
}

/// How the agent recovers from a family of faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Recovery")]
pub struct RecoveryRecord {
    /// `network_faults`, `tool_faults`, `llm_faults` or `context_attacks`.
    pub family: String,
    /// Invocations in which it was applied and all invariants hold.
    pub passed: u64,
    /// Invocations in which it was applied and that could be judged.
    pub judged: u64,
    /// `passed` of `judged`, 0 to 100.
    pub rate: f64,
    /// Lower end of the 95 % Wilson interval of `rate`, 0 to 100.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// How far repeats of the same invocation agree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Stability")]
pub struct StabilityRecord {
    /// How often everything was done, at least 2.
    pub repeats: u64,
    /// Prompts in a scenario that could be judged in every repeat, or failed in one.
    pub judged: u64,
    /// Those of them that passed every time (pass^k).
    pub always_passed: u64,
    /// Those of them that passed at times and failed at others.
    pub flaky: u64,
    /// `always_passed` of `judged`, 0 to 100; `null` when nothing could be judged.
    pub pass_k: Option<f64>,
}

/// A run beside an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Comparison")]
pub struct ComparisonRecord {
    /// Id of the earlier run.
    pub baseline: String,
    /// Its score.
    pub score_before: Option<f64>,
    /// Cells that fail now and did not then, or that are new (`before` is `null`) and fail.
    pub newly_failing: Vec<CellChange>,
    /// Cells that failed and pass now.
    pub fixed: Vec<CellChange>,
    /// Cells whose state changed in another way, those that are gone included.
    pub changed: Vec<CellChange>,
}

impl ComparisonRecord {
    /// Cells that fail now, and were there and did not.
    pub fn broken(&self) -> usize {
        let was_there = self.newly_failing.iter().filter(|one| one.before.is_some());
        was_there.count()
    }

    /// Whether something fails that was there and did not, or the score has fallen.
    pub fn is_regression(&self, score: Option<f64>) -> bool {
        let fallen = self
            .score_before
            .zip(score)
            .is_some_and(|(before, now)| now < before);
        fallen || self.broken() > 0
    }
}

/// A cell then and now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellChange {
    /// What is demanded, by its id or type.
    pub invariant: String,
    /// Under which chaos.
    pub scenario: String,
    /// What it was; `null` when there was no such cell.
    pub before: Option<CellState>,
    /// What it is; `null` when there is no such cell any more.
    pub after: Option<CellState>,
}

/// One invocation of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Evidence")]
pub struct EvidenceRecord {
    /// In which repeat, from 1; `null` in a run that did everything once, and in runs of before there was this member.
    #[serde(default)]
    pub repeat: Option<u64>,
    /// What it was asked.
    pub prompt: String,
    /// What it answered; `null` when it did not.
    pub answer: Option<String>,
    /// How long that took, milliseconds.
    pub latency_ms: f64,
    /// Ids of the exchanges it caused.
    pub exchanges: Vec<String>,
    /// The exchange that shows it: the one that the check found, or the last that a fault made fail; `null` where there is
    /// none.
    #[serde(default)]
    pub telling: Option<String>,
    /// What the invariant said of this invocation alone; `null` in runs of before there was this member.
    #[serde(default)]
    pub state: Option<CellState>,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// How often a planned fault was applied in it.
    #[serde(default)]
    pub faults_applied: u64,
}

/// One thing that a run needs, looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Check")]
pub struct CheckRecord {
    /// What was looked at: `suite`, `reset`, `agent`, `answer`, `proxy`, `scopes`, `upstreams`, `models`,
    /// `tools` or `model`.
    pub name: String,
    /// What became of it.
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// What to change; `null` where nothing need be.
    #[serde(default)]
    pub advice: Option<String>,
    /// JSON pointer into the suite, to what to change; `null` where the suite is not what is wrong.
    #[serde(default)]
    pub pointer: Option<String>,
    /// The same in the suite's text: `file:line:column`.
    #[serde(default)]
    pub place: Option<String>,
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// It is as a run needs it.
    Passed,
    /// A run can be made, and shows less than it could.
    Warned,
    /// A run cannot be made, or would show nothing.
    Failed,
    /// It was not looked at: nothing asks for it, or what comes before it failed.
    Skipped,
}

/// A run has come to another state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvent {
    /// When, RFC 3339.
    pub at: String,
    /// Which run.
    pub id: String,
    /// What it tries.
    pub kind: RunKind,
    /// The suite's name.
    pub name: String,
    /// How far it is now.
    pub state: RunState,
    /// Its score, once it is over and could be judged.
    pub score: Option<f64>,
    /// What went wrong, or why it ended as it did.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_states_are_called_alike_everywhere() {
        for state in RunState::ALL {
            assert_eq!(serde_json::json!(state), state.as_str());
            assert_eq!(RunState::parse(state.as_str()), Some(state));
        }
        for kind in RunKind::ALL {
            assert_eq!(serde_json::json!(kind), kind.as_str());
            assert_eq!(RunKind::parse(kind.as_str()), Some(kind));
        }
    }
}
