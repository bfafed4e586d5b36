//! `mutations:`: how golden prompts are changed before the agent is invoked.

use std::collections::BTreeMap;
use std::time::Duration;

use squall_documents::{Fields, NodeKind, ValueReader};

use super::templates::{MutationTemplate, family};
use super::{CUSTOM, MutationType, TYPES};
use crate::prompt::{self, Prompt};

/// The settings of mutations.
#[derive(Debug, Clone, PartialEq)]
pub struct Mutations {
    /// Mutants of each golden prompt, 1 to 50. Default 10.
    pub count: usize,
    /// The types, in order. Default: the first seven.
    pub types: Vec<&'static str>,
    /// The weights that differ from the defaults, by type.
    pub weights: BTreeMap<&'static str, f64>,
    /// The suite's own texts, by name, with `{prompt}` in them.
    pub custom_templates: Vec<(String, String)>,
    /// The suite's own templates of other types.
    pub templates: Vec<MutationTemplate>,
    /// The suite's own types: programs, by name.
    pub commands: Vec<(String, MutationProgram)>,
    /// Mutants that were written before.
    pub corpus: Vec<CorpusMutant>,
    /// How failing mutants are searched for; `None`: they are not.
    pub search: Option<SearchSettings>,
    /// JSON pointers to names of files that are not read.
    pub files: Vec<String>,
}

/// How failing mutants are searched for.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchSettings {
    /// Generations after the plain mutants, 1 to 100. Default 5.
    pub generations: usize,
    /// New mutants of each golden prompt in a generation, 1 to 100. Default 10.
    pub population: usize,
    /// Mutants of each golden prompt that the next generation is made from, 1 to 100. Default 4.
    pub keep: usize,
    /// Most invocations of all generations, 1 to 5000. Default 500.
    pub invocations: usize,
    /// The cost in US dollars after which no generation begins.
    pub dollars: Option<f64>,
}

/// A program that writes mutants.
#[derive(Debug, Clone, PartialEq)]
pub struct MutationProgram {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its weight in the score. Default 1.
    pub weight: f64,
    /// Its time-out. Default 10 s.
    pub within: Duration,
}

/// A mutant of a corpus.
#[derive(Debug, Clone, PartialEq)]
pub struct CorpusMutant {
    /// Its type.
    pub kind: String,
    /// The golden prompt.
    pub original: Prompt,
    /// What the agent is asked.
    pub mutant: Prompt,
}

impl Mutations {
    /// The weight of a type in the score.
    pub fn weight(&self, kind: &str) -> f64 {
        let program = self.commands.iter().find(|(name, _)| name == kind);
        let default = MutationType::named(kind);
        let own = self.weights.get(kind).copied();
        own.or_else(|| program.map(|(_, program)| program.weight))
            .or_else(|| default.map(|known| known.weight))
            .unwrap_or(1.0)
    }
}

/// Types by default: the first seven.
const DEFAULTS: usize = 7;

pub(crate) fn read(fields: &mut Fields<'_, '_>) -> Mutations {
    let names: Vec<_> = TYPES.iter().map(|known| (known.name, known.name)).collect();
    let about = "How many per golden prompt; default 10.";
    let count = fields.whole("count", about, 1..=50, " per golden prompt");
    let types = fields.field("types", "Which types.", |value| {
        let empty = "the list is empty; leave it out for the default types";
        value.some("a list of mutation types", empty, |value| {
            value.word("mutation type", &names)
        })
    });
    let weights = fields.field("weights", "Weights of types in the score.", |value| {
        let what = "a map from mutation type to weight";
        value.pairs_of(what, "mutation type", &names, |name, value| {
            Some((name, value.real(0.0..=1000.0, "")?))
        })
    });
    let about = "Texts of the suite's own, with `{prompt}` in them.";
    let custom = fields.field("custom_templates", about, custom_templates);
    let mut files = Vec::new();
    let (also_custom, templates) = templates(fields, &mut files);
    let commands = commands(fields);
    let about = "Mutants that `squall mutate --export` wrote: a file of JSON Lines, or a list.";
    let corpus = fields.field("corpus", about, |value| {
        value
            .either()
            .when(NodeKind::Scalar, |value| {
                value.words()?;
                files.push(value.reader.pointer().to_owned());
                Some(Vec::new())
            })
            .when(NodeKind::List, |value| {
                value.list("a list of mutants", corpus_mutant)
            })
            .or("a file of JSON Lines")
    });
    let about = "How failing mutants are searched for.";
    let what = "a map with `generations`, `population` and `keep`, or `{}` for the defaults";
    let search = fields.block("search", about, what, |fields| Some(search(fields)));
    let is_written = types.is_some();
    let mut types =
        types.unwrap_or_else(|| names[..DEFAULTS].iter().map(|(name, _)| *name).collect());
    let are_custom = types.contains(&CUSTOM);
    let has_custom = fields.has("custom_templates") || !also_custom.is_empty();
    if are_custom && !has_custom {
        let message = "type `custom` needs `custom_templates`, a map from name to text with \
                       `{prompt}` in it";
        fields.error("types", message);
    } else if has_custom && !are_custom {
        types.push(CUSTOM);
        if is_written {
            let message = "`custom_templates` are used although `types` does not list `custom`";
            fields.note("custom_templates", message);
        }
    }
    let mut known = Vec::new();
    types.retain(|name| {
        !known.contains(name) && {
            known.push(*name);
            true
        }
    });
    let custom_templates = custom.unwrap_or_default().into_iter().chain(also_custom);
    Mutations {
        count: count
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(10),
        types,
        weights: weights.unwrap_or_default().into_iter().collect(),
        custom_templates: custom_templates.collect(),
        templates,
        commands,
        corpus: corpus.unwrap_or_default(),
        search,
        files,
    }
}

fn custom_templates(value: &mut ValueReader<'_, '_>) -> Option<Vec<(String, String)>> {
    let templates = value.pairs("a map from name to text with `{prompt}` in it", |_, value| {
        let text = value.words()?.value;
        if !text.contains("{prompt}") {
            let message = "the template has no `{prompt}` in it; the agent would be asked the same \
                           whatever the golden prompt";
            value.error(message);
        }
        Some(text)
    })?;
    let templates = templates.into_iter();
    Some(
        templates
            .map(|(name, text)| (name.value.clone(), text))
            .collect(),
    )
}

/// `templates`: folders and files of templates, or, as in flakestorm, the same as `custom_templates`.
fn templates(
    fields: &mut Fields<'_, '_>,
    files: &mut Vec<String>,
) -> (Vec<(String, String)>, Vec<MutationTemplate>) {
    let about = "Folders and files with more templates; as a map, the same as `custom_templates`.";
    let mut families = Vec::new();
    let custom = fields.field("templates", about, |value| {
        value
            .either()
            .when(NodeKind::Map, custom_templates)
            .when(NodeKind::List, |value| {
                value.list("a list of folders and files", |value| {
                    let mut either = value.either();
                    either = either.when(NodeKind::Scalar, |value| {
                        value.words()?;
                        files.push(value.reader.pointer().to_owned());
                        Some(Vec::new())
                    });
                    either = either.when(NodeKind::Map, family);
                    families.extend(either.or("a folder, a file or its content")?);
                    Some(())
                })?;
                Some(Vec::new())
            })
            .or("a list of folders and files, or a map from name to text")
    });
    (custom.unwrap_or_default(), families)
}

fn commands(fields: &mut Fields<'_, '_>) -> Vec<(String, MutationProgram)> {
    let about = "Types of the suite's own: programs that write mutants, by name.";
    let commands = fields.field("commands", about, |value| {
        value.pairs("a map from name to a map with `command`", |name, value| {
            if MutationType::named(&name.value).is_some() {
                let message = format!("`{}` is a type of Squall; choose another name", name.value);
                value.reader.error(name.position, message);
            }
            value.fields("a map with `command`", program)
        })
    });
    let commands = commands.unwrap_or_default().into_iter();
    commands
        .map(|(name, program)| (name.value.clone(), program))
        .collect()
}

fn program(fields: &mut Fields<'_, '_>) -> Option<MutationProgram> {
    let what = "the program and its arguments, like `[python, mutate.py]`";
    let empty = format!("the list is empty; write {what}");
    let command = fields.field("command", "The program and its arguments.", |value| {
        value.some(what, &empty, |value| value.text())
    });
    let weight = fields.real(
        "weight",
        "Weight in the score; default 1.",
        0.0..=1000.0,
        "",
    );
    let about = "How long it may take, milliseconds; default 10000.";
    let timeout = fields.whole("timeout_ms", about, 100..=300_000, " milliseconds");
    fields.require("command", what);
    Some(MutationProgram {
        command: command?.into_iter().map(|word| word.value).collect(),
        weight: weight.unwrap_or(1.0),
        within: Duration::from_millis(timeout.unwrap_or(10_000)),
    })
}

fn search(fields: &mut Fields<'_, '_>) -> SearchSettings {
    let mut whole = |name, about, most, default| {
        let found = fields.whole(name, about, 1..=most, "");
        let found = found.and_then(|found| usize::try_from(found).ok());
        found.unwrap_or(default)
    };
    let about = "Generations; default 5.";
    let generations = whole("generations", about, 100, 5);
    let about = "New mutants of each golden prompt in a generation; default 10.";
    let population = whole("population", about, 100, 10);
    let about = "How many of them the next generation is made from; default 4.";
    let keep = whole("keep", about, 100, 4);
    let about = "Most invocations of all generations; default 500.";
    let invocations = whole("invocations", about, 5000, 500);
    let about = "The cost after which no generation begins.";
    let dollars = fields.real("dollars", about, 0.0..=1e6, " US dollars");
    SearchSettings {
        generations,
        population,
        keep,
        invocations,
        dollars,
    }
}

fn corpus_mutant(value: &mut ValueReader<'_, '_>) -> Option<CorpusMutant> {
    value.fields("a mutant with `type`, `original` and `mutant`", |fields| {
        let kind = fields.words("type", "Its type.");
        let original = fields.field("original", "The golden prompt.", prompt::one);
        let mutant = fields.field("mutant", "What the agent is asked.", prompt::one);
        for name in ["type", "original", "mutant"] {
            fields.require(name, "it as `squall mutate --export` does");
        }
        Some(CorpusMutant {
            kind: kind?.value,
            original: original?,
            mutant: mutant?,
        })
    })
}
