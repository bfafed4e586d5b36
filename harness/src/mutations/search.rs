//! The search for failing mutants: the steps of mutants that come close to failing are recombined and changed.
//!
//! ```text
//! plain mutants ──▶ judged ──▶ the `keep` with the smallest margins ──▶ recombine, change ──▶ new mutants ─┐
//!                     ▲───────────────────────────────────────────────────────────────────────────────────┘
//! ```

use squall_profiles::dice::Dice;

use super::write::{KindMutants, MutantSource, OfPrompt};
use super::{
    CHANGES_MEANING, LONGEST, Mutant, Mutants, MutationStep, MutationType, SearchSettings, Writing,
    below, dice,
};
use crate::prompt::Prompt;

/// Most steps of a mutant.
const MOST_STEPS: usize = 4;

/// Variants of a template that search draws from.
const VARIANTS: usize = 8;

/// Draws for one new mutant before it is left out.
const ATTEMPTS: u64 = 30;

/// The mutants of a run, and what makes new ones from them.
pub(crate) struct MutationSearch<'a> {
    writing: &'a Writing<'a>,
    settings: &'a SearchSettings,
    prompts: Vec<SearchedPrompt<'a>>,
}

/// The judged mutants of one golden prompt.
struct SearchedPrompt<'a> {
    of: OfPrompt<'a>,
    /// The types that search uses.
    kinds: Vec<KindMutants<'a>>,
    /// In the order in which they were drawn.
    judged: Vec<JudgedMutant>,
}

struct JudgedMutant {
    steps: Vec<MutationStep>,
    /// The smallest margin of its invocations; `None`: one failed.
    margin: Option<f64>,
}

impl<'a> MutationSearch<'a> {
    /// Searches from these mutants.
    pub(crate) fn new(
        writing: &'a Writing<'a>,
        settings: &'a SearchSettings,
        prompts: &'a [Prompt],
        mutants: &Mutants,
    ) -> Self {
        let is_searched =
            |kind: &&str| *kind != CHANGES_MEANING && MutationType::named(kind).is_some();
        let (all, _) = writing.kinds();
        let prompts = prompts.iter().map(|prompt| {
            let mut of = OfPrompt::new(prompt, writing.agent);
            let known = mutants.by_kind.iter().flat_map(|(_, mutants)| mutants);
            let known = known.filter(|mutant| mutant.original == *prompt);
            of.seen
                .extend(known.map(|one| (one.prompt.clone(), one.change.clone())));
            let kinds = all.iter().copied().filter(is_searched);
            let mut kinds: Vec<_> = kinds.map(|kind| writing.of_kind(kind, &of)).collect();
            kinds.retain(|one| one.candidates() > 0);
            SearchedPrompt {
                of,
                kinds,
                judged: Vec::new(),
            }
        });
        Self {
            writing,
            settings,
            prompts: prompts.collect(),
        }
    }

    /// Adds a judged invocation of a mutant, with its margin; `None`: it failed.
    pub(crate) fn add(&mut self, mutant: &Mutant, margin: Option<f64>) {
        let mut prompts = self.prompts.iter_mut();
        let prompt = prompts.find(|prompt| *prompt.of.prompt == mutant.original);
        let Some(prompt) = prompt.filter(|_| !mutant.steps.is_empty()) else {
            return;
        };
        let mut known = prompt.judged.iter_mut();
        match known.find(|known| known.steps == mutant.steps) {
            Some(known) => {
                let both = known.margin.zip(margin);
                known.margin = both.map(|(one, other)| one.min(other));
            }
            None => prompt.judged.push(JudgedMutant {
                steps: mutant.steps.clone(),
                margin,
            }),
        }
    }

    /// The mutants of this generation, at most so many.
    pub(crate) fn generation(&mut self, number: usize, most: usize) -> Vec<Mutant> {
        let mut mutants = Vec::new();
        for child in 0..self.settings.population {
            for prompt in &mut self.prompts {
                if mutants.len() < most {
                    mutants.extend(prompt.child(self.writing, self.settings.keep, number, child));
                }
            }
        }
        mutants
    }
}

impl SearchedPrompt<'_> {
    /// A new mutant; `None`: none was drawn.
    fn child(
        &mut self,
        writing: &Writing<'_>,
        keep: usize,
        generation: usize,
        child: usize,
    ) -> Option<Mutant> {
        // A failed mutant is a result. Its variants would fail for the same reason.
        let passed = self.judged.iter();
        let mut parents: Vec<_> = passed
            .filter_map(|one| Some((one.margin?, &one.steps)))
            .collect();
        // Of equal margins, fewer steps first: they leave room for others.
        let order = |one: &(f64, &Vec<_>), other: &(f64, &Vec<_>)| {
            let lengths = one.1.len().cmp(&other.1.len());
            one.0.total_cmp(&other.0).then(lengths)
        };
        parents.sort_by(order);
        // Those that tie with the last are parents too.
        if let Some(last) = parents.get(keep - 1).copied() {
            parents.retain(|one| order(one, &last).is_le());
        }
        let parents: Vec<_> = parents.into_iter().map(|(_, steps)| steps).collect();
        let purpose = format!("search/{generation}/{child}");
        let drawn: Vec<_> = (0..ATTEMPTS)
            .map(|attempt| {
                let mut dice = dice(writing.seed, &purpose, &self.of.text, attempt);
                self.steps(&parents, &mut dice)
            })
            .collect();
        drawn
            .into_iter()
            .find_map(|steps| self.mutant(writing, generation, steps?))
    }

    /// The steps of a parent, changed or joined with those of another.
    fn steps(&self, parents: &[&Vec<MutationStep>], dice: &mut Dice) -> Option<Vec<MutationStep>> {
        let mut steps = match parents.len() {
            0 => Vec::new(),
            many => parents[below(many, dice)].clone(),
        };
        let at = below(steps.len().max(1), dice);
        match dice.below(6) {
            0 | 1 if parents.len() > 1 => {
                steps.extend_from_slice(parents[below(parents.len(), dice)]);
            }
            2 if !steps.is_empty() => steps[at].is_new_turn = !steps[at].is_new_turn,
            3 if steps.len() > 1 => drop(steps.remove(at)),
            4 if !steps.is_empty() => steps[at] = self.step(dice)?,
            _ if steps.len() == MOST_STEPS => steps[at] = self.step(dice)?,
            _ => steps.push(self.step(dice)?),
        }
        let mut kept: Vec<MutationStep> = Vec::new();
        for step in steps {
            let wire = |step: &MutationStep| {
                MutationType::named(step.kind).is_some_and(|kind| kind.is_wire)
            };
            let is_second = wire(&step) && kept.iter().any(wire);
            if kept.len() < MOST_STEPS && !is_second && !kept.contains(&step) {
                kept.push(step);
            }
        }
        Some(kept)
    }

    /// A step of any type.
    fn step(&self, dice: &mut Dice) -> Option<MutationStep> {
        let one = self.kinds.get(below(self.kinds.len().max(1), dice))?;
        Some(MutationStep {
            kind: MutationType::named(one.kind)?.name,
            number: below(one.candidates(), dice),
            is_new_turn: dice.below(4) == 0,
        })
    }

    /// The mutant that these steps make; `None`: it is known, or a step has no effect.
    fn mutant(
        &mut self,
        writing: &Writing<'_>,
        generation: usize,
        steps: Vec<MutationStep>,
    ) -> Option<Mutant> {
        let (mut prompt, mut change) = (self.of.prompt.clone(), None);
        let mut lineage = vec![format!("search generation {generation}")];
        for step in &steps {
            let one = self.kinds.iter().find(|one| one.kind == step.kind)?;
            let applied = writing.apply(step, one, &self.of, &prompt)?;
            lineage.push(format!("{}: {}", step.kind, applied.lineage.join(", ")));
            change = applied.change.or(change);
            prompt = applied.prompt;
            let length: usize = prompt.turns().iter().map(String::len).sum();
            if length > 2 * LONGEST {
                return None;
            }
        }
        let mutant = Mutant {
            change,
            ..self.of.mutant(steps.last()?.kind, prompt, lineage)
        };
        self.of
            .is_new(&mutant)
            .then_some(Mutant { steps, ..mutant })
    }
}

impl KindMutants<'_> {
    /// The number of candidates to draw from.
    fn candidates(&self) -> usize {
        match &self.source {
            MutantSource::Templates => self.templates.len() * VARIANTS,
            MutantSource::Custom(templates) => templates.len(),
            MutantSource::Model(_) | MutantSource::Program(_) => 0,
        }
    }
}
