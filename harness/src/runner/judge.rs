//! Judges the invocations of a scenario: its cells, and the verdicts on each invocation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::jobs::InvocationJob;
use super::no_fault::NoFault;
use super::plan::{RunPart, RunPlan, Trial};
use super::pool::JUDGING;
use super::result::{InvocationResult, kept};
use super::rounds::InvocationVerdict;
use super::{JobResult, Replies};
use crate::count::count;
use crate::invariants::measures::Measured;
use crate::invariants::{Active, Baseline, Conversations, Invariant, Prices, Subject, Verdict};
use crate::mutations::{CHANGES_MEANING, Mutant};
use crate::outside::Question;
use crate::prompt::Prompt;
use crate::run::{
    CellRecord, CellState, DistributionRecord, EvidenceRecord, MutantRecord, ScenarioRecord,
};
use crate::scores::{Column, PromptSample, Sample, cell, distributions};
use crate::suite::counted_tool;

/// Longest change of a request in evidence, in bytes.
const SHOWN_REQUEST: usize = 1000;

/// Judges the results of a run, scenario by scenario.
pub(super) struct Judge<'p, 's> {
    plan: &'p RunPlan<'s>,
    clean: BTreeMap<(&'p Prompt, Conversations), Arc<InvocationResult>>,
    replies: Replies,
    prices: Arc<Prices>,
    /// Whether the proxy saw a call of the agent in the clean run.
    was_seen: bool,
    /// The names under the suite's `tools:`.
    tools: Arc<BTreeSet<String>>,
}

pub(super) const BLIND: &str = "no call of the agent came through the proxy, not without chaos either, so its wire behaviour cannot be \
     judged";

/// A judged scenario.
pub(super) struct ScenarioResult {
    pub(super) column: Column,
    /// One for each invariant.
    pub(super) cells: Vec<CellRecord>,
    /// The index of each invocation in the scenario, which its repeats share, and the combined verdict of all
    /// invariants.
    pub(super) prompts: Vec<(usize, PromptSample)>,
    /// The verdicts on each invocation.
    pub(super) verdicts: Vec<Vec<InvocationVerdict>>,
    /// For each invariant that failed because of the scenario: its index, and that of the first failed invocation.
    pub(super) failures: Vec<(usize, usize)>,
    pub(super) distributions: Vec<DistributionRecord>,
}

impl<'p, 's> Judge<'p, 's> {
    /// Creates a judge that compares with these clean invocations.
    pub(super) fn new(plan: &'p RunPlan<'s>, clean: &[JobResult<'p>]) -> Self {
        let was_seen = clean.iter().any(|(_, result)| result.was_seen());
        let clean = clean.iter().filter(|(job, _)| job.own.is_none());
        let clean =
            clean.map(|(job, result)| ((job.prompt, job.conversations), Arc::clone(result)));
        Self {
            was_seen,
            plan,
            clean: clean.collect(),
            replies: Replies::new(&plan.outside),
            prices: Arc::new(plan.prices.clone()),
            tools: Arc::new(plan.tools.all().map(str::to_owned).collect()),
        }
    }

    /// Why the judge model or the embeddings endpoint could not be reached.
    pub(super) fn unreachable(&self) -> Option<&str> {
        self.replies.absent()
    }

    /// Judges a scenario from all its results. External questions of invariants that no earlier scenario has sent
    /// are sent first; then the invariants judge again.
    pub(super) async fn scenario(
        &mut self,
        part: &RunPart<'_>,
        trial: &Trial,
        results: &[JobResult<'p>],
    ) -> ScenarioResult {
        let invariants: Vec<_> = part.invariants.iter().cloned().map(Arc::new).collect();
        let measured =
            |result: &InvocationResult| Measured::of(&result.answer, &result.trace, &self.prices);
        let judged = (results.iter()).filter(|(job, one)| one.wrong.is_none() && job.is_single());
        let judged = judged.map(|(job, result)| (job.invocation, measured(result)));
        let judged: Vec<_> = judged.collect();
        let mut repeats: BTreeMap<usize, Arc<[Measured]>> = BTreeMap::new();
        for (job, _) in results {
            repeats.entry(job.invocation).or_insert_with(|| {
                let own = judged.iter().filter(|(at, _)| *at == job.invocation);
                own.map(|(_, one)| *one).collect()
            });
        }
        let mut samples = Vec::new();
        let mut questions = BTreeSet::new();
        for (place, invariant) in invariants.iter().enumerate() {
            for (number, (job, result)) in results.iter().enumerate() {
                if job.judges(place, invariant) {
                    let repeats = Arc::clone(&repeats[&job.invocation]);
                    let case = self.case(invariant, trial, job, result, repeats);
                    let (sample, missing) = case.judged().await;
                    samples.push((place, number, sample, !missing.is_empty()));
                    questions.extend(missing);
                }
            }
        }
        let plan = self.plan;
        let answered = plan.outside.answer(questions).await;
        self.replies.add(answered);
        for (place, number, sample, is_pending) in &mut samples {
            if *is_pending {
                let (job, result) = &results[*number];
                let repeats = Arc::clone(&repeats[&job.invocation]);
                let case = self.case(&invariants[*place], trial, job, result, repeats);
                (*sample, _) = case.judged().await;
            }
        }
        let mut prompts: Vec<_> = results
            .iter()
            .map(|(job, result)| {
                let families = result.families.clone();
                let sample = PromptSample {
                    families,
                    ..PromptSample::default()
                };
                (job.invocation, sample)
            })
            .collect();
        let mut of_invariants = vec![Vec::new(); invariants.len()];
        let mut verdicts = vec![Vec::new(); results.len()];
        let mut failures: Vec<(usize, usize)> = Vec::new();
        for (place, number, sample, _) in samples {
            let is_failure = sample.state() == CellState::Failed && !sample.fails_without_chaos;
            let can_shrink = invariants[place].check.repeats == 1;
            if is_failure && can_shrink && failures.last().is_none_or(|(last, _)| *last != place) {
                failures.push((place, number));
            }
            verdicts[number].push(InvocationVerdict {
                invariant: part.name_of(&invariants[place]),
                state: sample.state(),
                fails_without_chaos: sample.fails_without_chaos,
                margin: sample.margin,
            });
            let state = (sample.state(), sample.fails_without_chaos);
            prompts[number].1.states.push(state);
            of_invariants[place].push(sample);
        }
        let passed = prompts.iter().filter_map(|(_, sample)| sample.passed());
        let passed: Vec<_> = passed.collect();
        let measured: Vec<_> = judged.into_iter().map(|(_, one)| one).collect();
        let cells = invariants.iter().zip(&of_invariants);
        let cells = cells.map(|(invariant, samples)| {
            let severity = invariant.severity.as_str();
            CellRecord {
                mutation: trial.mutation.clone(),
                ..cell(part.name_of(invariant), severity, &trial.name, samples)
            }
        });
        ScenarioResult {
            column: Column {
                scenario: ScenarioRecord {
                    name: trial.name.clone(),
                    under_chaos: trial.is_under_chaos(),
                    rules_applied: results.iter().map(|(_, one)| one.faults_applied).sum(),
                    invocations: results.len() as u64,
                    passed: passed.iter().filter(|passed| **passed).count() as u64,
                    judged: passed.len() as u64,
                    rules: trial.rule_lines.clone(),
                    daemon: None,
                },
                idle: idle(results),
            },
            cells: cells.collect(),
            prompts,
            verdicts,
            failures,
            distributions: distributions(&trial.name, &measured),
        }
    }

    fn case(
        &self,
        invariant: &Arc<Invariant>,
        trial: &Trial,
        job: &InvocationJob<'_>,
        result: &Arc<InvocationResult>,
        repeats: Arc<[Measured]>,
    ) -> Case {
        Case {
            invariant: Arc::clone(invariant),
            prompt: job.prompt.clone(),
            mutant: job.own.and_then(|own| own.mutant.clone()),
            repeat: (self.plan.repeat > 1).then_some(job.repeat),
            active: trial.active,
            result: Arc::clone(result),
            clean: (job.baseline())
                .and_then(|prompt| self.clean.get(&(prompt, job.conversations)).cloned()),
            recorded: trial.tape.as_ref().map(|session| session.playable()),
            prices: Arc::clone(&self.prices),
            replies: self.replies.clone(),
            was_seen: self.was_seen,
            tools: Arc::clone(&self.tools),
            repeats,
        }
    }
}

/// One invocation and the invariant that judges it. It owns all its data, because another thread judges it.
#[derive(Clone)]
struct Case {
    invariant: Arc<Invariant>,
    prompt: Prompt,
    /// How the prompt or the request was changed.
    mutant: Option<Mutant>,
    /// The repeat; `None`: there is only one.
    repeat: Option<u64>,
    active: Active,
    result: Arc<InvocationResult>,
    /// The result of the same prompt without chaos.
    clean: Option<Arc<InvocationResult>>,
    /// The number of recorded responses that can be played, if it replays a session.
    recorded: Option<usize>,
    prices: Arc<Prices>,
    replies: Replies,
    /// Whether the proxy saw a call of the agent in the clean run.
    was_seen: bool,
    /// The names under the suite's `tools:`.
    tools: Arc<BTreeSet<String>>,
    /// The numbers of all repeats of the invocation.
    repeats: Arc<[Measured]>,
}

impl Case {
    /// The sample, or an error after the deadline, and the questions without a reply.
    async fn judged(self) -> (Sample, BTreeSet<Question>) {
        let case = self.clone();
        let judged = JUDGING.run(move || (case.sample(), case.replies.missing()));
        let judged = judged.await;
        judged.unwrap_or_else(|why| {
            let sample = self.sample_of(Verdict::error(why), false);
            (sample, BTreeSet::new())
        })
    }

    fn sample(&self) -> Sample {
        let verdict = match (&self.result.wrong, self.without_judging()) {
            (Some(why), _) => Verdict::error(why),
            (None, Some(verdict)) => verdict,
            (None, None) => {
                let subject = self.subject(&self.result, self.active, &self.repeats);
                self.invariant.judge(&subject)
            }
        };
        let fails_without_chaos = self.clean().is_some_and(|clean| {
            let clean = self.subject(clean, Active::default(), &[]);
            let clean = self.invariant.on_the_clean_run(&clean);
            self.invariant.judge(&clean).state == CellState::Failed
        });
        self.sample_of(verdict, fails_without_chaos)
    }

    /// The verdict on a mutant that the invariant does not judge.
    fn without_judging(&self) -> Option<Verdict> {
        let mutant = self.mutant.as_ref()?;
        let invariant = &self.invariant;
        if mutant.kind == CHANGES_MEANING && invariant.kind == "behavior_unchanged" {
            let why = "the mutant means something else than its prompt";
            return Some(Verdict::not_applicable(why));
        }
        let answer = &self.result.answer;
        let is_rejected = answer.rejected
            && !(invariant.on_wire || invariant.forbids())
            // An agent that rejects the unchanged request too has not rejected the change.
            && self.clean().is_some_and(|clean| clean.answer.error.is_none());
        let why = answer.error.as_deref().filter(|_| is_rejected)?;
        Some(Verdict::holds(format!(
            "the agent rejected the changed request: {why}"
        )))
    }

    fn sample_of(&self, verdict: Verdict, fails_without_chaos: bool) -> Sample {
        let verdict = match verdict.state {
            CellState::Passed | CellState::Failed => match self.not_exercised(&verdict) {
                Some(why) => Verdict::insufficient(why),
                None => verdict,
            },
            CellState::NotExercised | CellState::NotApplicable | CellState::Error => verdict,
        };
        let reason = match verdict.state {
            CellState::Passed | CellState::NotApplicable => verdict.reason,
            CellState::Failed | CellState::Error | CellState::NotExercised => {
                let beside = self.result.beside_the_tape();
                [verdict.reason]
                    .into_iter()
                    .chain(beside)
                    .collect::<Vec<_>>()
                    .join("; ")
            }
        };
        Sample {
            fails_without_chaos,
            margin: verdict.margin,
            evidence: EvidenceRecord {
                repeat: self.repeat,
                state: Some(verdict.state),
                reason: Some(reason),
                mutant: self.mutant.as_ref().map(mutant_record),
                ..self.result.evidence(&self.prompt, verdict.exchange)
            },
        }
    }

    /// Why a verdict does not count: the invocation had no traffic or no fault that the invariant needs.
    fn not_exercised(&self, verdict: &Verdict) -> Option<String> {
        let Invariant { on_wire, when, .. } = *self.invariant;
        let served = self.result.tape.as_ref().map_or(0, |tape| tape.served);
        if let Some(recorded @ 1..) = self.recorded
            && served == 0
        {
            let responses = count(recorded as u64, "recorded response");
            return Some(format!(
                "the agent requested none of the session's {responses}"
            ));
        }
        if self.result.is_unseen {
            let why = "the calls of concurrent invocations cannot be told apart";
            return on_wire.then(|| why.to_owned());
        }
        if on_wire && !self.was_seen && !self.result.was_seen() {
            return Some(BLIND.to_owned());
        }
        if verdict.state == CellState::Passed
            && let Some(tool) = self.unknown_tool()
        {
            return Some(format!(
                "tool `{tool}` is unknown: neither `tools:` nor a request or a response of the agent names it"
            ));
        }
        if self.recorded.is_some() {
            return None;
        }
        let gives_up = verdict.state == CellState::Failed && !on_wire && self.gives_up();
        if gives_up || !self.active.any() {
            return None;
        }
        let no_fault = &self.result.no_fault;
        if let Some(why @ NoFault::Conversation { .. }) = no_fault {
            return Some(format!("a planned fault was not applied: {why}"));
        }
        if self.result.faults_applied == 0 {
            let why = no_fault.iter().map(|why| format!(": {why}"));
            let why: String = why.collect();
            return Some(format!("no planned fault was applied{why}"));
        }
        let is_another = !when.applies(self.result.applied);
        is_another.then(|| {
            let when = when.as_str();
            format!("no fault was applied in this invocation that `when: {when}` is about")
        })
    }

    /// The tool of the invariant, if nothing shows that it exists.
    fn unknown_tool(&self) -> Option<&str> {
        let tool = counted_tool(&self.invariant)?;
        let traces = self.clean().into_iter().map(|clean| &clean.trace);
        let mut traces = traces.chain([&self.result.trace]);
        let is_known = self.tools.contains(tool) || traces.any(|trace| trace.names(tool));
        (!is_known).then_some(tool)
    }

    fn subject<'a>(
        &'a self,
        result: &'a InvocationResult,
        active: Active,
        repeats: &'a [Measured],
    ) -> Subject<'a> {
        Subject {
            prompt: &self.prompt,
            answer: &result.answer,
            trace: &result.trace,
            baseline: self.clean().map(|clean| Baseline {
                answer: &clean.answer,
                trace: Some(&clean.trace),
            }),
            active,
            prices: &self.prices,
            replies: &self.replies,
            repeats,
            conversations: &result.conversations,
        }
    }

    /// The clean result of the same prompt; `None`: there is none that can be judged.
    fn clean(&self) -> Option<&InvocationResult> {
        self.clean.as_deref().filter(|clean| clean.wrong.is_none())
    }

    /// Whether the agent gave no answer or an empty one under chaos, but answers the prompt without. An earlier
    /// fault may have broken it.
    fn gives_up(&self) -> bool {
        let answer = &self.result.answer;
        let clean = self.clean().map(|clean| &clean.answer);
        self.active.any()
            && (answer.error.is_some() || answer.is_blank())
            && clean.is_some_and(|clean| clean.error.is_none() && !clean.is_blank())
    }
}

fn mutant_record(mutant: &Mutant) -> MutantRecord {
    let turns = |prompt: &Prompt| {
        prompt
            .turns()
            .iter()
            .map(|turn| kept(turn.clone()))
            .collect()
    };
    let request = mutant.change.as_ref();
    let request = request.and_then(|change| serde_json::to_string(change).ok());
    MutantRecord {
        kind: mutant.kind.clone(),
        original: turns(&mutant.original),
        turns: Some(&mutant.prompt)
            .filter(|prompt| prompt.turns().len() > 1)
            .map_or_else(Vec::new, turns),
        lineage: mutant.lineage.clone(),
        request: request.map(|mut request| {
            let most = (0..=SHOWN_REQUEST)
                .rev()
                .find(|at| request.is_char_boundary(*at));
            request.truncate(most.unwrap_or(0));
            request
        }),
    }
}

/// Why no planned fault was applied in a whole scenario. The reason is from the invocation that was closest to a
/// fault.
fn idle(results: &[JobResult<'_>]) -> Option<String> {
    let idle: Option<Vec<_>> = results
        .iter()
        .map(|(_, one)| one.no_fault.as_ref())
        .collect();
    Some(idle?.into_iter().max()?.to_string())
}
