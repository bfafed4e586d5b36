//! What came of the invocations of a scenario, judged: its cells, and what is said of each invocation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::jobs::{InPart, Job};
use super::plan::{Part, Plan, Trial};
use super::pool::JUDGING;
use super::{Asked, Tried};
use crate::invariants::{Baseline, Invariant, Judgement, Subject, Verdict};
use crate::outside::{Question, Told};
use crate::run::{CellRecord, EvidenceRecord};
use crate::scores::{Column, PromptSample, Sample, cell};
use crate::suite::{Active, Prices, Prompt};

/// Judges what came of a run, scenario by scenario.
pub(super) struct Judge<'r, 'p> {
    plan: &'r Plan<'p>,
    clean: BTreeMap<&'p Prompt, Arc<Asked>>,
    /// What invariants wanted to know from outside.
    told: Arc<Told>,
    prices: Arc<Prices>,
    /// Whether a call of the agent came through the proxy without chaos.
    was_seen: bool,
}

/// Of an agent that never called anybody nobody knows what it does on the wire.
pub(super) const BLIND: &str = "no call of the agent came through the proxy, not without chaos either: nothing is known of what \
     it does on the wire";

/// A scenario, judged.
pub(super) struct Judged {
    pub(super) column: Column,
    /// One for each invariant.
    pub(super) cells: Vec<CellRecord>,
    /// What all invariants said of each invocation, in the invocations' order.
    pub(super) prompts: Vec<(Repeated, PromptSample)>,
}

/// An invocation by its scenario and its place there: what its repeats have in common.
pub(super) type Repeated = (InPart, usize);

impl<'r, 'p> Judge<'r, 'p> {
    /// One that compares with these invocations without chaos.
    pub(super) fn new(plan: &'r Plan<'p>, clean: &[Tried<'p>]) -> Self {
        let was_seen = clean.iter().any(|(_, asked)| asked.was_seen());
        let clean = clean.iter();
        let clean = clean.map(|(job, asked)| (job.prompt, Arc::clone(asked)));
        Self {
            was_seen,
            plan,
            clean: clean.collect(),
            told: Arc::new(Told::nothing(&plan.outside)),
            prices: Arc::new(plan.prices.clone()),
        }
    }

    /// Why nobody outside was there that invariants had to ask.
    pub(super) fn unreachable(&self) -> Option<&str> {
        self.told.absent()
    }

    /// Judges a scenario of which these are all the invocations. Asks whatever its invariants want to know and no
    /// scenario before it did.
    pub(super) async fn scenario(
        &mut self,
        at: InPart,
        part: &Part<'p>,
        trial: &Trial,
        tried: &[Tried<'p>],
    ) -> Judged {
        let invariants: Vec<_> = part.invariants.iter().cloned().map(Arc::new).collect();
        let questions = self.questions(&invariants, trial, tried).await;
        let replies = self.plan.outside.answer(questions).await;
        Arc::make_mut(&mut self.told).and(replies);
        let mut judged = Judged {
            column: Column {
                name: trial.name.clone(),
                under_chaos: trial.active.any(),
                rules_applied: tried.iter().map(|(_, asked)| asked.faults_applied).sum(),
                invocations: tried.len() as u64,
                idle: idle(tried),
                rules: trial.told.clone(),
            },
            cells: Vec::new(),
            prompts: tried
                .iter()
                .map(|(job, asked)| ((at, job.invocation), asked.not_judged_yet()))
                .collect(),
        };
        for (place, invariant) in invariants.iter().enumerate() {
            let mut samples = Vec::new();
            for ((job, asked), (_, prompt)) in tried.iter().zip(&mut judged.prompts) {
                if job.judges(place, invariant) {
                    let sample = self.case(invariant, trial, job, asked).judged().await;
                    prompt.exercised |= sample.exercised;
                    let said = (sample.judgement.clone(), sample.fails_without_chaos);
                    prompt.judgements.push(said);
                    samples.push(sample);
                }
            }
            let cell = cell(invariant, &trial.name, trial.active.any(), &samples);
            judged.cells.push(CellRecord {
                invariant: part.name_of(invariant),
                ..cell
            });
        }
        judged
    }

    /// What invariants want to know of these invocations that nobody was asked yet. Whoever takes too long to say
    /// so asks nothing, and takes too long to judge.
    async fn questions(
        &self,
        invariants: &[Arc<Invariant>],
        trial: &Trial,
        tried: &[Tried<'p>],
    ) -> BTreeSet<Question> {
        let mut questions = BTreeSet::new();
        for (job, asked) in tried {
            let invariants = invariants.iter().enumerate();
            for (_, invariant) in invariants.filter(|(place, one)| job.judges(*place, one)) {
                let case = self.case(invariant, trial, job, asked);
                let asks = JUDGING.run(move || case.questions()).await;
                questions.extend(asks.unwrap_or_default());
            }
        }
        questions.retain(|question| !self.told.knows(question));
        questions
    }

    fn case(
        &self,
        invariant: &Arc<Invariant>,
        trial: &Trial,
        job: &Job<'_>,
        asked: &Arc<Asked>,
    ) -> Case {
        Case {
            invariant: Arc::clone(invariant),
            prompt: job.prompt.clone(),
            repeat: (self.plan.repeat > 1).then_some(job.repeat),
            active: trial.active,
            asked: Arc::clone(asked),
            clean: self.clean.get(job.prompt).cloned(),
            prices: Arc::clone(&self.prices),
            told: Arc::clone(&self.told),
            was_seen: self.was_seen,
        }
    }
}

/// One invocation and the invariant that judges it, with all that it judges by: a thread of its own judges it.
#[derive(Clone)]
struct Case {
    invariant: Arc<Invariant>,
    prompt: Prompt,
    /// Which repeat it is; `None`: there is one.
    repeat: Option<u64>,
    active: Active,
    asked: Arc<Asked>,
    /// The same prompt without chaos.
    clean: Option<Arc<Asked>>,
    prices: Arc<Prices>,
    told: Arc<Told>,
    /// Whether a call of the agent came through the proxy without chaos.
    was_seen: bool,
}

impl Case {
    /// The sample, within the deadline; one that is not reached by then is an error.
    async fn judged(self) -> Sample {
        let case = self.clone();
        let judged = JUDGING.run(move || case.sample()).await;
        judged.unwrap_or_else(|why| self.sample_of(Judgement::Judged(Verdict::Error(why)), None))
    }

    fn questions(&self) -> Vec<Question> {
        let mut questions = Vec::new();
        if let Some(subject) = self.subject() {
            questions.extend(self.invariant.questions(&subject));
        }
        if let Some(subject) = self.clean_subject() {
            questions.extend(self.invariant.questions_without_chaos(&subject));
        }
        questions
    }

    fn sample(&self) -> Sample {
        let cannot_be_judged = || {
            let why = self.asked.wrong.clone().unwrap_or_default();
            Judgement::Judged(Verdict::Error(why))
        };
        let judgement = (self.subject())
            .map_or_else(cannot_be_judged, |subject| self.invariant.judge(&subject));
        let without_chaos = self.clean_subject();
        let fails = without_chaos.and_then(|clean| self.invariant.fails_without_chaos(&clean));
        self.sample_of(judgement, fails)
    }

    fn sample_of(&self, judgement: Judgement, fails_without_chaos: Option<bool>) -> Sample {
        let asked = &self.asked;
        let reason = match &judgement {
            Judgement::NotApplicable(reason) => reason,
            Judgement::Judged(verdict) => verdict.reason(),
        };
        let telling = asked.telling(reason);
        let looks_at_the_wire = self.invariant.looks_at_the_wire();
        let fails = matches!(judgement, Judgement::Judged(Verdict::Fails(_)));
        let gives_up = fails && !looks_at_the_wire && self.gives_up();
        let is_blind = !self.was_seen && !asked.was_seen() && looks_at_the_wire;
        let when = self.invariant.when;
        let is_another_fault =
            asked.faults_applied > 0 && !gives_up && !when.applies(asked.applied);
        let proves_nothing = if is_blind {
            Some(BLIND.to_owned())
        } else if is_another_fault {
            let when = when.as_str();
            Some(format!(
                "no fault was applied in this invocation that `when: {when}` is about"
            ))
        } else {
            None
        };
        Sample {
            judgement: match (judgement, proves_nothing) {
                (Judgement::Judged(Verdict::Holds(_) | Verdict::Fails(_)), Some(why)) => {
                    Judgement::Judged(Verdict::Insufficient(why))
                }
                (judgement, _) => judgement,
            },
            faults_applied: asked.faults_applied,
            exercised: asked.faults_applied > 0 || gives_up,
            idle: asked.idle.as_ref().map(ToString::to_string),
            fails_without_chaos,
            evidence: EvidenceRecord {
                repeat: self.repeat,
                telling,
                ..asked.evidence(&self.prompt)
            },
        }
    }

    /// The invocation as the invariant sees it; `None`: it cannot be judged.
    fn subject(&self) -> Option<Subject<'_>> {
        let can_be_judged = self.asked.wrong.is_none();
        can_be_judged.then(|| self.subject_of(&self.asked, self.active))
    }

    /// The same prompt's clean run; `None`: there is none that can be judged.
    fn clean_subject(&self) -> Option<Subject<'_>> {
        let clean = self.clean_answer()?;
        Some(self.subject_of(clean, Active::default()))
    }

    fn subject_of<'a>(&'a self, asked: &'a Asked, active: Active) -> Subject<'a> {
        Subject {
            prompt: &self.prompt,
            answer: &asked.answer,
            trace: &asked.trace,
            baseline: self.clean_answer().map(|clean| Baseline {
                answer: &clean.answer,
                trace: Some(&clean.trace),
            }),
            active,
            prices: &self.prices,
            told: &self.told,
        }
    }

    fn clean_answer(&self) -> Option<&Asked> {
        self.clean.as_deref().filter(|clean| clean.wrong.is_none())
    }

    /// Whether the agent gave no answer under chaos, or an empty one, to what it answers without: a fault before may
    /// have broken it.
    fn gives_up(&self) -> bool {
        let answer = &self.asked.answer;
        let clean = self.clean_answer().map(|clean| &clean.answer);
        self.active.any()
            && (answer.error.is_some() || answer.is_blank())
            && clean.is_some_and(|clean| clean.error.is_none() && !clean.is_blank())
    }
}

/// Why no planned fault was applied in a whole scenario, by the invocation that came nearest to one.
fn idle(tried: &[Tried<'_>]) -> Option<String> {
    let idle: Option<Vec<_>> = tried.iter().map(|(_, asked)| asked.idle.as_ref()).collect();
    Some(idle?.into_iter().max()?.to_string())
}
