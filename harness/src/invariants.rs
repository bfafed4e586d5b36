//! Invariants: checks of an agent's answers and of its traffic.
//!
//! Each kind of invariant is one file in this module and one line in a table ([`ON_ANSWERS`], [`wire::KINDS`]). Its
//! `read` function reads its parameters from the suite, with their defaults and ranges, and returns a [`Check`]. A
//! check judges a [`Subject`] without a clock, sockets or randomness. This file has what all kinds share: `negate`,
//! `when`, `severity`, `probes`, `baseline` and `prompt_filter`.

mod active;
mod judge;
pub(crate) mod prices;
mod reading;
#[cfg(test)]
pub(crate) mod testing;
mod words;

mod behavior_unchanged;
mod command;
mod completes;
mod contains;
mod conversations;
mod excludes_pattern;
mod excludes_pii;
mod json_schema;
mod latency;
mod llm_judge;
mod max_length;
pub(crate) mod measures;
mod model_judge;
mod output_not_empty;
mod refusal_check;
mod regex_pattern;
mod repeats;
mod similarity;
mod valid_json;
mod wire;
mod without_effect;

use std::fmt::Debug;
use std::sync::Arc;

use squall_documents::{DocumentError, Fields, Position};

pub use self::active::Active;
pub(crate) use self::conversations::conversation_canary;
pub use self::judge::{Baseline, Subject, Verdict};
pub use self::prices::{Prices, TokenPrice};
pub(crate) use self::reading::{member_list, read};
use crate::answer::AgentAnswer;
use crate::pattern::Pattern;
use crate::prompt::Prompt;
use squall_documents::named;

/// One invariant of a suite.
#[derive(Debug, Clone)]
pub struct Invariant {
    /// Unique in its list; by default the type and an ordinal.
    pub id: String,
    /// The type in files.
    pub kind: &'static str,
    /// Whether it judges the traffic, so that bodies must be captured.
    pub on_wire: bool,
    /// A description for people.
    pub description: Option<String>,
    /// The weight of a failure. Default medium.
    pub severity: InvariantSeverity,
    /// The chaos under which it is judged. Default always.
    pub when: When,
    /// Whether the opposite must hold. Default false.
    pub negate: bool,
    /// Its own prompts, each in a separate invocation; empty: it judges the golden prompts.
    pub probes: Vec<Prompt>,
    /// The clean answer; absent: the agent's answer to the same prompt without chaos.
    pub baseline: Option<AgentAnswer>,
    /// The golden prompts that it judges; absent: all.
    pub prompt_filter: Option<PromptFilter>,
    /// Its tool, or a glob for tools; absent: any tool.
    pub tool: Option<String>,
    /// Its place in the suite.
    pub place: InvariantPlace,
    /// Its other fields as `name: value`, without id, type, severity and description; variables not expanded.
    pub parameters: String,
    pub(crate) check: Arc<Check>,
}

impl Invariant {
    /// Whether it forbids texts in answers and requires nothing, so that it judges rejections too.
    pub fn forbids(&self) -> bool {
        match self.kind {
            "not_contains" | "excludes_pattern" | "excludes_pii" => !self.negate,
            "contains" | "contains_any" | "regex" => self.negate,
            _ => false,
        }
    }
}

/// The place of an invariant in a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvariantPlace {
    /// The position in the suite, whose line numbers continue in its files.
    pub position: Position,
    /// JSON pointer to the invariant.
    pub pointer: String,
}

impl InvariantPlace {
    /// An error or warning at the invariant.
    pub fn error(&self, message: impl Into<String>) -> DocumentError {
        DocumentError {
            file: String::new(),
            position: self.position,
            pointer: self.pointer.clone(),
            message: message.into(),
        }
    }
}

named! {
    /// The weight of a failure.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum InvariantSeverity {
        /// Weight 3; a failure also fails the whole contract.
        Critical = "critical",
        /// Weight 2.
        High = "high",
        /// Weight 1.
        #[default]
        Medium = "medium",
        /// Weight 1.
        Low = "low",
    }
}

named! {
    /// The chaos under which an invariant is judged.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
    pub enum When {
        /// With and without chaos.
        #[default]
        Always = "always",
        /// Only without chaos.
        NoChaos = "no_chaos",
        /// Only under chaos.
        AnyChaos = "any_chaos_active",
        /// Under a rule of `tool_faults` that does more than delay.
        ToolFaults = "tool_faults_active",
        /// Under a rule of `llm_faults`.
        LlmFaults = "llm_faults_active",
        /// Under a rule of `network_faults`.
        NetworkFaults = "network_faults_active",
        /// Under a context attack.
        ContextAttacks = "context_attacks_active",
        /// Under a fault of the conversation.
        ConversationFaults = "conversation_faults_active",
    }
}

impl When {
    /// Whether it includes a scenario with these rules, or an invocation in which these were applied.
    pub fn applies(self, active: Active) -> bool {
        match self {
            Self::Always => true,
            Self::NoChaos => !active.any(),
            Self::AnyChaos => active.any(),
            Self::ToolFaults => active.tool_failures,
            Self::LlmFaults => active.llm,
            Self::NetworkFaults => active.network,
            Self::ContextAttacks => active.context,
            Self::ConversationFaults => active.conversation,
        }
    }
}

/// A regular expression for golden prompts.
#[derive(Debug, Clone)]
pub struct PromptFilter(pub(crate) Pattern);

impl PromptFilter {
    /// Whether the prompt is judged. It is judged if matching takes too long.
    pub fn wants(&self, prompt: &Prompt) -> bool {
        self.0.is_match(&prompt.text()).unwrap_or(true)
    }
}

/// The conversations of one invocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Conversations {
    /// One.
    #[default]
    One,
    /// So many with the same prompt, one after the other.
    Repeated(u64),
    /// Two with the same prompt, turn by turn, each with a canary in its first turn.
    Interleaved,
}

/// The check of an invariant.
pub(crate) struct Check {
    /// Judges a subject. It is repeated after [`Subject::replies`] has the replies that were missing.
    judge: Box<dyn Fn(&Subject<'_>) -> Verdict + Send + Sync>,
    /// Whether it uses the suite's model.
    pub(crate) needs_model: bool,
    /// Whether it starts a program of the suite.
    pub(crate) starts_a_program: bool,
    /// Whether it requires the clean run.
    needs_baseline: bool,
    /// Repeats of the invocation that it compares, at least; 1: it judges each invocation alone.
    pub(crate) repeats: usize,
    /// The conversations of the invocations that it judges.
    pub(crate) conversations: Conversations,
}

impl Check {
    /// A check that uses only the subject.
    fn new(judge: impl Fn(&Subject<'_>) -> Verdict + Send + Sync + 'static) -> Self {
        Self {
            judge: Box::new(judge),
            needs_model: false,
            starts_a_program: false,
            needs_baseline: false,
            repeats: 1,
            conversations: Conversations::One,
        }
    }
}

impl Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Check")
    }
}

/// Reads the parameters of a kind of invariant; `None` after an error.
type ReadCheck = fn(&mut Fields<'_, '_>) -> Option<Check>;

/// A kind of invariant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InvariantKind {
    /// The type name in files.
    pub(crate) name: &'static str,
    /// Whether it judges the traffic, not the answer.
    pub(crate) on_wire: bool,
    /// Reads its parameters.
    pub(crate) read: ReadCheck,
}

impl InvariantKind {
    const fn answer(name: &'static str, read: ReadCheck) -> Self {
        Self {
            name,
            on_wire: false,
            read,
        }
    }

    const fn wire(name: &'static str, read: ReadCheck) -> Self {
        Self {
            name,
            on_wire: true,
            read,
        }
    }
}

/// Every kind that judges the answer.
const ON_ANSWERS: &[InvariantKind] = &[
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
    conversations::REMEMBERS,
    conversations::CONSISTENT,
    conversations::NO_CROSS_SESSION,
    repeats::VARIANCE,
    repeats::OUTLIERS,
    llm_judge::LLM_JUDGE,
    command::COMMAND,
];

/// Every kind, in the order of messages.
pub(crate) fn kinds() -> impl Iterator<Item = &'static InvariantKind> + Clone {
    ON_ANSWERS.iter().chain(&wire::KINDS)
}

/// The type names in files.
pub fn type_names() -> impl Iterator<Item = &'static str> + Clone {
    kinds().map(|kind| kind.name)
}
