//! Writes the mutants of a run.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::Value;

use super::place::{MutatedPlace, PromptForm};
use super::program;
use super::templates::{Filled, LIBRARY, MutationTemplate};
use super::words::INSTRUCTIONS;
use super::written::{ModelTexts, ModelWriter, MutantCache};
use super::{
    CUSTOM, KEEPS_MEANING, Mutant, MutationProgram, MutationStep, MutationType, Mutations, dice,
};
use crate::agents::change::RequestChange;
use crate::agents::settings::{Agent, Way};
use crate::count::count;
use crate::dial::Dialler;
use crate::model::Model;
use crate::prompt::Prompt;
use crate::reach::Pending;
use squall_journal::redact::Redactor;

/// Prompts whose mutants are written at the same time.
const AT_ONCE: usize = 8;

/// What mutants are written from.
pub struct Writing<'a> {
    /// The suite's settings.
    pub settings: &'a Mutations,
    /// The agent.
    pub agent: &'a Agent,
    /// The suite's model; `None`: all mutants are made from templates.
    pub model: Option<&'a Model>,
    /// Reaches the model.
    pub dialler: &'a Dialler,
    /// Keeps what the model wrote.
    pub cache: &'a dyn MutantCache,
    /// Texts with secrets are not kept.
    pub redactor: &'a Redactor,
    /// Seed of every draw.
    pub seed: u64,
}

/// The mutants of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mutants {
    /// By type, in the order of the settings.
    pub by_kind: Vec<(String, Vec<Mutant>)>,
    /// Types that are left out, and mutants that could not be written.
    pub warnings: Vec<String>,
}

/// Why there are no mutants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MutationError {
    /// The model does not answer.
    #[error("mutations could not be written: {0}")]
    Model(String),
    /// A program failed.
    #[error("mutation `{kind}` could not be written: {why}")]
    Program {
        /// Its name.
        kind: String,
        /// The error.
        why: String,
    },
    /// Nothing was written for any prompt.
    #[error("no mutation could be written for any golden prompt: {0}")]
    Nothing(String),
}

/// The lineage of a mutant of the corpus.
const OF_CORPUS: &str = "from the corpus";

/// A source of mutants of one type.
pub(super) enum MutantSource<'a> {
    Templates,
    /// The suite's own texts.
    Custom(&'a [(String, String)]),
    Model(&'a str),
    Program(&'a MutationProgram),
}

/// The mutants of one type and one prompt.
pub(super) struct KindMutants<'a> {
    pub(super) kind: &'a str,
    pub(super) source: MutantSource<'a>,
    /// The suite's own templates, then those of Squall, each in the order of the draws.
    pub(super) templates: Vec<&'a MutationTemplate>,
    /// The number of the suite's own templates.
    own: usize,
    /// Where templates begin to replace the model; `None`: they do not.
    replaced_from: Option<usize>,
    /// Mutants of the corpus that are not used yet.
    corpus: Vec<&'a Prompt>,
    texts: ModelTexts,
    /// The number of the next candidate.
    next: usize,
    mutants: Vec<Mutant>,
    /// How many there are to be.
    wanted: usize,
    /// Whether there are no more.
    is_closed: bool,
}

/// The prompt that mutants are written for.
pub(super) struct OfPrompt<'p> {
    pub(super) prompt: &'p Prompt,
    /// The prompt in draws and keys.
    pub(super) text: String,
    form: PromptForm<'p>,
    pub(super) seen: BTreeSet<(Prompt, Option<RequestChange>)>,
}

impl<'p> OfPrompt<'p> {
    pub(super) fn new(prompt: &'p Prompt, agent: &'p Agent) -> Self {
        Self {
            prompt,
            text: Value::from(prompt.turns()).to_string(),
            form: PromptForm::of(agent),
            seen: BTreeSet::from([(prompt.clone(), None)]),
        }
    }

    /// A mutant that no template made, with the same request.
    pub(super) fn mutant(&self, kind: &str, prompt: Prompt, lineage: Vec<String>) -> Mutant {
        Mutant {
            kind: kind.to_owned(),
            original: self.prompt.clone(),
            prompt,
            change: None,
            lineage,
            steps: Vec::new(),
        }
    }

    /// Whether a mutant is valid and new. It is known from then on.
    pub(super) fn is_new(&mut self, mutant: &Mutant) -> bool {
        let Mutant { prompt, change, .. } = mutant;
        let is_blank = prompt.turns().iter().all(|turn| turn.trim().is_empty());
        let is_valid = !is_blank && self.form.accepts(self.prompt, prompt);
        is_valid && self.seen.insert((prompt.clone(), change.clone()))
    }

    /// Adds a mutant if it is valid and new.
    fn accept(&mut self, one: &mut KindMutants<'_>, mutant: Mutant) -> bool {
        let is_new = self.is_new(&mutant);
        one.mutants.extend(is_new.then_some(mutant));
        is_new
    }
}

impl Writing<'_> {
    /// Writes the mutants of all prompts.
    pub async fn write(&self, prompts: &[Prompt]) -> Result<Mutants, MutationError> {
        let (kinds, mut warnings) = self.kinds();
        let model = self
            .model
            .map(|model| ModelWriter::new(model, self.dialler));
        let mut writing: Vec<Pending<'_, Result<Vec<KindMutants<'_>>, MutationError>>> = Vec::new();
        for prompt in prompts {
            writing.push(Box::pin(self.of_prompt(prompt, &kinds, model.as_ref())));
        }
        let written = stream::iter(writing).buffered(AT_ONCE).try_collect();
        let written: Vec<_> = written.await?;
        let mut by_kind: Vec<_> = kinds
            .iter()
            .map(|kind| ((*kind).to_owned(), Vec::new()))
            .collect();
        let mut missing: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut replaced: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for (number, of_kinds) in written.into_iter().enumerate() {
            for (place, one) in of_kinds.into_iter().enumerate() {
                if one.mutants.len() < one.wanted {
                    missing.entry(kinds[place]).or_default().push(number + 1);
                }
                let of_templates = one.replaced_from.map_or(0, |from| one.mutants.len() - from);
                if of_templates > 0 {
                    let (all, why) = replaced.entry(kinds[place]).or_default();
                    *all += of_templates;
                    *why = one.texts.rejected.unwrap_or("no valid mutant");
                }
                by_kind[place].1.extend(one.mutants);
            }
        }
        for (kind, (many, why)) in replaced {
            let many = count(many as u64, "mutant");
            warnings.push(format!(
                "mutation `{kind}`: {many} of templates replace what the model did not write: its last rejected answer \
                 was {why}"
            ));
        }
        warnings.extend(self.unused(prompts, &by_kind, &missing));
        for (kind, numbers) in missing {
            let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            warnings.push(format!(
                "mutation `{kind}`: there are fewer different mutants than `count: {}` requires, of golden prompt{} \
                 {}; other types replace them where they can",
                self.settings.count,
                if numbers.len() == 1 { "" } else { "s" },
                numbers.join(", ")
            ));
        }
        let total: usize = by_kind.iter().map(|(_, mutants)| mutants.len()).sum();
        let wanted = self.settings.count * prompts.len();
        if total == 0 {
            return Err(MutationError::Nothing(warnings.join("; ")));
        }
        if total < wanted {
            warnings.push(format!(
                "{} of {wanted} were written",
                count(total as u64, "mutant")
            ));
        }
        by_kind.retain(|(_, mutants)| !mutants.is_empty());
        Ok(Mutants { by_kind, warnings })
    }

    /// The types that the agent can get, and warnings about others.
    pub(super) fn kinds(&self) -> (Vec<&str>, Vec<String>) {
        let is_wire = |name: &str| MutationType::named(name).is_some_and(|kind| kind.is_wire);
        let is_http = matches!(self.agent.way, Way::Http(_));
        let programs = self.settings.commands.iter().map(|(name, _)| name.as_str());
        let all = self.settings.types.iter().copied().chain(programs);
        let (kinds, left_out): (Vec<_>, Vec<_>) = all.partition(|kind| is_http || !is_wire(kind));
        let mut warnings = Vec::new();
        if !left_out.is_empty() {
            warnings.push(format!(
                "mutations {} are left out: they change HTTP requests, and the agent is of type `{}`",
                left_out.join(", "),
                self.agent.way.as_str()
            ));
        }
        if let Way::Http(http) = &self.agent.way
            && !http.endpoint.starts_with("http://")
            && kinds.contains(&"protocol_level_attack")
        {
            warnings.push(
                "templates that change the bytes of a request's head are left out: the endpoint is not `http://`"
                    .to_owned(),
            );
        }
        (kinds, warnings)
    }

    /// Warnings about types, templates and a corpus that have no mutant.
    fn unused(
        &self,
        prompts: &[Prompt],
        by_kind: &[(String, Vec<Mutant>)],
        missing: &BTreeMap<&str, Vec<usize>>,
    ) -> Vec<String> {
        let Mutations { count: each, .. } = self.settings;
        let kinds = by_kind
            .iter()
            .filter(|(kind, mutants)| mutants.is_empty() && !missing.contains_key(kind.as_str()));
        let kinds: Vec<_> = kinds.map(|(kind, _)| kind.as_str()).collect();
        let mut warnings = Vec::new();
        if !kinds.is_empty() {
            warnings.push(format!(
                "mutations {} are not used: `count: {each}` is less than the number of types and custom templates",
                kinds.join(", ")
            ));
        }
        let mutants = || by_kind.iter().flat_map(|(_, mutants)| mutants);
        let used: BTreeSet<_> = mutants()
            .filter_map(|one| Some((one.kind.as_str(), one.lineage.last()?.clone())))
            .collect();
        let templates = self.settings.templates.iter();
        let templates = templates.map(|one| (one.kind.name, of_template(one), &one.id));
        let custom = self.settings.custom_templates.iter();
        let custom = custom.map(|(name, _)| (CUSTOM, of_custom_template(name), name));
        let unused = templates.chain(custom);
        let unused = unused.filter(|(kind, how, _)| !used.contains(&(*kind, how.clone())));
        let unused: Vec<_> = unused.map(|(_, _, id)| id.as_str()).collect();
        if !unused.is_empty() {
            warnings.push(format!(
                "templates {} are not used: `count: {each}` is too small for them, `types` does not have their types, or \
                 they change nothing",
                unused.join(", ")
            ));
        }
        let all = self.settings.corpus.len();
        let of_corpus = mutants().filter(|one| one.lineage == [OF_CORPUS]).count();
        if of_corpus < all {
            let known = self.settings.corpus.iter();
            let known = known.filter(|one| prompts.contains(&one.original));
            let of_others = all - known.count();
            warnings.push(format!(
                "{} of {all} mutants of the corpus are not used: {of_others} are of other golden prompts; `types` does not \
                 have the type of the others, or `count: {each}` is too small",
                all - of_corpus
            ));
        }
        warnings
    }

    /// The mutants of one prompt by type.
    async fn of_prompt<'k>(
        &'k self,
        prompt: &Prompt,
        kinds: &[&'k str],
        model: Option<&ModelWriter>,
    ) -> Result<Vec<KindMutants<'k>>, MutationError> {
        let mut of = OfPrompt::new(prompt, self.agent);
        let mut all: Vec<_> = kinds.iter().map(|kind| self.of_kind(kind, &of)).collect();
        loop {
            let written: usize = all.iter().map(|one| one.mutants.len()).sum();
            let missing = self.settings.count.saturating_sub(written);
            let mut open: Vec<_> = all.iter_mut().filter(|one| !one.is_closed).collect();
            if missing == 0 || open.is_empty() {
                break;
            }
            for (one, share) in shares(missing, &mut open) {
                one.wanted += share;
                self.add(one, &mut of, model).await?;
            }
        }
        for one in &all {
            self.keep(one, &of.text, model).await;
        }
        Ok(all)
    }

    pub(super) fn of_kind<'k>(&'k self, kind: &'k str, of: &OfPrompt<'_>) -> KindMutants<'k> {
        let program = self.settings.commands.iter().find(|(name, _)| name == kind);
        let source = match program {
            Some((_, program)) => MutantSource::Program(program),
            None if kind == CUSTOM => MutantSource::Custom(&self.settings.custom_templates),
            None if self.model.is_some() && INSTRUCTIONS.contains_key(kind) => {
                MutantSource::Model(kind)
            }
            None => MutantSource::Templates,
        };
        let order = |one: &&MutationTemplate| {
            dice(self.seed, &format!("{kind}/{}", one.id), &of.text, 0).next_choice()
        };
        let [own, library] = [&self.settings.templates, &*LIBRARY].map(|all| {
            let all = all.iter().filter(|one| one.kind.name == kind);
            let mut all: Vec<_> = all.collect();
            all.sort_by_cached_key(order);
            all
        });
        let corpus = self.settings.corpus.iter();
        let corpus = corpus.filter(|one| one.kind == kind && one.original == *of.prompt);
        KindMutants {
            kind,
            source,
            own: own.len(),
            templates: [own, library].concat(),
            replaced_from: None,
            corpus: corpus.map(|one| &one.mutant).rev().collect(),
            texts: ModelTexts::default(),
            next: 0,
            mutants: Vec::new(),
            wanted: 0,
            is_closed: false,
        }
    }

    /// Adds the mutants of a type that are missing.
    async fn add(
        &self,
        one: &mut KindMutants<'_>,
        of: &mut OfPrompt<'_>,
        model: Option<&ModelWriter>,
    ) -> Result<(), MutationError> {
        while one.mutants.len() < one.wanted
            && let Some(mutant) = one.corpus.pop()
        {
            let mutant = of.mutant(one.kind, mutant.clone(), vec![OF_CORPUS.to_owned()]);
            of.accept(one, mutant);
        }
        let missing = one.wanted - one.mutants.len();
        if let MutantSource::Program(program) = one.source {
            one.is_closed = true;
            let written = program::write(program, one.kind, of.prompt, self.seed, missing).await;
            let failed = |why| MutationError::Program {
                kind: one.kind.to_owned(),
                why,
            };
            for mutant in written.map_err(failed)? {
                if one.mutants.len() < one.wanted {
                    let how = vec!["written by the program".to_owned()];
                    let mutant = of.mutant(one.kind, mutant, how);
                    of.accept(one, mutant);
                }
            }
            return Ok(());
        }
        self.add_candidates(one, of, missing, model).await?;
        let missing = one.wanted - one.mutants.len();
        if missing > 0 && matches!(one.source, MutantSource::Model(_)) {
            one.source = MutantSource::Templates;
            one.replaced_from = Some(one.mutants.len());
            self.add_candidates(one, of, missing, model).await?;
        }
        one.is_closed = one.mutants.len() < one.wanted;
        Ok(())
    }

    async fn add_candidates(
        &self,
        one: &mut KindMutants<'_>,
        of: &mut OfPrompt<'_>,
        missing: usize,
        model: Option<&ModelWriter>,
    ) -> Result<(), MutationError> {
        for _ in 0..one.most(missing) {
            if one.mutants.len() == one.wanted {
                break;
            }
            let number = one.next;
            one.next += 1;
            let mutant = self.candidate(one, of, number, model).await?;
            let is_accepted = mutant.is_some_and(|mutant| of.accept(one, mutant));
            if !is_accepted
                && matches!(one.source, MutantSource::Model(_))
                && let Some(number) = number.checked_sub(one.own)
            {
                one.texts.reject(number);
            }
        }
        Ok(())
    }

    /// The candidate with this number; `None`: there is none.
    async fn candidate(
        &self,
        one: &mut KindMutants<'_>,
        of: &OfPrompt<'_>,
        number: usize,
        model: Option<&ModelWriter>,
    ) -> Result<Option<Mutant>, MutationError> {
        let by_model = model.filter(|_| number >= one.own);
        let (MutantSource::Model(kind), Some(model)) = (&one.source, by_model) else {
            let step = MutationType::named(one.kind).map(|known| MutationStep {
                kind: known.name,
                number,
                is_new_turn: false,
            });
            return Ok(step.and_then(|step| self.apply(&step, one, of, of.prompt)));
        };
        let mut dice = dice(self.seed, one.kind, &of.text, number as u64);
        let keeps_meaning = KEEPS_MEANING.contains(&one.kind);
        let place = MutatedPlace::draw(of.prompt, &of.form, keeps_meaning, false, &mut dice);
        let Some(place) = place else {
            return Ok(None);
        };
        let key = model.key(kind, &of.text, self.seed);
        let written = one.texts.at(
            number - one.own,
            model,
            kind,
            place.source(),
            &key,
            self.cache,
        );
        let written = written
            .await
            .map_err(|error| MutationError::Model(error.to_string()))?;
        let how = format!("written by {}", model.name());
        let lineage = place.describe().into_iter().chain([how]).collect();
        let prompt = written.and_then(|text| place.put(vec![text]));
        Ok(prompt.map(|prompt| of.mutant(one.kind, prompt, lineage)))
    }

    /// Applies a template to a prompt: the golden prompt, or what earlier steps made of it. `None`: it has no effect.
    pub(super) fn apply(
        &self,
        step: &MutationStep,
        one: &KindMutants<'_>,
        of: &OfPrompt<'_>,
        prompt: &Prompt,
    ) -> Option<Mutant> {
        let mut dice = dice(self.seed, one.kind, &of.text, step.number as u64);
        let keeps_meaning = KEEPS_MEANING.contains(&one.kind);
        let is_new = step.is_new_turn;
        let place = MutatedPlace::draw(prompt, &of.form, keeps_meaning, is_new, &mut dice)?;
        let steps = vec![step.clone()];
        let (texts, how) = match &one.source {
            MutantSource::Templates | MutantSource::Model(_) => {
                let number = step.number.checked_rem(one.templates.len())?;
                let template = one.templates.get(number)?;
                let how = of_template(template);
                match template.fill(place.source(), &mut dice)? {
                    Filled::Turns(texts) => (texts, how),
                    Filled::Request(change) => {
                        let Way::Http(http) = &self.agent.way else {
                            return None;
                        };
                        let applies = change.applies(&http.method, &http.endpoint);
                        return applies.then(|| Mutant {
                            change: Some(change),
                            steps,
                            ..of.mutant(one.kind, prompt.clone(), vec![how])
                        });
                    }
                }
            }
            MutantSource::Custom(templates) => {
                let (name, template) = templates.get(step.number)?;
                let text = template.replace("{prompt}", place.source());
                (vec![text], of_custom_template(name))
            }
            MutantSource::Program(_) => return None,
        };
        let lineage = place.describe().into_iter().chain([how]).collect();
        Some(Mutant {
            steps,
            ..of.mutant(one.kind, place.put(texts)?, lineage)
        })
    }

    /// Keeps what the model wrote, unless it has secrets in it.
    async fn keep(&self, one: &KindMutants<'_>, text: &str, model: Option<&ModelWriter>) {
        if let Some(model) = model {
            let key = model.key(one.kind, text, self.seed);
            one.texts.keep(&key, self.cache, self.redactor).await;
        }
    }
}

impl KindMutants<'_> {
    /// Candidates that are tried for this number of mutants.
    fn most(&self, many: usize) -> usize {
        match &self.source {
            MutantSource::Templates => self.templates.len() * (many + 4),
            MutantSource::Custom(templates) => templates.len() + 1,
            MutantSource::Model(_) => self.own + 3 * many,
            MutantSource::Program(_) => 4 * many,
        }
    }
}

/// Distributes mutants over the types. The suite's own texts come first, each once; the rest is shared evenly, and
/// earlier types get the remainder.
fn shares<'m, 'a>(
    missing: usize,
    open: &'m mut [&mut KindMutants<'a>],
) -> Vec<(&'m mut KindMutants<'a>, usize)> {
    let is_custom = |one: &KindMutants<'_>| matches!(one.source, MutantSource::Custom(_));
    let custom = open.iter().find_map(|one| match one.source {
        MutantSource::Custom(templates) => Some(templates.len().min(missing)),
        _ => None,
    });
    let others = open.iter().filter(|one| !is_custom(one)).count();
    let rest = missing - custom.unwrap_or(0);
    let mut number = 0;
    let shared = open.iter_mut().map(|one| {
        if is_custom(one) {
            return (&mut **one, custom.unwrap_or(0));
        }
        let share = rest / others + usize::from(number < rest % others);
        number += 1;
        (&mut **one, share)
    });
    shared.filter(|(_, share)| *share > 0).collect()
}

fn of_template(template: &MutationTemplate) -> String {
    format!("template {}", template.id)
}

fn of_custom_template(name: &str) -> String {
    format!("custom template {name}")
}
