//! Mutations: golden prompts that are changed before the agent is invoked.
//!
//! A mutation type has templates, which are data (`harness/mutations/*.yaml`), or it is the suite's own: texts, or a
//! program. Types of prompts change the text or the turns; wire-level types change the request to an HTTP agent.
//!
//! ```text
//! prompt ──▶ place (turn, line) ──▶ template, model or program ──▶ valid, new? ──▶ Mutant
//! ```
//!
//! A search ([`SearchSettings`]) applies several templates after each other, and selects by how close mutants come to failing.
//!
//! Every draw is a keyed hash of seed, type, prompt and number. So a mutant does not depend on the others.

mod corpus;
mod place;
mod program;
mod search;
pub(crate) mod settings;
mod templates;
mod text;
mod words;
mod write;
mod written;

use squall_profiles::dice::{Dice, RuleKey};
use squall_profiles::fingerprint::Fingerprint;

pub use self::corpus::corpus;
pub(crate) use self::search::MutationSearch;
pub use self::settings::{MutationProgram, Mutations, SearchSettings};
pub use self::templates::MutationTemplate;
pub use self::write::{Mutants, MutationError, Writing};
pub use self::written::MutantCache;
use crate::agents::change::RequestChange;
use crate::prompt::Prompt;

/// A type of mutation.
#[derive(Debug, PartialEq)]
pub struct MutationType {
    /// Its name in suites and reports.
    pub name: &'static str,
    /// Its default weight in the score.
    pub weight: f64,
    /// Whether it changes the request instead of the prompt.
    pub is_wire: bool,
}

const fn of_prompts(name: &'static str, weight: f64) -> MutationType {
    MutationType {
        name,
        weight,
        is_wire: false,
    }
}

const fn of_requests(name: &'static str, weight: f64) -> MutationType {
    MutationType {
        name,
        weight,
        is_wire: true,
    }
}

/// All types, in the order of the documentation.
pub const TYPES: [MutationType; 24] = [
    of_prompts("paraphrase", 1.0),
    of_prompts("noise", 0.8),
    of_prompts("tone_shift", 0.9),
    of_prompts("prompt_injection", 1.5),
    of_prompts("encoding_attacks", 1.3),
    of_prompts("context_manipulation", 1.1),
    of_prompts("length_extremes", 1.2),
    of_prompts("custom", 1.0),
    of_prompts("multi_turn_attack", 1.4),
    of_prompts("advanced_jailbreak", 2.0),
    of_prompts("semantic_similarity_attack", 1.3),
    of_prompts("format_poisoning", 1.6),
    of_prompts("language_mixing", 1.2),
    of_prompts("token_manipulation", 1.5),
    of_prompts("temporal_attack", 1.1),
    of_requests("http_header_injection", 1.7),
    of_requests("payload_size_attack", 1.4),
    of_requests("content_type_confusion", 1.5),
    of_requests("query_parameter_poisoning", 1.6),
    of_requests("request_method_attack", 1.3),
    of_requests("protocol_level_attack", 1.8),
    of_requests("resource_exhaustion", 1.5),
    of_requests("concurrent_request_pattern", 1.4),
    of_requests("timeout_manipulation", 1.3),
];

impl MutationType {
    /// The type with this name; `None`: it is a program of the suite.
    fn named(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|known| known.name == name)
    }
}

/// Longest mutant that a model or a program writes, in bytes.
const LONGEST: usize = 64 << 10;

/// The type of the suite's own texts.
const CUSTOM: &str = "custom";

/// The types whose mutants mean the same as the golden prompt.
const KEEPS_MEANING: [&str; 3] = ["paraphrase", "noise", "tone_shift"];

/// The types whose mutants mean something else than the golden prompt.
pub const CHANGES_MEANING: &str = "semantic_similarity_attack";

/// A changed prompt or request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// Its type: one of [`TYPES`], or the name of a program.
    pub kind: String,
    /// The golden prompt.
    pub original: Prompt,
    /// What the agent is asked.
    pub prompt: Prompt,
    /// How the request is changed.
    pub change: Option<RequestChange>,
    /// How it was made, oldest step first.
    pub lineage: Vec<String>,
    /// The steps that make it again; none if it cannot be searched from.
    pub(crate) steps: Vec<MutationStep>,
}

/// One application of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MutationStep {
    /// The type.
    kind: &'static str,
    /// The number of the candidate, which selects the template and its draws.
    number: usize,
    /// Whether it makes a new last turn instead of a change.
    is_new_turn: bool,
}

/// A draw from 0 to `bound - 1`.
fn below(bound: usize, dice: &mut Dice) -> usize {
    usize::try_from(dice.below(bound as u64)).unwrap_or(0)
}

/// The dice of the mutant with this number.
fn dice(seed: u64, kind: &str, prompt: &str, number: u64) -> Dice {
    Dice::new(RuleKey::new(seed, kind, prompt), Fingerprint(0), number)
}

#[cfg(test)]
mod tests;
