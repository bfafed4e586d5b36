//! Templates of mutations: data files, those of Squall and those of a suite.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use squall_documents::{DocumentReader, Fields, SourceText, ValueReader, parse};
use squall_profiles::dice::Dice;

use super::text::{TemplateFilling, unknown_transformation};
use super::{MutationType, TYPES};
use crate::agents::change::RequestChange;

/// How one mutant of a type is made.
#[derive(Debug, Clone, PartialEq)]
pub struct MutationTemplate {
    /// Its name in the lineage of mutants.
    pub(crate) id: String,
    /// Its type.
    pub(crate) kind: &'static MutationType,
    /// Who published the technique.
    pub(crate) source: String,
    form: TemplateForm,
}

#[derive(Debug, Clone, PartialEq)]
enum TemplateForm {
    Turns(Vec<String>),
    Request(Value),
}

/// What a template makes of a prompt's part.
pub(super) enum Filled {
    Turns(Vec<String>),
    Request(RequestChange),
}

impl MutationTemplate {
    /// `None`: it has no effect on this text.
    pub(super) fn fill(&self, source: &str, dice: &mut Dice) -> Option<Filled> {
        let filling = TemplateFilling::draw(source, dice);
        match &self.form {
            TemplateForm::Turns(turns) => {
                let turns = turns.iter().map(|turn| filling.text(turn, dice));
                Some(Filled::Turns(turns.collect::<Option<_>>()?))
            }
            TemplateForm::Request(request) => {
                let request = filling.document(request, dice)?;
                serde_json::from_value(request).ok().map(Filled::Request)
            }
        }
    }
}

/// Files of the library, each with its text.
macro_rules! files {
    ($($name:literal),*) => {
        [$(($name, include_str!(concat!("../../mutations/", $name)))),*]
    };
}

const FILES: [(&str, &str); 8] = files!(
    "wording.yaml",
    "injection.yaml",
    "roleplay.yaml",
    "encodings.yaml",
    "obfuscation.yaml",
    "languages.yaml",
    "structure.yaml",
    "wire.yaml"
);

/// The templates of Squall. A test reads all of them.
pub(super) static LIBRARY: LazyLock<Vec<MutationTemplate>> = LazyLock::new(|| {
    let families = FILES.iter().flat_map(|(file, text)| {
        let tree = parse(file, text).expect("a valid file");
        let mut reader = DocumentReader::new(SourceText::new(file, text));
        let family = reader.read(&tree, family);
        reader.finish(family).expect("valid templates").0
    });
    families.collect()
});

/// A file of templates: `source` and `templates`.
pub(super) fn family(value: &mut ValueReader<'_, '_>) -> Option<Vec<MutationTemplate>> {
    value.named("MutationTemplates", |value| {
        let what = "a map with `source` and `templates`";
        value.fields(what, |fields| {
            let about = "Who published these techniques: a catalogue, a paper, a regulation.";
            let source = fields.text("source", about);
            fields.require("templates", "a list of templates");
            let templates = fields.field("templates", "The templates.", |value| {
                let empty = "the list is empty; write a template";
                value.some("a list of templates", empty, |value| {
                    value.fields("a template with `type` and `text`", template)
                })
            });
            let source = source.map(|text| text.value).unwrap_or_default();
            let templates = templates?.into_iter();
            let templates = templates.map(|one| MutationTemplate {
                source: if one.source.is_empty() {
                    source.clone()
                } else {
                    one.source
                },
                ..one
            });
            Some(templates.collect())
        })
    })
}

fn template(fields: &mut Fields<'_, '_>) -> Option<MutationTemplate> {
    let id = fields.name("id", "Its name in reports.");
    let source = fields.text("source", "Who published it, if not the file's source.");
    let names: Vec<_> = TYPES.iter().map(|one| (one.name, one)).collect();
    let kind = fields.word("type", "The type of mutation.", "mutation type", &names);
    fields.require("type", "a mutation type, like `prompt_injection`");
    let about = "The mutant, with `{prompt}` and `{goal}` in it.";
    let text = fields.field("text", about, filled_text);
    let turns = fields.field("turns", "The turns of the mutant.", |value| {
        let empty = "the list is empty; write what is said";
        value.some("a list of texts", empty, filled_text)
    });
    let about = "Of wire-level types: the change of the request.";
    let request = fields.field("request", about, request);
    fields.add_to_schema(|| {
        let either = ["text", "turns", "request"].map(|name| json!({ "required": [name] }));
        Map::from_iter([("oneOf".to_owned(), json!(either))])
    });
    if fields.reader.is_describing() {
        return None;
    }
    let written = ["text", "turns", "request"].map(|name| usize::from(fields.has(name)));
    if written.iter().sum::<usize>() != 1 {
        let message = "a template has one of `text`, `turns` and `request`";
        fields.reader.error(fields.position, message);
    }
    let kind = kind?;
    if kind.is_wire != fields.has("request") || kind.name == "custom" {
        let message = if kind.is_wire {
            format!("type `{}` changes the request; write `request`", kind.name)
        } else if kind.name == "custom" {
            "templates of type `custom` are the suite's `custom_templates`".to_owned()
        } else {
            format!(
                "type `{}` changes the prompt; write `text` or `turns`",
                kind.name
            )
        };
        fields.error("type", message);
    }
    let form = match (text, turns, request) {
        (Some(text), _, _) => TemplateForm::Turns(vec![text]),
        (None, Some(turns), _) => TemplateForm::Turns(turns),
        (None, None, request) => TemplateForm::Request(request?),
    };
    Some(MutationTemplate {
        id: id.map_or_else(|| kind.name.to_owned(), |id| id.value),
        kind,
        source: source.map(|text| text.value).unwrap_or_default(),
        form,
    })
}

const INVALID_PLACEHOLDER: &str = "a placeholder is invalid; write a number as `{number:1-9}`, a length as `{filler:100}`, and transformations \
     as `{prompt:base64}`";

fn filled_text(value: &mut ValueReader<'_, '_>) -> Option<String> {
    let text = value.words()?.value;
    if let Some(how) = unknown_transformation(&text) {
        let all = super::text::TRANSFORMS.map(|(name, _)| name);
        let near = squall_documents::did_you_mean(how, all);
        value.error(format!("unknown transformation `{how}`{near}"));
    } else {
        let mut dice = super::dice(0, "text", "", 0);
        if TemplateFilling::draw("", &mut dice)
            .text(&text, &mut dice)
            .is_none()
        {
            value.error(INVALID_PLACEHOLDER);
        }
    }
    Some(text)
}

/// A change whose texts have placeholders. It is filled once, to find out whether it is a change.
fn request(value: &mut ValueReader<'_, '_>) -> Option<Value> {
    let schema = || json!({ "type": "object" });
    let document = value.with_schema(schema, |value| Some(value.any()?.value.to_json()))?;
    let mut dice = super::dice(0, "request", "", 0);
    let filled = TemplateFilling::draw("", &mut dice).document(&document, &mut dice);
    let read = filled.map(serde_json::from_value::<RequestChange>);
    match read {
        Some(Ok(change)) => {
            if let Err(why) = change.check() {
                value.error(format!("this is no change of a request: {why}"));
            }
            Some(document)
        }
        Some(Err(error)) => {
            value.error(format!("this is no change of a request: {error}"));
            None
        }
        None => {
            value.error(INVALID_PLACEHOLDER);
            None
        }
    }
}
