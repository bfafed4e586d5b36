//! What a run tries, made of a suite.

use std::sync::Arc;

use squall_profiles::library::Library;
use squall_profiles::profile::Profile;

use crate::dial::Dialler;
use crate::invariants::{Invariant, When};
use crate::outside::Outside;
use crate::reach::Rules;
use crate::run::DemandRecord;
use crate::suite::{Active, Contract, Counters, Isolation, Prices, Prompt, Suite, Way, told_rules};

/// What a run tries.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    /// Id of the run.
    pub(super) run: &'a str,
    /// What the agent is sent.
    pub(super) prompts: &'a [Prompt],
    /// What is made of that, one after the other.
    pub(super) parts: Vec<Part<'a>>,
    /// Names for upstreams, and the URL globs they stand for.
    pub(super) tools: &'a [(String, Vec<String>)],
    /// What models' tokens cost.
    pub(super) prices: &'a Prices,
    /// What invariants may ask.
    pub(super) outside: Outside<'a>,
    /// Seed of every draw.
    pub(super) seed: u64,
    /// When rules' counters begin at zero.
    pub(super) counters: Counters,
    /// How often everything is done, at least 1.
    pub(super) repeat: u64,
    /// How often an invocation is done again whose answer broke off before any fault was applied.
    pub(super) retries: u64,
    /// Whether the agent is reset before each invocation.
    pub(super) resets: bool,
    /// Whether the agent's CONNECTs are in the scope of its invocation: the proxy variables that a program gets contain it.
    pub(super) connects_in_scope: bool,
}

/// A scenario by its place in a part by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct InPart {
    pub(super) part: usize,
    pub(super) trial: usize,
}

/// Prompts under some chaos, and what must hold of them.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// What it is called in the overall score.
    pub(super) component: Component,
    /// What must hold.
    pub(super) invariants: &'a [Invariant],
    /// What must hold in another part: what has the name of one of these and is another has a name of its own.
    pub(super) others: &'a [Invariant],
    /// Under which chaos.
    pub(crate) trials: Vec<Trial>,
    /// How often a prompt is sent.
    pub(super) isolation: Isolation,
}

/// A component of the overall score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Component {
    /// Golden prompts under chaos: chaos resilience.
    Chaos,
    /// Invariants × scenarios: contract compliance.
    Contract,
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
    /// Its rules, a line each, for reports.
    pub told: Vec<String>,
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
            told: told_rules(chaos, &Library::builtin()),
        }
    }
}

impl<'a> Plan<'a> {
    /// A suite's prompts in these parts, once.
    pub(super) fn new(
        suite: &'a Suite,
        run: &'a str,
        parts: Vec<Part<'a>>,
        dialler: Dialler,
    ) -> Self {
        Self {
            run,
            prompts: &suite.golden_prompts,
            parts,
            tools: &suite.tools.written,
            prices: &suite.prices,
            outside: Outside::new(suite, dialler),
            seed: suite.advanced.seed.unwrap_or(SEED),
            counters: suite.advanced.counters,
            repeat: 1,
            retries: suite.advanced.retries,
            resets: suite.agent.reset.is_some(),
            connects_in_scope: matches!(suite.agent.way, Way::Command(_) | Way::Python { .. }),
        }
    }

    /// Whether what the agent does on the wire is judged in some scenario.
    pub(super) fn looks_at_the_wire(&self) -> bool {
        self.parts.iter().any(|part| {
            let applies = |when: When| part.trials.iter().any(|trial| when.applies(trial.active));
            let mut invariants = part.invariants.iter();
            invariants.any(|one| one.on_wire && applies(one.when))
        })
    }

    /// Whether some scenario keeps connections from being opened. Then none is kept alive anywhere in the run: it
    /// would carry one scenario's calls past the next one's faults.
    pub(super) fn fails_connections(&self) -> bool {
        let mut trials = self.parts.iter().flat_map(|part| &part.trials);
        trials.any(|trial| trial.active.connections)
    }

    /// Whether faults of a scenario are decided at CONNECTs that name no scope.
    pub(super) fn needs_shared_scope(&self, trial: Option<InPart>) -> bool {
        let trial = trial.and_then(|at| self.trial(at));
        !self.connects_in_scope && trial.is_some_and(|trial| trial.active.handshakes)
    }

    /// Whether an invocation is under no chaos.
    pub(super) fn is_clean(&self, trial: Option<InPart>) -> bool {
        let trial = trial.and_then(|at| self.trial(at));
        trial.is_none_or(|trial| !trial.active.any())
    }

    pub(super) fn trial(&self, at: InPart) -> Option<&Trial> {
        self.parts.get(at.part)?.trials.get(at.trial)
    }
}

impl<'a> Part<'a> {
    /// How often an invariant judges an invocation in one repeat.
    pub(super) fn verdicts(&self, prompts: usize) -> usize {
        let judged = |one: &Invariant| match one.probes.len() {
            0 => prompts,
            probes => probes,
        };
        let of_each: usize = self.invariants.iter().map(judged).sum();
        of_each.saturating_mul(self.trials.len())
    }

    /// What an invariant's cells are called.
    pub(super) fn name_of(&self, invariant: &Invariant) -> String {
        let mut name = invariant.id.clone();
        while self.others.iter().any(|other| other.id == name) {
            name.push_str(" (prompts)");
        }
        name
    }

    /// What must hold, for reports.
    pub(super) fn demands(&self) -> Vec<DemandRecord> {
        let invariants = self.invariants.iter();
        let demands = invariants.map(|one| DemandRecord {
            invariant: self.name_of(one),
            r#type: one.kind.to_owned(),
            severity: one.severity.as_str().to_owned(),
            parameters: one.parameters.clone(),
        });
        demands.collect()
    }

    /// Golden prompts under one scenario, judged by these invariants.
    pub(super) fn chaos(invariants: &'a [Invariant], trial: Trial) -> Self {
        Self {
            component: Component::Chaos,
            invariants,
            others: &[],
            trials: vec![trial],
            isolation: Isolation::Scenario,
        }
    }

    /// Golden prompts under each scenario of a contract.
    pub(crate) fn contract(contract: &'a Contract) -> Self {
        let scenarios = contract.scenarios.iter();
        Self {
            component: Component::Contract,
            invariants: &contract.invariants,
            others: &[],
            trials: scenarios
                .map(|one| Trial {
                    active: one.active,
                    ..Trial::of(&one.name, &one.chaos)
                })
                .collect(),
            isolation: contract.isolation,
        }
    }
}
