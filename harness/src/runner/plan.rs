//! What a run tries, made of a suite.

use std::sync::Arc;

use squall_journal::reach::Rules;
use squall_profiles::profile::Profile;

use crate::invariants::Invariant;
use crate::outside::Outside;
use crate::suite::{Active, Contract, Counters, Isolation, Prices, Prompt, Suite};

/// What a run tries.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Id of the run.
    pub run: &'a str,
    /// What must hold.
    pub invariants: &'a [Invariant],
    /// What the agent is asked.
    pub prompts: &'a [Prompt],
    /// Under which chaos.
    pub trials: Vec<Trial>,
    /// What models' tokens cost.
    pub prices: &'a Prices,
    /// Whom invariants may ask.
    pub outside: Outside<'a>,
    /// Seed of every draw.
    pub seed: u64,
    /// How often a prompt is sent.
    pub isolation: Isolation,
    /// When rules' counters begin at zero.
    pub counters: Counters,
    /// How often everything is done, at least 1.
    pub repeat: u64,
}

/// One scenario.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Its name.
    pub name: String,
    /// Its rules.
    pub rules: Rules,
    /// Which families of rules it holds.
    pub active: Active,
}

/// Seed of runs that name none.
const SEED: u64 = 42;

impl Trial {
    /// Of chaos that stands in a suite.
    pub fn of(name: &str, chaos: &Arc<Profile>) -> Self {
        let active = Active::of(chaos);
        let (text, expanded) = chaos.version();
        let rules = if active.any() {
            Rules::Document {
                text: text.to_string(),
                variables: expanded.iter().collect(),
            }
        } else {
            Rules::Nothing
        };
        Self {
            name: name.to_owned(),
            rules,
            active,
        }
    }
}

impl<'a> Plan<'a> {
    /// Golden prompts under one scenario, and judged by the suite's invariants.
    pub fn chaos(suite: &'a Suite, run: &'a str, trial: Trial) -> Self {
        Self {
            run,
            invariants: &suite.invariants,
            prompts: &suite.golden_prompts,
            trials: vec![trial],
            prices: &suite.prices,
            outside: Outside::of(suite),
            seed: suite.advanced.seed.unwrap_or(SEED),
            isolation: Isolation::Scenario,
            counters: suite.advanced.counters,
            repeat: 1,
        }
    }

    /// Golden prompts under each scenario of a contract.
    pub fn contract(suite: &'a Suite, contract: &'a Contract, run: &'a str) -> Self {
        let scenarios = contract.scenarios.iter();
        Self {
            run,
            invariants: &contract.invariants,
            prompts: &suite.golden_prompts,
            trials: scenarios
                .map(|one| Trial::of(&one.name, &one.chaos))
                .collect(),
            prices: &suite.prices,
            outside: Outside::of(suite),
            seed: suite.advanced.seed.unwrap_or(SEED),
            isolation: contract.isolation,
            counters: suite.advanced.counters,
            repeat: 1,
        }
    }
}
