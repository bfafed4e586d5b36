//! The specification of a run, built by the commands and by the API.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use squall_documents::{DocumentLimits, Limited};

use super::concurrency::ConcurrencyRange;
use super::exploring::Exploring;
use super::jobs;
use super::plan::{Component, LoadLimits, RunPart, RunPlan, Trial};
use super::replays;
use crate::agents::settings::{Reset, Way};
use crate::dial::Dialler;
use crate::invariants::Invariant;
use crate::mutations::{Mutant, Mutants};
use crate::run::{DocumentVersion, PartOf, RunKind, RunRecord};
use crate::scores::PassCriteria;
use crate::suite::{SessionSource, Suite};

/// The default of `budget`.
const BUDGET: u64 = 200;

/// Most concurrent invocations of a load run.
const MOST_AT_ONCE: usize = 64;

/// The fewest invocations of a level of load by default.
const LEAST_PER_LEVEL: usize = 10;

/// A run that has no id yet.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "options of a run")]
pub struct RunSpec {
    /// What the run executes.
    pub kind: RunKind,
    /// The name of the run, taken from its suite.
    pub name: String,
    /// The suite, with the contract that the run names instead of its own. It contains secrets.
    pub suite: Arc<Suite>,
    /// Warnings about the run's documents: settings that are ignored or are probably mistakes.
    pub warnings: Vec<String>,
    /// The chaos of the profile that the run names, or of the suite's `chaos`; `None` if there is neither.
    pub chaos: Option<Trial>,
    /// Whether `chaos` is the profile's.
    pub names_profile: bool,
    /// Seed of every draw.
    pub seed: u64,
    /// Concurrent invocations of the agent.
    pub concurrency: ConcurrencyRange,
    /// Invocations of each level of a load run; `None`: the default.
    pub per_level: Option<usize>,
    /// The pass criteria.
    pub criteria: PassCriteria,
    /// Repeats of every scenario, at least 1.
    pub repeat: u64,
    /// The run that results are compared with.
    pub baseline: Option<Arc<RunRecord>>,
    /// Whether the run fails when its results are worse than the baseline's.
    pub fails_if_worse: bool,
    /// Whether replayed sessions must still fail.
    pub expects_failure: bool,
    /// Most invocations of an exploration; `None`: the default.
    pub budget: Option<u64>,
    /// The interrupted exploration that the run continues.
    pub resumed: Option<Arc<RunRecord>>,
    /// Whether failures are shrunk to the smallest sets of faults.
    pub shrinks: bool,
    /// Whether daemons of a fleet share the scenarios.
    pub spreads: bool,
    /// The spread run of which this one executes a scenario; `None`: it is a whole run.
    pub part_of: Option<PartOf>,
    /// The suite's file on the machine of the command, for the commands that reports show.
    pub suite_file: Option<String>,
    /// The documents of the run and their versions.
    pub documents: Vec<DocumentVersion>,
}

/// An error in a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// JSON pointer into the body of the API request: below `/suite`, `/options`, or `/kind`.
    pub pointer: String,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl SpecError {
    pub(super) fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

impl RunSpec {
    /// The record of the run before it begins.
    pub fn record(&self, id: &str) -> RunRecord {
        RunRecord {
            documents: self.documents.clone(),
            suite_file: self.suite_file.clone(),
            tester: self.suite.certificate.tester.clone(),
            min_score: self.criteria.min_score,
            pass_threshold: self.suite.certificate.pass_threshold,
            certificate_format: (self.suite.certificate.format)
                .map(|format| format.as_str().to_owned()),
            part_of: self.part_of.clone(),
            ..RunRecord::queued(id, self.kind, &self.name, self.seed)
        }
    }

    /// The run that executes one scenario of this spread run.
    #[must_use]
    pub fn part(&self, run: &str, scenario: &str) -> Self {
        let (run, scenario) = (run.to_owned(), scenario.to_owned());
        Self {
            criteria: PassCriteria::default(),
            baseline: None,
            fails_if_worse: false,
            spreads: false,
            part_of: Some(PartOf { run, scenario }),
            ..self.clone()
        }
    }

    /// The names of the contract's scenarios.
    pub fn scenarios(&self) -> Vec<String> {
        let contract = self.suite.written_contract().into_iter();
        let scenarios = contract.flat_map(|contract| &contract.scenarios);
        scenarios.map(|one| one.name.clone()).collect()
    }

    /// The number of invocations of a run that has one round.
    pub fn planned_invocations(&self) -> u64 {
        let plan = self.plan("", Dialler::default(), &Mutants::default());
        plan.map_or(0, |plan| {
            let mut jobs = jobs::under_chaos(&plan, 0);
            let clean = jobs::clean(&plan, &mut jobs).len();
            (clean + jobs.iter().map(Vec::len).sum::<usize>()) as u64
        })
    }

    /// All errors that prevent the run.
    pub(super) fn errors(&self) -> Vec<SpecError> {
        let is_verify = self.kind == RunKind::Verify;
        let explores = self.kind == RunKind::Explore;
        let loads = self.kind == RunKind::Load;
        let has_chaos = matches!(
            self.kind,
            RunKind::Chaos | RunKind::Ci | RunKind::Mutation | RunKind::Load
        );
        let has_replays = matches!(self.kind, RunKind::Replay | RunKind::Ci);
        let idle = [
            ("profile", self.names_profile && !has_chaos),
            ("expect_failure", self.expects_failure && !has_replays),
            (
                "repeat",
                self.repeat != 1 && (is_verify || explores || loads),
            ),
            ("shrink", self.shrinks && (is_verify || explores || loads)),
            ("per_level", self.per_level.is_some() && !loads),
            ("budget", self.budget.is_some() && !explores),
            ("resume", self.resumed.is_some() && !explores),
            ("baseline", self.baseline.is_some() && is_verify),
            ("spread", self.spreads && self.kind != RunKind::Contract),
        ];
        let idle = idle.into_iter().filter(|(_, is_idle)| *is_idle);
        let mut errors: Vec<_> = idle
            .map(|(option, _)| {
                let kind = self.kind.as_str();
                let message =
                    format!("`{option}` means nothing in a run of kind {kind}; leave it out");
                SpecError::at(format!("/options/{option}"), message)
            })
            .collect();
        if self.spreads && self.shrinks {
            let message = "a spread run shrinks no failures; leave `shrink` or `spread` out";
            errors.push(SpecError::at("/options/shrink", message));
        }
        errors.extend(self.concurrency_errors());
        errors.extend(fetched_sources(self.kind, &self.suite).map(|(place, _)| {
            let message = "the daemon fetches no sources: `squall replay run` and `squall ci` do; or import them with \
                           `squall replay import`, and name the sessions in `replays.sessions` or `options.replays`";
            SpecError::at(format!("/suite/replays/sources/{place}"), message)
        }));
        if !is_verify {
            let mutants = self.planned_mutants();
            errors.extend(self.plan("", Dialler::default(), &mutants).err());
        }
        errors
    }

    /// The plan of the run with this id.
    pub(super) fn plan<'s>(
        &'s self,
        run: &'s str,
        dialler: Dialler,
        mutants: &Mutants,
    ) -> Result<RunPlan<'s>, SpecError> {
        let suite = &*self.suite;
        let parts = match self.kind {
            RunKind::Contract => {
                let wanted = "the suite has no `contract`: add one, or name a stored one; `squall chaos` needs none";
                let contract = suite.written_contract();
                let contract = contract.ok_or_else(|| SpecError::at("/suite/contract", wanted))?;
                let mut part = RunPart::contract(contract);
                if let Some(PartOf { scenario, .. }) = &self.part_of {
                    part.trials.retain(|trial| trial.name == *scenario);
                }
                vec![part]
            }
            RunKind::Ci => self.everything(mutants)?,
            RunKind::Replay => {
                let parts = sessions(suite)?;
                if parts.is_empty() {
                    let wanted = "there is no session: add `replays.sessions`, or name files: `squall replay run PATH`";
                    return Err(SpecError::at("/suite/replays", wanted));
                }
                parts
            }
            RunKind::Mutation => {
                if suite.mutations.is_none() {
                    let wanted = "the suite has no `mutations`: add `mutations: {count: 10}`";
                    return Err(SpecError::at("/suite/mutations", wanted));
                }
                vec![self.mutation_part(self.trials_of(mutants))?]
            }
            RunKind::Load => {
                let baseline = LoadLimits {
                    at_once: 1,
                    within: Duration::MAX,
                };
                let trials = vec![Trial::clean("clean")];
                let component = Component::Load(baseline);
                vec![RunPart::new(component, judging(suite)?, trials)]
            }
            RunKind::Explore => vec![Exploring::clean_part(judging(suite)?)],
            RunKind::Chaos | RunKind::Verify => {
                let wanted = "a chaos run needs chaos: add `chaos` to the suite, or name a profile such as `flaky_network`";
                let trial = self.chaos.clone();
                let trial = trial.ok_or_else(|| SpecError::at("/options/profile", wanted))?;
                vec![RunPart::new(Component::Chaos, judging(suite)?, vec![trial])]
            }
        };
        let asks_prompts =
            |part: &RunPart<'_>| part.is_golden() || part.component == Component::Mutation;
        if suite.golden_prompts.is_empty() && parts.iter().any(asks_prompts) {
            let wanted = "the agent is asked the suite's `golden_prompts`, and it has none";
            return Err(SpecError::at("/suite/golden_prompts", wanted));
        }
        let prompts = suite.golden_prompts.len();
        let once: usize = parts.iter().map(|part| part.verdicts(prompts)).sum();
        let once = if self.kind == RunKind::Explore {
            let invocations = usize::try_from(self.invocations()).unwrap_or(usize::MAX);
            judging(suite)?.len().saturating_mul(invocations)
        } else if self.kind == RunKind::Load {
            let levels = self.concurrency.levels().into_iter();
            let invocations = levels.map(|level| self.invocations_at(level));
            once.saturating_add(judging(suite)?.len().saturating_mul(invocations.sum()))
        } else {
            once
        };
        let repeats = usize::try_from(self.repeat).unwrap_or(usize::MAX);
        DocumentLimits::default()
            .take(Limited::Verdicts, once.saturating_mul(repeats))
            .map_err(|over| SpecError::at("/suite", over.to_string()))?;
        Ok(RunPlan {
            seed: self.seed,
            repeat: self.repeat,
            shrinks: self.shrinks,
            ..RunPlan::new(suite, run, parts, dialler)
        })
    }

    /// Most invocations of an exploration.
    pub(super) fn invocations(&self) -> u64 {
        let earlier = self
            .resumed
            .as_ref()
            .and_then(|run| run.exploration.as_ref());
        let budget = self.budget.or_else(|| Some(earlier?.budget));
        budget.unwrap_or(BUDGET)
    }

    /// The invocations of a level: at least as many as run at once.
    pub(super) fn invocations_at(&self, level: usize) -> usize {
        match self.per_level {
            Some(invocations) => invocations.max(level),
            None => (level * 2).max(LEAST_PER_LEVEL),
        }
    }

    fn concurrency_errors(&self) -> Option<SpecError> {
        let at = "/options/concurrency";
        if self.kind != RunKind::Load {
            let kind = self.kind.as_str();
            let message = format!("a run of kind {kind} has one concurrency; write one number");
            return (!self.concurrency.is_one()).then(|| SpecError::at(at, message));
        }
        let last = self.concurrency.last();
        if last.get() > MOST_AT_ONCE {
            let message = format!("a load run has at most {MOST_AT_ONCE} invocations at once");
            return Some(SpecError::at(at, message));
        }
        let message = "a load run invokes the agent concurrently, and its reset may concern other invocations; if it \
                       concerns only the invocation that its `baggage` names, set `agent.reset: {isolated: true}`";
        (self.at_once() < last).then(|| SpecError::at("/suite/agent", message))
    }

    /// Every part that the suite configures.
    fn everything(&self, mutants: &Mutants) -> Result<Vec<RunPart<'_>>, SpecError> {
        let suite = &*self.suite;
        let contract = suite.written_contract();
        let others = self.others();
        let mut parts = Vec::new();
        if let Some(chaos) = &self.chaos {
            let mut trial = chaos.clone();
            let scenarios = contract.map_or(&[][..], |contract| &contract.scenarios[..]);
            while scenarios.iter().any(|taken| taken.name == trial.name) {
                // Scenario names must be unique in a run, because they identify cells.
                trial.name.push_str(" (prompts)");
            }
            parts.push(RunPart {
                others,
                ..RunPart::new(Component::Chaos, judging(suite)?, vec![trial])
            });
        }
        parts.extend(contract.map(RunPart::contract));
        let mut more = Vec::new();
        if suite.mutations.is_some() {
            more.push(self.mutation_part(self.trials_of(mutants))?);
        }
        more.extend(sessions(suite)?);
        for mut part in more {
            let taken = |name: &str| {
                let mut trials = parts.iter().flat_map(|part| &part.trials);
                trials.any(|trial| trial.name == name)
            };
            for trial in &mut part.trials {
                while taken(&trial.name) {
                    let is_mutation = trial.mutation.is_some();
                    let ending = if is_mutation {
                        " (mutation)"
                    } else {
                        " (replay)"
                    };
                    trial.name.push_str(ending);
                }
            }
            parts.push(part);
        }
        if parts.is_empty() {
            let wanted = "there is nothing to run: write `chaos`, `contract`, `mutations` or `replays` in the suite, or name \
                          the run's profile";
            return Err(SpecError::at("/suite", wanted));
        }
        Ok(parts)
    }

    /// The invariants of the contract beside which prompts are judged.
    fn others(&self) -> &[Invariant] {
        let suite = &*self.suite;
        // Prompts without their own invariants are judged by the contract's, so names cannot clash.
        let is_beside = self.kind == RunKind::Ci && !suite.invariants.is_empty();
        let contract = suite.written_contract().filter(|_| is_beside);
        contract.map_or(&[][..], |contract| &contract.invariants[..])
    }

    /// Mutants in these scenarios.
    pub(super) fn mutation_part(&self, trials: Vec<Trial>) -> Result<RunPart<'_>, SpecError> {
        Ok(RunPart {
            others: self.others(),
            ..RunPart::new(Component::Mutation, judging(&self.suite)?, trials)
        })
    }

    /// A scenario for each type of mutation.
    fn trials_of(&self, mutants: &Mutants) -> Vec<Trial> {
        let kinds = mutants.by_kind.iter();
        kinds
            .map(|(kind, mutants)| self.mutation_trial(kind, mutants))
            .collect()
    }

    /// Mutants without chaos, or under the chaos that `squall mutate` is run with.
    pub(super) fn mutation_trial(&self, kind: &str, mutants: &[Mutant]) -> Trial {
        let chaos = self.chaos.as_ref();
        let chaos = chaos.filter(|_| self.kind == RunKind::Mutation);
        Trial::mutation(kind, mutants, chaos)
    }

    /// Whether the run invokes the agent with mutants.
    pub(super) fn mutates(&self) -> bool {
        let kinds = [RunKind::Mutation, RunKind::Ci];
        kinds.contains(&self.kind) && self.suite.mutations.is_some()
    }

    /// As many mutants as the run may have, before they are written.
    fn planned_mutants(&self) -> Mutants {
        let settings = self.suite.mutations.iter();
        let mutants = settings.flat_map(|settings| {
            let prompts = self.suite.golden_prompts.iter();
            prompts.flat_map(|prompt| {
                let mutant = Mutant {
                    kind: String::new(),
                    original: prompt.clone(),
                    prompt: prompt.clone(),
                    change: None,
                    lineage: Vec::new(),
                    steps: Vec::new(),
                };
                let searched = settings.search.as_ref();
                let searched = searched.map_or(0, |search| {
                    let all = search.generations * search.population;
                    all.min(search.invocations)
                });
                vec![mutant; settings.count + searched]
            })
        });
        Mutants {
            by_kind: vec![(String::new(), mutants.collect())],
            warnings: Vec::new(),
        }
    }

    /// A warning that `ci` does not fetch some sources.
    pub(super) fn unfetched_sources(&self) -> Option<String> {
        let sources = &self.suite.replays.sources;
        let unfetched = sources.iter().filter(|source| !source.auto_import);
        let names: Vec<_> = unfetched.map(|it| format!("`{}`", it.source)).collect();
        (self.kind == RunKind::Ci && !names.is_empty()).then(|| {
            format!(
                "`replays.sources`: {} not fetched; write `auto_import: true`, or use `squall replay run`",
                names.join(", ")
            )
        })
    }

    /// The number of concurrent invocations. An external reset affects all invocations unless the suite configures
    /// otherwise, so there is only one. An agent with one process per slot is reset in its own process.
    pub(super) fn at_once(&self) -> NonZeroUsize {
        let agent = &self.suite.agent;
        let own_process = matches!(agent.way, Way::Command(_) | Way::Python { .. });
        match &agent.reset {
            None => self.concurrency.last(),
            Some(_) if agent.reset_isolated => self.concurrency.last(),
            Some(Reset::Function(_)) if own_process => self.concurrency.last(),
            Some(_) => NonZeroUsize::MIN,
        }
    }

    /// A warning that resets prevent concurrent invocations; `None`: they do not.
    pub(super) fn one_at_a_time(&self) -> Option<String> {
        (self.at_once() < self.concurrency.last()).then(|| {
            format!(
                "one invocation at a time, not {}: the agent's reset may concern others that are under way. If it \
                 concerns only the invocation that its `baggage` (of a program: `SQUALL_SCOPE`) names, set \
                 `agent.reset: {{isolated: true}}`",
                self.concurrency.last()
            )
        })
    }

    /// A warning that the baseline is a run of another suite.
    pub(super) fn of_another_suite(&self) -> Option<String> {
        let baseline = self.baseline.as_ref()?;
        (baseline.name != self.name).then(|| {
            format!(
                "the baseline is a run of suite `{}`, this is one of `{}`: cells are compared by the names of invariants \
                 and scenarios, whatever those demand",
                baseline.name, self.name
            )
        })
    }
}

/// The sources that a run of this kind replays, with their places in the list.
pub fn fetched_sources(
    kind: RunKind,
    suite: &Suite,
) -> impl Iterator<Item = (usize, &SessionSource)> {
    let sources = suite.replays.sources.iter().enumerate();
    sources.filter(move |(_, source)| match kind {
        RunKind::Replay => true,
        RunKind::Ci => source.auto_import,
        RunKind::Chaos
        | RunKind::Contract
        | RunKind::Mutation
        | RunKind::Explore
        | RunKind::Load
        | RunKind::Verify => false,
    })
}

/// A part for each replay session of the suite.
fn sessions(suite: &Suite) -> Result<Vec<RunPart<'_>>, SpecError> {
    let parts = replays::parts(suite);
    parts.map_err(|(pointer, message)| SpecError::at(pointer, message))
}

/// The invariants that judge prompts under chaos: the suite's own, or else its contract's.
pub(super) fn judging(suite: &Suite) -> Result<&[Invariant], SpecError> {
    let of_the_contract = suite
        .written_contract()
        .map(|contract| &contract.invariants[..]);
    let own = Some(&suite.invariants[..]).filter(|own| !own.is_empty());
    own.or(of_the_contract).ok_or_else(|| {
        let wanted = "prompts under chaos are judged by the suite's `invariants`, and it has none";
        SpecError::at("/suite/invariants", wanted)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use squall_documents::Variables;

    use super::*;
    use crate::suite;

    /// A spec of kind `ci`: a suite with an agent, a prompt, an invariant and `rest`.
    pub(in super::super) fn spec(rest: &str) -> RunSpec {
        let text = format!(
            "agent: {{endpoint: 'http://agent.test/'}}\ngolden_prompts: [hello]\n\
             invariants: [{{type: completes}}]\n{rest}\n"
        );
        RunSpec {
            kind: RunKind::Ci,
            name: "shop".into(),
            suite: Arc::new(suite::parse("s", &text, Variables::Refused).expect("valid")),
            warnings: Vec::new(),
            chaos: None,
            names_profile: false,
            seed: 1,
            concurrency: ConcurrencyRange::one(1),
            per_level: None,
            criteria: PassCriteria::default(),
            repeat: 1,
            baseline: None,
            fails_if_worse: false,
            expects_failure: false,
            suite_file: None,
            budget: None,
            resumed: None,
            shrinks: false,
            spreads: false,
            part_of: None,
            documents: Vec::new(),
        }
    }

    #[test]
    fn sources_are_fetched_by_commands_and_never_skipped_silently() {
        #[rustfmt::skip]
        let cases = [
            ("{type: langsmith, project: x}", [true, false], true),
            ("{type: langsmith, project: x, auto_import: true}", [true, true], false),
            ("{type: langsmith_run, run_id: x}", [true, true], false),
            ("", [false, false], false),
        ];
        for (source, refused, warned) in cases {
            let rest = format!("chaos: {{tool_faults: []}}\nreplays: {{sources: [{source}]}}");
            for (kind, refused) in [RunKind::Replay, RunKind::Ci].into_iter().zip(refused) {
                let spec = RunSpec {
                    kind,
                    ..spec(&rest)
                };
                let mut errors = spec.errors().into_iter();
                let found = errors.any(|error| error.pointer == "/suite/replays/sources/0");
                assert_eq!(found, refused, "{kind:?} {source}");
            }
            let warning = spec(&rest).unfetched_sources();
            assert_eq!(warning.is_some(), warned, "{source}");
        }
    }

    #[test]
    fn a_run_reaches_so_many_verdicts_and_no_more() {
        let list = |one: &str, many: usize| {
            let all = (0..many).map(|number| one.replace('#', &number.to_string()));
            all.collect::<Vec<_>>().join(", ")
        };
        for (prompts, invariants, scenarios, repeat, is_too_much) in [
            (1, 28, 500, 1, false),
            (1, 29, 500, 1, true),
            (10, 20, 14, 5, false),
            (10, 20, 15, 5, true),
        ] {
            let text = format!(
                "{{agent: {{endpoint: 'http://agent.test/'}}, golden_prompts: [{}], contract: {{name: c, \
                 invariants: [{}], chaos_matrix: [{}]}}}}",
                list("p#", prompts),
                list("{id: i#, type: completes}", invariants),
                list("{name: s#}", scenarios),
            );
            let suite = suite::parse("suite.yaml", &text, Variables::Refused).expect("valid");
            let spec = RunSpec {
                kind: RunKind::Contract,
                suite: Arc::new(suite),
                repeat,
                ..spec("")
            };
            let wrong = spec.errors();
            let told = wrong
                .iter()
                .any(|one| one.message.contains("14000 verdicts"));
            assert_eq!(
                told, is_too_much,
                "{prompts} × {invariants} × {scenarios} × {repeat}: {wrong:?}"
            );
        }
    }
}
