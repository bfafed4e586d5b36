//! Invariants: demands on what an agent answers and on what it does on the wire.
//!
//! A kind of invariant is one file below this one and one line in a table ([`ON_ANSWERS`], [`wire::KINDS`]). Its `read`
//! takes its parameters from the suite, with their defaults and ranges, and returns a [`Check`], which judges a
//! [`Subject`] without a clock, a socket or dice. What holds for every kind (`negate`, `when`, `severity`, `probes`,
//! `baseline`, `prompt_filter`) is here.

mod judge;
mod reading;
#[cfg(test)]
pub(crate) mod testing;
mod words;

mod behavior_unchanged;
mod command;
mod completes;
mod contains;
mod excludes_pattern;
mod excludes_pii;
mod json_schema;
mod latency;
mod llm_judge;
mod max_length;
mod model_judge;
mod output_not_empty;
mod refusal_check;
mod regex_pattern;
mod similarity;
mod valid_json;
mod wire;
pub(crate) mod without_effect;

use std::fmt::Debug;
use std::sync::Arc;

use squall_documents::{DocumentError, Fields, Position};

pub use self::judge::{Baseline, Subject, Verdict};
pub(crate) use self::reading::read;
use crate::answer::Answer;
use crate::pattern::Pattern;
use crate::suite::{Active, Prompt, Touched};

/// One demand.
#[derive(Debug, Clone)]
pub struct Invariant {
    /// Unique in its list; without one it is the type and an ordinal.
    pub id: String,
    /// The type in files.
    pub kind: &'static str,
    /// Whether it looks at the wire, so that bodies have to be kept.
    pub on_wire: bool,
    /// What it demands, in a person's words.
    pub description: Option<String>,
    /// What a failure counts. Default medium.
    pub severity: Severity,
    /// Under which chaos it is judged. Default always.
    pub when: When,
    /// Whether the opposite is demanded. Default false.
    pub negate: bool,
    /// Prompts of its own, each in an invocation of its own; empty: it judges the golden prompts.
    pub probes: Vec<Prompt>,
    /// The clean answer; absent: what the agent answers to the same prompt without chaos.
    pub baseline: Option<Answer>,
    /// The golden prompts it judges; absent: all.
    pub prompt_filter: Option<PromptFilter>,
    /// The tool that it names, or a glob over tools; absent: any.
    pub tool: Option<String>,
    /// Where it stands.
    pub place: InvariantPlace,
    /// What is written of it beside id, type, severity and description, `name: value`, variables not expanded.
    pub parameters: String,
    /// Fields of flakestorm's that its type does not take.
    pub(crate) without_effect: Vec<&'static str>,
    pub(crate) check: Arc<dyn Check>,
}

impl Invariant {
    /// What of the machine judging it touches.
    pub(crate) fn touches(&self) -> Option<Touched> {
        let pointer = || self.place.pointer.clone();
        self.check
            .starts_a_program()
            .then(|| Touched::Program { pointer: pointer() })
    }
}

/// Where an invariant stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantPlace {
    /// The position in its suite, whose files count on.
    pub position: Position,
    /// JSON pointer to it.
    pub pointer: String,
}

impl InvariantPlace {
    /// Something said of the invariant.
    pub fn error(&self, message: impl Into<String>) -> DocumentError {
        DocumentError {
            file: String::new(),
            position: self.position,
            pointer: self.pointer.clone(),
            message: message.into(),
        }
    }
}

/// What a failure counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Counts 1.
    Low,
    /// Counts 1.
    #[default]
    Medium,
    /// Counts 2.
    High,
    /// Counts 3, and fails the whole contract.
    Critical,
}

impl Severity {
    /// Its weight in scores.
    pub fn weight(self) -> u64 {
        match self {
            Self::Critical => 3,
            Self::High => 2,
            Self::Medium | Self::Low => 1,
        }
    }

    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// Under which chaos an invariant is judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum When {
    /// Under any and none.
    #[default]
    Always,
    /// Under none.
    NoChaos,
    /// Under any.
    AnyChaos,
    /// Where a rule of `tool_faults` is that does more than delay.
    ToolFaults,
    /// Where a rule of `llm_faults` is.
    LlmFaults,
    /// Where a rule of `network_faults` is.
    NetworkFaults,
    /// Where a context attack is.
    ContextAttacks,
}

impl When {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Always,
        Self::NoChaos,
        Self::AnyChaos,
        Self::ToolFaults,
        Self::LlmFaults,
        Self::NetworkFaults,
        Self::ContextAttacks,
    ];

    /// The word in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::NoChaos => "no_chaos",
            Self::AnyChaos => "any_chaos_active",
            Self::ToolFaults => "tool_faults_active",
            Self::LlmFaults => "llm_faults_active",
            Self::NetworkFaults => "network_faults_active",
            Self::ContextAttacks => "context_attacks_active",
        }
    }

    /// Whether a scenario with these rules is one of them, or an invocation in which these were applied.
    pub fn applies(self, active: Active) -> bool {
        match self {
            Self::Always => true,
            Self::NoChaos => !active.any(),
            Self::AnyChaos => active.any(),
            Self::ToolFaults => active.tool_failures,
            Self::LlmFaults => active.llm,
            Self::NetworkFaults => active.network,
            Self::ContextAttacks => active.context,
        }
    }
}

/// A regular expression over golden prompts.
#[derive(Debug, Clone)]
pub struct PromptFilter(pub(crate) Pattern);

impl PromptFilter {
    /// Whether the prompt is judged. One that takes too long to match is.
    pub fn wants(&self, prompt: &Prompt) -> bool {
        self.0.is_match(&prompt.text()).unwrap_or(true)
    }
}

/// What one kind of invariant demands.
pub(crate) trait Check: Debug + Send + Sync {
    /// Whether it holds. It is judged again once [`Subject::replies`] has what it looked up there in vain.
    fn judge(&self, subject: &Subject<'_>) -> Verdict;

    /// Tools that it names beside its `tool`, or globs over them.
    fn tools(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether it asks the suite's model.
    fn needs_model(&self) -> bool {
        false
    }

    /// Whether judging it starts a program that the suite names.
    fn starts_a_program(&self) -> bool {
        false
    }

    /// Whether it cannot be judged without what the agent did in the clean run.
    fn needs_baseline(&self) -> bool {
        false
    }
}

/// Reads the parameters of a kind of invariant; `None` after an error.
type ReadCheck = fn(&mut Fields<'_, '_>) -> Option<Box<dyn Check>>;

/// A kind of invariant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// The type in files.
    pub(crate) name: &'static str,
    /// Whether it looks at the wire, not at the answer.
    pub(crate) on_wire: bool,
    /// Reads its parameters.
    pub(crate) read: ReadCheck,
}

impl Kind {
    const fn answer(name: &'static str, read: ReadCheck) -> Self {
        Self {
            name,
            on_wire: false,
            read,
        }
    }
}

/// Every kind that looks at the answer.
const ON_ANSWERS: &[Kind] = &[
    contains::CONTAINS,
    contains::CONTAINS_ANY,
    contains::NOT_CONTAINS,
    regex_pattern::REGEX,
    excludes_pattern::EXCLUDES_PATTERN,
    latency::LATENCY,
    valid_json::VALID_JSON,
    json_schema::JSON_SCHEMA,
    similarity::SIMILARITY,
    behavior_unchanged::BEHAVIOR_UNCHANGED,
    excludes_pii::EXCLUDES_PII,
    refusal_check::REFUSAL_CHECK,
    refusal_check::REFUSAL,
    output_not_empty::OUTPUT_NOT_EMPTY,
    completes::COMPLETES,
    max_length::MAX_LENGTH,
    llm_judge::LLM_JUDGE,
    command::COMMAND,
];

/// Every kind, as it is listed in messages.
pub(crate) fn kinds() -> impl Iterator<Item = &'static Kind> + Clone {
    ON_ANSWERS.iter().chain(&wire::KINDS)
}

/// The types in files.
pub fn type_names() -> impl Iterator<Item = &'static str> + Clone {
    kinds().map(|kind| kind.name)
}
