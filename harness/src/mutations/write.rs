//! Writes the mutants of a run.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::place::{MutatedPlace, PromptForm};
use super::templates::{Filled, LIBRARY, MutationTemplate};
use super::words::INSTRUCTIONS;
use super::written::{ModelTexts, ModelWriter, MutantCache};
use super::{CUSTOM, LONGEST, Mutant, MutationProgram, Mutations, TYPES, dice};
use crate::agents::change::RequestChange;
use crate::agents::program::{self, NotEnded};
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

/// The mutants of one prompt by type, and whether the type has fewer than its share.
type KindResults = Vec<(Vec<Mutant>, bool)>;

/// A source of mutants of one type.
enum MutantSource<'a> {
    /// Templates, in the order of the draws.
    Templates(Vec<&'a MutationTemplate>),
    /// The suite's own texts.
    Custom(&'a [(String, String)]),
    Model(&'a str),
    Program(&'a MutationProgram),
}

/// The mutants of one type and one prompt.
struct KindMutants<'a> {
    kind: &'a str,
    source: MutantSource<'a>,
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

/// A mutant that may be invalid or known.
struct MutantCandidate {
    prompt: Prompt,
    change: Option<RequestChange>,
    lineage: Vec<String>,
}

/// The prompt that mutants are written for.
struct OfPrompt<'p> {
    prompt: &'p Prompt,
    /// The prompt in draws and keys.
    text: String,
    form: PromptForm<'p>,
    seen: BTreeSet<(Prompt, Option<RequestChange>)>,
}

impl OfPrompt<'_> {
    /// Adds a candidate if it is valid and new.
    fn accept(&mut self, one: &mut KindMutants<'_>, candidate: MutantCandidate) -> bool {
        let MutantCandidate {
            prompt,
            change,
            lineage,
        } = candidate;
        let is_blank = prompt.turns().iter().all(|turn| turn.trim().is_empty());
        let is_valid = !is_blank && self.form.accepts(self.prompt, &prompt);
        let is_new = is_valid && self.seen.insert((prompt.clone(), change.clone()));
        if is_new {
            one.mutants.push(Mutant {
                kind: one.kind.to_owned(),
                original: self.prompt.clone(),
                prompt,
                change,
                lineage,
            });
        }
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
        let mut writing: Vec<Pending<'_, Result<KindResults, MutationError>>> = Vec::new();
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
        for (number, of_kinds) in written.into_iter().enumerate() {
            for (place, (mutants, is_short)) in of_kinds.into_iter().enumerate() {
                by_kind[place].1.extend(mutants);
                if is_short {
                    missing.entry(kinds[place]).or_default().push(number + 1);
                }
            }
        }
        for (kind, numbers) in missing {
            let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            warnings.push(format!(
                "mutation `{kind}`: there are fewer different mutants than `count: {}` requires, of golden prompts \
                 {}; other types replace them where they can",
                self.settings.count,
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
    fn kinds(&self) -> (Vec<&str>, Vec<String>) {
        let is_wire = |name: &str| {
            TYPES
                .iter()
                .any(|known| known.name == name && known.is_wire)
        };
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
        let others = kinds.len().saturating_sub(self.settings.count);
        if others > 0 {
            let unused = kinds[self.settings.count..].join(", ");
            warnings.push(format!(
                "mutations {unused} are not used: `count: {}` is less than the number of types",
                self.settings.count
            ));
        }
        (kinds, warnings)
    }

    /// The mutants of one prompt by type, and whether the type has fewer than its share.
    async fn of_prompt(
        &self,
        prompt: &Prompt,
        kinds: &[&str],
        model: Option<&ModelWriter>,
    ) -> Result<KindResults, MutationError> {
        let mut of = OfPrompt {
            prompt,
            text: Value::from(prompt.turns()).to_string(),
            form: PromptForm::of(self.agent),
            seen: BTreeSet::from([(prompt.clone(), None)]),
        };
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
        let all = all.into_iter().map(|one| {
            let is_short = one.mutants.len() < one.wanted;
            (one.mutants, is_short)
        });
        Ok(all.collect())
    }

    fn of_kind<'k>(&'k self, kind: &'k str, of: &OfPrompt<'_>) -> KindMutants<'k> {
        let program = self.settings.commands.iter().find(|(name, _)| name == kind);
        let source = match program {
            Some((_, program)) => MutantSource::Program(program),
            None if kind == CUSTOM => MutantSource::Custom(&self.settings.custom_templates),
            None if self.model.is_some() && INSTRUCTIONS.contains_key(kind) => {
                MutantSource::Model(kind)
            }
            None => {
                let all = LIBRARY.iter().chain(&self.settings.templates);
                let mut templates: Vec<_> = all.filter(|one| one.kind.name == kind).collect();
                let order = |one: &&MutationTemplate| {
                    dice(self.seed, &format!("{kind}/{}", one.id), &of.text, 0).next_choice()
                };
                templates.sort_by_cached_key(order);
                MutantSource::Templates(templates)
            }
        };
        let corpus = self.settings.corpus.iter();
        let corpus = corpus.filter(|one| one.kind == kind && one.original == *of.prompt);
        KindMutants {
            kind,
            source,
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
        let of_text = |prompt: Prompt, how: String| MutantCandidate {
            prompt,
            change: None,
            lineage: vec![how],
        };
        while one.mutants.len() < one.wanted
            && let Some(mutant) = one.corpus.pop()
        {
            of.accept(one, of_text(mutant.clone(), "from the corpus".to_owned()));
        }
        let missing = one.wanted - one.mutants.len();
        if let MutantSource::Program(program) = one.source {
            one.is_closed = true;
            for mutant in run(program, one.kind, of.prompt, self.seed, missing).await? {
                if one.mutants.len() < one.wanted {
                    of.accept(one, of_text(mutant, "written by the program".to_owned()));
                }
            }
            return Ok(());
        }
        for _ in 0..one.most(missing) {
            if one.mutants.len() == one.wanted {
                return Ok(());
            }
            let number = one.next;
            one.next += 1;
            let candidate = self.candidate(one, of, number, model).await?;
            let is_accepted = candidate.is_some_and(|candidate| of.accept(one, candidate));
            if !is_accepted && matches!(one.source, MutantSource::Model(_)) {
                one.texts.reject(number);
            }
        }
        one.is_closed = one.mutants.len() < one.wanted;
        Ok(())
    }

    /// The candidate with this number; `None`: there is none.
    async fn candidate(
        &self,
        one: &mut KindMutants<'_>,
        of: &OfPrompt<'_>,
        number: usize,
        model: Option<&ModelWriter>,
    ) -> Result<Option<MutantCandidate>, MutationError> {
        let mut dice = dice(self.seed, one.kind, &of.text, number as u64);
        let place = MutatedPlace::draw(of.prompt, &of.form, &mut dice);
        let (texts, how) = match &one.source {
            MutantSource::Templates(templates) => {
                let template = templates[number % templates.len()];
                let how = format!("template {}", template.id);
                match template.fill(place.source(), &mut dice) {
                    None => return Ok(None),
                    Some(Filled::Turns(texts)) => (texts, how),
                    Some(Filled::Request(change)) => {
                        let Way::Http(http) = &self.agent.way else {
                            return Ok(None);
                        };
                        let applies = change.applies(&http.method, &http.endpoint);
                        return Ok(applies.then(|| MutantCandidate {
                            prompt: of.prompt.clone(),
                            change: Some(change),
                            lineage: vec![how],
                        }));
                    }
                }
            }
            MutantSource::Custom(templates) => {
                let Some((name, template)) = templates.get(number) else {
                    return Ok(None);
                };
                let text = template.replace("{prompt}", place.source());
                (vec![text], format!("custom template {name}"))
            }
            MutantSource::Model(kind) => {
                let Some(model) = model else {
                    return Ok(None);
                };
                let key = model.key(kind, &of.text, self.seed);
                let written = one
                    .texts
                    .at(number, model, kind, place.source(), &key, self.cache);
                let written = written
                    .await
                    .map_err(|error| MutationError::Model(error.to_string()))?;
                let Some(written) = written else {
                    return Ok(None);
                };
                (vec![written], format!("written by {}", model.name()))
            }
            MutantSource::Program(_) => return Ok(None),
        };
        let lineage = place.describe().into_iter().chain([how]).collect();
        let candidate = |prompt| MutantCandidate {
            prompt,
            change: None,
            lineage,
        };
        Ok(place.put(texts).map(candidate))
    }

    /// Keeps what the model wrote, unless it has secrets in it.
    async fn keep(&self, one: &KindMutants<'_>, text: &str, model: Option<&ModelWriter>) {
        if let (MutantSource::Model(kind), Some(model)) = (&one.source, model) {
            let key = model.key(kind, text, self.seed);
            one.texts.keep(&key, self.cache, self.redactor).await;
        }
    }
}

impl KindMutants<'_> {
    /// Candidates that are tried for this number of mutants.
    fn most(&self, many: usize) -> usize {
        match &self.source {
            MutantSource::Templates(templates) => templates.len() * (many + 4),
            MutantSource::Custom(templates) => templates.len() + 1,
            MutantSource::Model(_) => 3 * many,
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

/// The mutants that a program writes: texts, or lists of turns.
async fn run(
    program: &MutationProgram,
    kind: &str,
    prompt: &Prompt,
    seed: u64,
    many: usize,
) -> Result<Vec<Prompt>, MutationError> {
    let failed = |why: String| MutationError::Program {
        kind: kind.to_owned(),
        why,
    };
    let input = json!({ "type": kind, "prompt": prompt.turns(), "count": many, "seed": seed });
    let nothing: [(&str, &str); 0] = [];
    let ran = program::run(
        &program.command,
        nothing,
        &input.to_string(),
        program.within,
    )
    .await;
    let output = match ran {
        Ok(ended) if ended.too_long => {
            return Err(failed("the program writes more than 8 MiB".to_owned()));
        }
        Ok(ended) if !ended.status.success() => return Err(failed(ended.why())),
        Ok(ended) => ended.stdout_text,
        Err(NotEnded::NotStarted(error)) => {
            return Err(failed(format!(
                "`{}` could not be started: {error}",
                program.command[0]
            )));
        }
        Err(NotEnded::TooSlow) => {
            let within = program.within.as_millis();
            return Err(failed(format!(
                "the program wrote nothing within {within} ms, and was ended"
            )));
        }
        Err(NotEnded::Broken(error)) => return Err(failed(error.to_string())),
    };
    let wrong =
        "the program must print a JSON list of texts, or of lists of turns, and nothing else";
    let mutants: Vec<Value> =
        serde_json::from_str(&output).map_err(|error| failed(format!("{wrong} ({error})")))?;
    let mutants = mutants.into_iter().map(|mutant| {
        let turns = match mutant {
            Value::String(text) => vec![text],
            turns => serde_json::from_value(turns).ok()?,
        };
        let is_valid = turns
            .iter()
            .all(|turn| !turn.trim().is_empty() && turn.len() <= LONGEST);
        Prompt::conversation(turns).filter(|_| is_valid)
    });
    let mutants: Option<Vec<_>> = mutants.collect();
    mutants.ok_or_else(|| failed(wrong.to_owned()))
}
