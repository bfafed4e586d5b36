//! What came of askings, judged: cells, scores, and how far repeats agree.

use std::collections::{BTreeMap, BTreeSet};

use super::jobs::{InPart, Job};
use super::plan::{Part, Plan, Trial};
use super::{Asked, RanPart, Tried};
use crate::invariants::{Baseline, Invariant, Judgement, Subject, Verdict};
use crate::outside::Told;
use crate::scores::{
    Column, Matrix, PromptSample, Sample, Stability, cell, chaos_resilience, stability,
};
use crate::suite::{Active, Prompt};

/// Judges what came of a run.
pub(super) struct Judge<'r, 'p> {
    plan: &'r Plan<'p>,
    clean: BTreeMap<&'p Prompt, &'r Asked>,
    /// By number.
    tried: &'r [Tried<'p>],
    /// What invariants wanted to know from outside.
    told: Told,
}

/// An asking by its scenario and its place there: what its repeats have in common.
type Repeated = (InPart, usize);

impl<'r, 'p> Judge<'r, 'p> {
    /// Asks whatever invariants want to know before they judge.
    pub(super) async fn prepared(
        plan: &'r Plan<'p>,
        clean: &'r [Tried<'p>],
        tried: &'r [Tried<'p>],
    ) -> Self {
        let clean = clean.iter().map(|(job, asked)| (job.prompt, asked));
        let mut judge = Self {
            plan,
            clean: clean.collect(),
            tried,
            told: Told::nothing(&plan.outside),
        };
        let mut questions = BTreeSet::new();
        for (job, asked, trial, invariant) in judge.judgings() {
            let subjects = judge.subjects(trial, job, asked);
            if let Some(subject) = subjects.tried {
                questions.extend(invariant.questions(&subject));
            }
            if let Some(subject) = subjects.clean {
                questions.extend(invariant.questions_without_chaos(&subject));
            }
        }
        judge.told = plan.outside.answer(questions).await;
        judge
    }

    /// Every asking with every invariant that judges it.
    fn judgings(
        &self,
    ) -> impl Iterator<Item = (&'r Job<'p>, &'r Asked, &'r Trial, &'p Invariant)> + use<'r, 'p>
    {
        let (plan, tried) = (self.plan, self.tried);
        tried.iter().flat_map(move |(job, asked)| {
            let part = job.trial.and_then(|at| plan.parts.get(at.part));
            let trial = job.trial.and_then(|at| plan.trial(at));
            let (invariants, trial): (&'p [Invariant], _) = match part.zip(trial) {
                Some((part, trial)) => (part.invariants, Some(trial)),
                None => (&[], None),
            };
            let judging = invariants.iter().enumerate();
            let judging = judging.filter(|(place, invariant)| job.judges(*place, invariant));
            judging.filter_map(move |(_, invariant)| Some((job, asked, trial?, invariant)))
        })
    }

    /// Every part with its cells.
    pub(super) fn parts(&self) -> Vec<RanPart> {
        let parts = self.plan.parts.iter().enumerate();
        parts.map(|(place, part)| self.part(place, part)).collect()
    }

    fn part(&self, place: usize, part: &Part<'_>) -> RanPart {
        let mut matrix = Matrix::default();
        for (number, trial) in part.trials.iter().enumerate() {
            let at = InPart {
                part: place,
                trial: number,
            };
            matrix.columns.push(Column {
                name: trial.name.clone(),
                under_chaos: trial.active.any(),
                rules_applied: self.of(at).map(|(_, asked)| asked.faults_applied).sum(),
                invocations: self.of(at).count() as u64,
            });
            let invariants = part.invariants.iter().enumerate();
            let cells = invariants.map(|(place, invariant)| {
                let judged = self.of(at).filter(|(job, _)| job.judges(place, invariant));
                let samples = judged.map(|(job, asked)| self.sample(invariant, trial, job, asked));
                let samples: Vec<_> = samples.collect();
                cell(invariant, &trial.name, trial.active.any(), &samples)
            });
            matrix.cells.extend(cells);
        }
        let samples = self.prompts();
        let own = samples.iter().filter(|((at, _), _)| at.part == place);
        let under_chaos = own.filter(|((at, _), _)| self.is_under_chaos(*at));
        RanPart {
            component: part.component,
            matrix,
            chaos_resilience: chaos_resilience(under_chaos.map(|(_, sample)| sample)),
        }
    }

    fn of(&self, at: InPart) -> impl Iterator<Item = &'r Tried<'p>> {
        let tried = self.tried.iter();
        tried.filter(move |(job, _)| job.trial == Some(at))
    }

    fn is_under_chaos(&self, at: InPart) -> bool {
        self.plan.trial(at).is_some_and(|trial| trial.active.any())
    }

    /// What all invariants said of each asking, by number.
    pub(super) fn prompts(&self) -> Vec<(Repeated, PromptSample)> {
        let tried = self.tried.iter().filter_map(|(job, asked)| {
            let at = job.trial?;
            let part = self.plan.parts.get(at.part)?;
            let trial = part.trials.get(at.trial)?;
            let invariants = part.invariants.iter().enumerate();
            let judging = invariants.filter(|(place, invariant)| job.judges(*place, invariant));
            let judged = judging.map(|(_, invariant)| {
                let sample = self.sample(invariant, trial, job, asked);
                (sample.judgement, sample.fails_without_chaos)
            });
            let sample = PromptSample {
                faults_applied: asked.faults_applied,
                families: asked.families.clone(),
                judgements: judged.collect(),
            };
            Some(((at, job.asking), sample))
        });
        tried.collect()
    }

    /// How far repeats agree. An asking under chaos that met no fault was not judged.
    pub(super) fn stability(&self, samples: &[(Repeated, PromptSample)]) -> Stability {
        let mut repeats: BTreeMap<Repeated, Vec<Option<bool>>> = BTreeMap::new();
        for ((at, asking), sample) in samples {
            let is_shown = !self.is_under_chaos(*at) || sample.faults_applied > 0;
            let passed = sample.passed().filter(|_| is_shown);
            repeats.entry((*at, *asking)).or_default().push(passed);
        }
        stability(repeats.values().map(Vec::as_slice))
    }

    fn subjects<'a>(&'a self, trial: &Trial, job: &'a Job<'_>, asked: &'a Asked) -> Subjects<'a> {
        let clean = self.clean.get(job.prompt).copied();
        let clean = clean.filter(|clean| clean.wrong.is_none());
        let subject = |asked: &'a Asked, active| Subject {
            prompt: job.prompt,
            answer: &asked.answer,
            trace: &asked.trace,
            baseline: clean.map(|clean| Baseline {
                answer: &clean.answer,
                trace: Some(&clean.trace),
            }),
            active,
            prices: self.plan.prices,
            told: &self.told,
        };
        Subjects {
            tried: asked.wrong.is_none().then(|| subject(asked, trial.active)),
            clean: clean.map(|clean| subject(clean, Active::default())),
        }
    }

    fn sample(&self, invariant: &Invariant, trial: &Trial, job: &Job<'_>, asked: &Asked) -> Sample {
        let subjects = self.subjects(trial, job, asked);
        let cannot_be_judged = || {
            let why = asked.wrong.clone().unwrap_or_default();
            Judgement::Judged(Verdict::Error(why))
        };
        Sample {
            judgement: subjects
                .tried
                .map_or_else(cannot_be_judged, |subject| invariant.judge(&subject)),
            faults_applied: asked.faults_applied,
            fails_without_chaos: subjects
                .clean
                .and_then(|clean| invariant.fails_without_chaos(&clean)),
            evidence: asked.evidence(job.prompt),
        }
    }
}

/// One asking as invariants see it, and the same prompt's clean run.
struct Subjects<'a> {
    /// `None`: it cannot be judged.
    tried: Option<Subject<'a>>,
    /// `None`: there is none that can be.
    clean: Option<Subject<'a>>,
}
