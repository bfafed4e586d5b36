//! What a run is asked for, whoever asks: the commands and the API make one of these, and runs are made of it.

use std::num::NonZeroUsize;
use std::sync::Arc;

use squall_documents::{DocumentLimits, Limited};

use super::plan::{Part, Plan, Trial};
use crate::dial::Dialler;
use crate::invariants::Invariant;
use crate::run::{DocumentVersion, RunKind, RunRecord};
use crate::scores::PassCriteria;
use crate::suite::agent::{Reset, Way};
use crate::suite::{Contract, ContractPart, Suite};

/// A run before it has an id.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// What it tries.
    pub kind: RunKind,
    /// What it is called, as its suite is.
    pub name: String,
    /// The suite, with the contract that the run names in the place of its own. It holds secrets.
    pub suite: Arc<Suite>,
    /// What of the run's documents changes nothing, or surely is not meant.
    pub warnings: Vec<String>,
    /// The chaos of the profile that the run names, or of the suite's `chaos`; `None` for neither.
    pub chaos: Option<Trial>,
    /// Whether that is the profile's.
    pub names_profile: bool,
    /// Seed of every draw.
    pub seed: u64,
    /// Invocations of the agent at once, 1 to 100.
    pub concurrency: NonZeroUsize,
    /// The pass criteria.
    pub criteria: PassCriteria,
    /// How often everything under chaos is done, at least 1.
    pub repeat: u64,
    /// The run to compare with.
    pub baseline: Option<Arc<RunRecord>>,
    /// Whether the run fails where it is worse than that one.
    pub fails_if_worse: bool,
    /// The versions of documents that it is made of.
    pub documents: Vec<DocumentVersion>,
}

/// Something wrong with a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// JSON pointer into what is posted for the run: below `/suite`, `/options`, or `/kind`.
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

/// The kinds that this version carries out.
const KINDS: [RunKind; 4] = [
    RunKind::Chaos,
    RunKind::Contract,
    RunKind::Ci,
    RunKind::Verify,
];

impl RunSpec {
    /// The record of the run before it begins: what the spec says of it, with this id.
    pub fn record(&self, id: &str) -> RunRecord {
        RunRecord {
            documents: self.documents.clone(),
            tester: self.suite.certificate.tester.clone(),
            min_score: self.criteria.min_score,
            pass_threshold: self.suite.certificate.pass_threshold,
            certificate_format: self.suite.certificate.format.map(str::to_owned),
            ..RunRecord::queued(id, self.kind, &self.name, self.seed)
        }
    }

    /// All that keeps the run from being made.
    pub(super) fn errors(&self) -> Vec<SpecError> {
        if !KINDS.contains(&self.kind) {
            let kinds = KINDS.map(RunKind::as_str).join(", ");
            let message = format!(
                "this version carries out no runs of kind `{}`; there are {kinds}",
                self.kind.as_str()
            );
            return vec![SpecError::at("/kind", message)];
        }
        let is_verify = self.kind == RunKind::Verify;
        let is_contract = self.kind == RunKind::Contract;
        let idle = [
            ("profile", self.names_profile && (is_contract || is_verify)),
            ("repeat", self.repeat != 1 && is_verify),
            ("baseline", self.baseline.is_some() && is_verify),
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
        if !is_verify {
            errors.extend(self.plan("", Dialler::default()).err());
        }
        errors
    }

    /// What the run with this id does.
    pub(super) fn plan<'s>(
        &'s self,
        run: &'s str,
        dialler: Dialler,
    ) -> Result<Plan<'s>, SpecError> {
        let suite = &*self.suite;
        let parts = match self.kind {
            RunKind::Contract => {
                let wanted = "a run of kind contract needs one: write it, or the name of a stored one, as `contract`";
                let contract = contract(suite);
                let contract = contract.ok_or_else(|| SpecError::at("/suite/contract", wanted))?;
                vec![Part::contract(contract)]
            }
            RunKind::Ci => self.everything()?,
            RunKind::Chaos | RunKind::Mutation | RunKind::Replay | RunKind::Verify => {
                let wanted = "a chaos run needs chaos: add `chaos` to the suite, or name a profile such as `flaky_network`";
                let trial = self.chaos.clone();
                let trial = trial.ok_or_else(|| SpecError::at("/options/profile", wanted))?;
                vec![Part::chaos(judging(suite)?, trial)]
            }
        };
        if suite.golden_prompts.is_empty() {
            let wanted = "the agent is asked the suite's `golden_prompts`, and it has none";
            return Err(SpecError::at("/suite/golden_prompts", wanted));
        }
        let prompts = suite.golden_prompts.len();
        let once: usize = parts.iter().map(|part| part.verdicts(prompts)).sum();
        let repeats = usize::try_from(self.repeat).unwrap_or(usize::MAX);
        DocumentLimits::default()
            .take(Limited::Verdicts, once.saturating_mul(repeats))
            .map_err(|over| SpecError::at("/suite", over.to_string()))?;
        Ok(Plan {
            seed: self.seed,
            repeat: self.repeat,
            ..Plan::new(suite, run, parts, dialler)
        })
    }

    /// Every part that the suite configures.
    fn everything(&self) -> Result<Vec<Part<'_>>, SpecError> {
        let suite = &*self.suite;
        let contract = contract(suite);
        let mut parts = Vec::new();
        if let Some(chaos) = &self.chaos {
            let mut trial = chaos.clone();
            let scenarios = contract.map_or(&[][..], |contract| &contract.scenarios[..]);
            while scenarios.iter().any(|taken| taken.name == trial.name) {
                // Cells are told apart by the names of their scenarios.
                trial.name.push_str(" (prompts)");
            }
            // Without invariants of their own prompts are judged by the contract's, which are the same then.
            let others = contract.filter(|_| !suite.invariants.is_empty());
            parts.push(Part {
                others: others.map_or(&[], |contract| &contract.invariants[..]),
                ..Part::chaos(judging(suite)?, trial)
            });
        }
        parts.extend(contract.map(Part::contract));
        if parts.is_empty() {
            let wanted = "this version tries chaos and contracts, and the suite has neither: write `chaos` or \
                          `contract`, or name the run's profile";
            return Err(SpecError::at("/suite", wanted));
        }
        Ok(parts)
    }

    /// What of the suite is left out.
    pub(super) fn left_out(&self) -> Vec<String> {
        let suite = &self.suite;
        let replays = !suite.replays.sessions.is_empty() || !suite.replays.sources.is_empty();
        let parts = [("mutations", suite.mutates), ("replays", replays)];
        let left_out = parts
            .into_iter()
            .filter(|(_, configured)| *configured && self.kind == RunKind::Ci);
        left_out
            .map(|(part, _)| {
                format!(
                    "the suite's `{part}` are left out: this version does not carry them out yet"
                )
            })
            .collect()
    }

    /// How many invocations may be under way at once. A reset from outside concerns all of them unless the suite says
    /// otherwise, so there is one; an agent in a process for each slot is reset in its own.
    pub(super) fn at_once(&self) -> NonZeroUsize {
        let agent = &self.suite.agent;
        let own_process = matches!(agent.way, Way::Command(_) | Way::Python { .. });
        match &agent.reset {
            None => self.concurrency,
            Some(_) if agent.reset_isolated => self.concurrency,
            Some(Reset::Function(_)) if own_process => self.concurrency,
            Some(_) => NonZeroUsize::MIN,
        }
    }

    /// A warning that resets keep invocations from being under way at once; `None`: they do not.
    pub(super) fn one_at_a_time(&self) -> Option<String> {
        (self.at_once() < self.concurrency).then(|| {
            format!(
                "one invocation at a time, not {}: the agent's reset may concern others that are under way. If it \
                 concerns only the invocation that its `baggage` (of a program: `SQUALL_SCOPE`) names, set \
                 `agent.reset: {{isolated: true}}`",
                self.concurrency
            )
        })
    }

    /// A warning about a baseline that is no run of this suite.
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

/// What prompts under chaos are judged by: the suite's invariants, else its contract's.
fn judging(suite: &Suite) -> Result<&[Invariant], SpecError> {
    let of_the_contract = contract(suite).map(|contract| &contract.invariants[..]);
    let own = Some(&suite.invariants[..]).filter(|own| !own.is_empty());
    own.or(of_the_contract).ok_or_else(|| {
        let wanted = "prompts under chaos are judged by the suite's `invariants`, and it has none";
        SpecError::at("/suite/invariants", wanted)
    })
}

fn contract(suite: &Suite) -> Option<&Contract> {
    match &suite.contract {
        Some(ContractPart::Written(contract)) => Some(contract),
        Some(ContractPart::Named(_)) | None => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use squall_documents::Variables;

    use super::*;
    use crate::suite;

    /// A `ci` run of a suite with this beside an agent, a prompt and an invariant.
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
            concurrency: NonZeroUsize::MIN,
            criteria: PassCriteria::default(),
            repeat: 1,
            baseline: None,
            fails_if_worse: false,
            documents: Vec::new(),
        }
    }

    #[test]
    fn a_run_of_everything_names_what_it_leaves_out() {
        for (rest, part) in [
            (
                "replays: {sources: [{type: langsmith, project: x}]}",
                Some("`replays`"),
            ),
            (
                "replays: {sessions: [{id: one, input: hello}]}",
                Some("`replays`"),
            ),
            ("mutations: {count: 2}", Some("`mutations`")),
            ("replays: {sources: []}", None),
            ("", None),
        ] {
            let told = spec(rest).left_out();
            let is_told = part.is_none_or(|part| told.iter().any(|one| one.contains(part)));
            assert!(is_told, "{rest}: {told:?}");
            assert_eq!(told.len(), usize::from(part.is_some()), "{rest}: {told:?}");
        }
    }

    #[test]
    fn a_run_reaches_so_many_verdicts_and_no_more() {
        let list = |one: &str, many: usize| {
            let all = (0..many).map(|number| one.replace('#', &number.to_string()));
            all.collect::<Vec<_>>().join(", ")
        };
        for (prompts, invariants, scenarios, repeat, is_too_much) in [
            (1, 30, 500, 1, false),
            (1, 31, 500, 1, true),
            (10, 20, 15, 5, false),
            (10, 20, 16, 5, true),
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
                .any(|one| one.message.contains("15000 verdicts"));
            assert_eq!(
                told, is_too_much,
                "{prompts} × {invariants} × {scenarios} × {repeat}: {wrong:?}"
            );
        }
    }
}
