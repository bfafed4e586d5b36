//! What came of the askings of a scenario, judged: its cells, and what is said of each asking.

use std::collections::{BTreeMap, BTreeSet};

use squall_journal::run::{CellRecord, EvidenceRecord};

use super::jobs::{InPart, Job};
use super::plan::{Part, Plan, Trial};
use super::{Asked, Tried};
use crate::invariants::{Baseline, Invariant, Judgement, Subject, Verdict};
use crate::outside::{Question, Told};
use crate::scores::{Column, PromptSample, Sample, cell};
use crate::suite::{Active, Prompt};

/// Judges what came of a run, scenario by scenario.
pub(super) struct Judge<'r, 'p> {
    plan: &'r Plan<'p>,
    clean: BTreeMap<&'p Prompt, &'r Asked>,
    /// What invariants wanted to know from outside.
    told: Told,
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
    /// What all invariants said of each asking, in the askings' order.
    pub(super) prompts: Vec<(Repeated, PromptSample)>,
}

/// An asking by its scenario and its place there: what its repeats have in common.
pub(super) type Repeated = (InPart, usize);

impl<'r, 'p> Judge<'r, 'p> {
    /// One that compares with these askings without chaos.
    pub(super) fn new(plan: &'r Plan<'p>, clean: &'r [Tried<'p>]) -> Self {
        let was_seen = clean.iter().any(|(_, asked)| asked.was_seen());
        let clean = clean.iter().map(|(job, asked)| (job.prompt, asked));
        Self {
            was_seen,
            plan,
            clean: clean.collect(),
            told: Told::nothing(&plan.outside),
        }
    }

    /// Why nobody outside was there that invariants had to ask.
    pub(super) fn unreachable(&self) -> Option<&str> {
        self.told.absent()
    }

    /// Judges a scenario of which these are all the askings. Asks whatever its invariants want to know and no
    /// scenario before it did.
    pub(super) async fn scenario(
        &mut self,
        at: InPart,
        part: &Part<'p>,
        trial: &Trial,
        tried: &[Tried<'p>],
    ) -> Judged {
        let questions = self.questions(part, trial, tried);
        let replies = self.plan.outside.answer(questions).await;
        self.told.and(replies);
        let mut judged = Judged {
            column: Column {
                name: trial.name.clone(),
                under_chaos: trial.active.any(),
                rules_applied: tried.iter().map(|(_, asked)| asked.faults_applied).sum(),
                invocations: tried.len() as u64,
                idle: idle(tried),
            },
            cells: Vec::new(),
            prompts: tried
                .iter()
                .map(|(job, asked)| ((at, job.asking), asked.not_judged_yet()))
                .collect(),
        };
        for (place, invariant) in part.invariants.iter().enumerate() {
            let mut samples = Vec::new();
            for ((job, asked), (_, prompt)) in tried.iter().zip(&mut judged.prompts) {
                if job.judges(place, invariant) {
                    let sample = self.sample(invariant, trial, job, asked);
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
            // Meanwhile others are asked, and what they take is measured.
            tokio::task::yield_now().await;
        }
        judged
    }

    /// What invariants want to know of these askings that nobody was asked yet.
    fn questions(&self, part: &Part<'p>, trial: &Trial, tried: &[Tried<'p>]) -> BTreeSet<Question> {
        let mut questions = BTreeSet::new();
        for (job, asked) in tried {
            let subjects = self.subjects(trial, job, asked);
            let invariants = part.invariants.iter().enumerate();
            for (_, invariant) in invariants.filter(|(place, one)| job.judges(*place, one)) {
                if let Some(subject) = &subjects.tried {
                    questions.extend(invariant.questions(subject));
                }
                if let Some(subject) = &subjects.clean {
                    questions.extend(invariant.questions_without_chaos(subject));
                }
            }
        }
        questions.retain(|question| !self.told.knows(question));
        questions
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

    /// Whether the agent gave no answer under chaos to what it answers without: a fault before may have broken it.
    fn gives_up(&self, trial: &Trial, job: &Job<'_>, asked: &Asked) -> bool {
        let answers = |clean: &&Asked| clean.failure().is_none();
        trial.active.any()
            && asked.answer.error.is_some()
            && self.clean.get(job.prompt).is_some_and(answers)
    }

    fn sample(&self, invariant: &Invariant, trial: &Trial, job: &Job<'_>, asked: &Asked) -> Sample {
        let subjects = self.subjects(trial, job, asked);
        let cannot_be_judged = || {
            let why = asked.wrong.clone().unwrap_or_default();
            Judgement::Judged(Verdict::Error(why))
        };
        let judgement = subjects
            .tried
            .map_or_else(cannot_be_judged, |subject| invariant.judge(&subject));
        let fails = matches!(judgement, Judgement::Judged(Verdict::Fails(_)));
        let gives_up = fails && !invariant.looks_at_the_wire() && self.gives_up(trial, job, asked);
        let is_blind = !self.was_seen && !asked.was_seen() && invariant.looks_at_the_wire();
        Sample {
            judgement: match judgement {
                Judgement::Judged(Verdict::Holds(_) | Verdict::Fails(_)) if is_blind => {
                    Judgement::Judged(Verdict::Insufficient(BLIND.to_owned()))
                }
                judgement => judgement,
            },
            faults_applied: asked.faults_applied,
            exercised: asked.faults_applied > 0 || gives_up,
            idle: asked.idle.as_ref().map(ToString::to_string),
            fails_without_chaos: subjects
                .clean
                .and_then(|clean| invariant.fails_without_chaos(&clean)),
            evidence: EvidenceRecord {
                repeat: (self.plan.repeat > 1).then_some(job.repeat),
                ..asked.evidence(job.prompt)
            },
        }
    }
}

/// Why no planned fault was applied in a whole scenario, by the asking that came nearest to one.
fn idle(tried: &[Tried<'_>]) -> Option<String> {
    let idle: Option<Vec<_>> = tried.iter().map(|(_, asked)| asked.idle.as_ref()).collect();
    Some(idle?.into_iter().max()?.to_string())
}

/// One asking as invariants see it, and the same prompt's clean run.
struct Subjects<'a> {
    /// `None`: it cannot be judged.
    tried: Option<Subject<'a>>,
    /// `None`: there is none that can be.
    clean: Option<Subject<'a>>,
}
