//! The plan of a run: what a suite makes it execute.

use std::borrow::Cow;
use std::iter::successors;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use squall_journal::tape::Session;
use squall_profiles::library::Library;
use squall_profiles::profile::Profile;
use squall_profiles::tools::ToolNames;

use crate::agents::ConversationFault;
use crate::agents::conversation::ConversationSupport;
use crate::agents::settings::Way;
use crate::dial::Dialler;
use crate::invariants::{Active, Invariant, Prices, When};
use crate::mutations::{Mutant, Mutations};
use crate::outside::Outside;
use crate::prompt::Prompt;
use crate::reach::Rules;
use crate::run::DemandRecord;
use crate::suite::{Contract, Counters, Isolation, Suite, rule_lines};

/// What a run executes.
#[derive(Debug)]
pub(super) struct RunPlan<'a> {
    /// Id of the run.
    pub(super) run: &'a str,
    /// The suite's golden prompts.
    pub(super) prompts: &'a [Prompt],
    /// Its parts, executed one after the other.
    pub(super) parts: PlannedParts<'a>,
    /// Names of upstreams, with their URL globs.
    pub(super) tools: &'a ToolNames,
    /// The suite's mutations, for the weights of types.
    pub(super) mutations: Option<&'a Mutations>,
    /// Prices of model tokens.
    pub(super) prices: &'a Prices,
    /// The external services that invariants may call.
    pub(super) outside: Outside<'a>,
    /// Seed of every draw.
    pub(super) seed: u64,
    /// When the counters of rules are reset.
    pub(super) counters: Counters,
    /// Repeats of every scenario, at least 1.
    pub(super) repeat: u64,
    /// Whether failures are shrunk.
    pub(super) shrinks: bool,
    /// Whether the agent is reset before each invocation.
    pub(super) resets: bool,
    /// The faults of conversations that the agent supports.
    pub(super) conversation: ConversationSupport,
    /// Whether the agent's CONNECTs carry the scope of their invocation. They do if the agent's proxy variables
    /// contain it.
    pub(super) connects_in_scope: bool,
}

/// The parts of a plan. Later rounds add parts while the results of earlier ones are borrowed.
#[derive(Debug)]
pub(super) struct PlannedParts<'a> {
    parts: Vec<RunPart<'a>>,
    later: OnceLock<Box<Self>>,
}

impl<'a> PlannedParts<'a> {
    fn new(parts: Vec<RunPart<'a>>) -> Self {
        Self {
            parts,
            later: OnceLock::new(),
        }
    }

    /// All parts, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RunPart<'a>> {
        let rounds = successors(Some(self), |round| round.later.get().map(Box::as_ref));
        rounds.flat_map(|round| &round.parts)
    }

    /// Appends the parts of the next round.
    pub(super) fn add(&self, parts: Vec<RunPart<'a>>) {
        let mut rounds = successors(Some(self), |round| round.later.get().map(Box::as_ref));
        if let Some(last) = rounds.find(|round| round.later.get().is_none()) {
            let _ = last.later.set(Box::new(Self::new(parts)));
        }
    }
}

/// Identifies a scenario by the index of its part and its index in that part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct InPart {
    pub(super) part: usize,
    pub(super) trial: usize,
}

/// Prompts under some scenarios, and the invariants that judge them.
#[derive(Debug)]
pub(crate) struct RunPart<'a> {
    /// Its component of the overall score.
    pub(super) component: Component,
    /// The invariants that judge it.
    pub(super) invariants: Cow<'a, [Invariant]>,
    /// The invariants of another part. An invariant whose id is among theirs gets another name in its cells.
    pub(super) others: &'a [Invariant],
    /// Its scenarios.
    pub(crate) trials: Vec<Trial>,
    /// Whether each invariant gets an invocation of its own.
    pub(super) isolation: Isolation,
}

/// A component of the overall score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Component {
    /// Golden prompts under chaos: chaos resilience.
    Chaos,
    /// Invariants × scenarios: contract compliance.
    Contract,
    /// Mutated prompts and requests: mutation robustness.
    Mutation,
    /// Recorded sessions: replay regression.
    Replay,
    /// Golden prompts under the faults of an exploration.
    Exploration,
    /// Golden prompts at a level of concurrency.
    Load(LoadLimits),
}

/// What limits the invocations of a level of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LoadLimits {
    /// Most invocations at once.
    pub(super) at_once: usize,
    /// How long invocations begin.
    pub(super) within: Duration,
}

/// One scenario of a run.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Its name.
    pub name: String,
    /// Its rules.
    pub rules: Rules,
    /// The families of rules that it contains.
    pub active: Active,
    /// Faults of its conversations.
    pub conversation_faults: Vec<ConversationFault>,
    /// Its rules for reports, one line each.
    pub rule_lines: Vec<String>,
    /// What the agent is asked.
    pub prompts: TrialPrompts,
    /// The type of its mutants; `None`: the prompts are not mutated.
    pub mutation: Option<String>,
    /// The session that it replays; `None`: it replays none.
    pub tape: Option<Arc<Session>>,
}

/// The prompts of a scenario.
#[derive(Debug, Clone)]
pub enum TrialPrompts {
    /// The suite's golden prompts, and the probes of invariants.
    Golden,
    /// Prompts of its own.
    Own(Vec<TrialPrompt>),
}

/// What one invocation asks, if it is no golden prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPrompt {
    /// The prompt.
    pub prompt: Prompt,
    /// The golden prompt whose clean answer is the baseline; `None`: there is no baseline.
    pub original: Option<Prompt>,
    /// The mutant; `None`: the prompt is not mutated.
    pub mutant: Option<Mutant>,
}

/// The default seed.
const SEED: u64 = 42;

impl Trial {
    /// Builds a scenario from a suite's chaos.
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
            rules,
            active,
            rule_lines: rule_lines(chaos, &Library::builtin()),
            ..Self::clean(name)
        }
    }

    /// Golden prompts without chaos.
    pub fn clean(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rules: Rules::Nothing,
            active: Active::default(),
            conversation_faults: Vec::new(),
            rule_lines: Vec::new(),
            prompts: TrialPrompts::Golden,
            mutation: None,
            tape: None,
        }
    }

    /// The mutants of one type, without chaos or under this chaos.
    pub(super) fn mutation(kind: &str, mutants: &[Mutant], chaos: Option<&Self>) -> Self {
        let prompts = mutants.iter().map(|mutant| TrialPrompt {
            prompt: mutant.prompt.clone(),
            original: Some(mutant.original.clone()),
            mutant: Some(mutant.clone()),
        });
        Self {
            name: kind.to_owned(),
            prompts: TrialPrompts::Own(prompts.collect()),
            mutation: Some(kind.to_owned()),
            ..chaos.cloned().unwrap_or_else(|| Self::clean(kind))
        }
    }

    /// Replays a session. `None`: the session has no input.
    fn replay(session: &Session) -> Option<Self> {
        let prompt = TrialPrompt {
            prompt: Prompt::conversation(session.input.clone())?,
            original: None,
            mutant: None,
        };
        Some(Self {
            prompts: TrialPrompts::Own(vec![prompt]),
            tape: Some(Arc::new(session.clone())),
            active: Active::of_an_incident(),
            ..Self::clean(&session.id)
        })
    }

    /// Whether planned faults must be applied, so that it proves something.
    pub(super) fn is_under_chaos(&self) -> bool {
        self.active.any() && self.tape.is_none()
    }
}

impl<'a> RunPlan<'a> {
    /// Plans one repeat of a suite's prompts in these parts.
    pub(super) fn new(
        suite: &'a Suite,
        run: &'a str,
        parts: Vec<RunPart<'a>>,
        dialler: Dialler,
    ) -> Self {
        Self {
            run,
            prompts: &suite.golden_prompts,
            parts: PlannedParts::new(parts),
            tools: &suite.tools.names,
            mutations: suite.mutations.as_ref(),
            prices: &suite.prices,
            outside: suite.outside(dialler),
            seed: suite.advanced.seed.unwrap_or(SEED),
            counters: suite.advanced.counters,
            repeat: 1,
            shrinks: false,
            resets: suite.agent.reset.is_some(),
            conversation: ConversationSupport {
                resets: suite.agent.reset.is_some(),
                concurrent: !matches!(suite.agent.way, Way::Python { .. }),
                keeps_nothing: matches!(suite.agent.way, Way::OpenAi(_)),
            },
            connects_in_scope: matches!(suite.agent.way, Way::Command(_) | Way::Python { .. }),
        }
    }

    /// Whether some scenario has invariants that judge the agent's traffic.
    pub(super) fn looks_at_the_wire(&self) -> bool {
        self.parts.iter().any(|part| {
            let applies = |when: When| part.trials.iter().any(|trial| when.applies(trial.active));
            let mut invariants = part.invariants.iter();
            invariants.any(|one| one.on_wire && applies(one.when))
        })
    }

    /// Whether some scenario makes connections fail. If so, no connection is kept alive in the whole run: a reused
    /// connection would bypass the faults of the next scenario.
    pub(super) fn fails_connections(&self) -> bool {
        let mut trials = self.parts.iter().flat_map(|part| &part.trials);
        trials.any(|trial| trial.active.connections)
    }

    /// Whether a scenario injects faults into CONNECTs, and those do not carry a scope.
    pub(super) fn needs_shared_scope(&self, trial: Option<InPart>) -> bool {
        let trial = trial.and_then(|at| self.trial(at));
        !self.connects_in_scope && trial.is_some_and(|trial| trial.active.handshakes)
    }

    /// Whether an invocation runs without chaos.
    pub(super) fn is_clean(&self, trial: Option<InPart>) -> bool {
        let trial = trial.and_then(|at| self.trial(at));
        trial.is_none_or(|trial| !trial.active.any())
    }

    /// Whether it measures the agent under load.
    pub(super) fn is_load(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| matches!(part.component, Component::Load(_)))
    }

    /// What limits the invocations of a scenario that is a level of load.
    pub(super) fn load_limits(&self, trial: Option<InPart>) -> Option<LoadLimits> {
        match self.parts.iter().nth(trial?.part)?.component {
            Component::Load(limits) => Some(limits),
            Component::Chaos
            | Component::Contract
            | Component::Mutation
            | Component::Replay
            | Component::Exploration => None,
        }
    }

    pub(super) fn trial(&self, at: InPart) -> Option<&Trial> {
        self.parts.iter().nth(at.part)?.trials.get(at.trial)
    }
}

impl<'a> RunPart<'a> {
    /// Verdicts of all invariants in one repeat of one scenario.
    pub(super) fn verdicts(&self, golden: usize) -> usize {
        let judged = |prompts: usize, one: &Invariant| match one.probes.len() {
            0 => prompts,
            probes => probes,
        };
        let of_trial = |trial: &Trial| -> usize {
            let prompts = match &trial.prompts {
                TrialPrompts::Golden => golden,
                TrialPrompts::Own(prompts) => prompts.len(),
            };
            let invariants = self.invariants.iter();
            invariants.map(|one| judged(prompts, one)).sum()
        };
        self.trials.iter().map(of_trial).sum()
    }

    /// Whether it asks golden prompts.
    pub(super) fn is_golden(&self) -> bool {
        let mut trials = self.trials.iter();
        trials.any(|trial| matches!(trial.prompts, TrialPrompts::Golden))
    }

    /// The name of an invariant in its cells.
    pub(super) fn name_of(&self, invariant: &Invariant) -> String {
        let mut name = invariant.id.clone();
        while self.others.iter().any(|other| other.id == name) {
            name.push_str(" (prompts)");
        }
        name
    }

    /// The invariants, for reports.
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

    /// Trials of this kind, judged by these invariants.
    pub(super) fn new(
        component: Component,
        invariants: &'a [Invariant],
        trials: Vec<Trial>,
    ) -> Self {
        Self {
            component,
            invariants: Cow::Borrowed(invariants),
            others: &[],
            trials,
            isolation: Isolation::Scenario,
        }
    }

    /// A replay session, judged by these invariants. `None`: the session has no input.
    pub(super) fn replay(session: &Session, invariants: Cow<'a, [Invariant]>) -> Option<Self> {
        let trials = vec![Trial::replay(session)?];
        Some(Self {
            invariants,
            ..Self::new(Component::Replay, &[], trials)
        })
    }

    /// Golden prompts under each scenario of a contract.
    pub(crate) fn contract(contract: &'a Contract) -> Self {
        let trials = contract.scenarios.iter().map(|one| {
            let mut trial = Trial::of(&one.name, &one.chaos);
            let lines = one.conversation_faults.iter();
            trial.rule_lines.extend(lines.map(ConversationFault::line));
            Trial {
                active: one.active,
                conversation_faults: one.conversation_faults.clone(),
                ..trial
            }
        });
        Self {
            isolation: contract.isolation,
            ..Self::new(Component::Contract, &contract.invariants, trials.collect())
        }
    }
}
