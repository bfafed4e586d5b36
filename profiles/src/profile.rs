//! A profile: a named set of rules, read from a file or an API document.
//!
//! Everything that makes no sense is reported at once, with file, line, column, what was found, what is allowed, and
//! the nearest valid word.

mod conditions;
mod definitions;
mod ids;
mod modes;
mod rules;
mod triggers;

use std::sync::Arc;

use serde_json::Value;
use squall_documents::{
    At, DocumentError, DocumentReader, Expanded, Fields, NodeKind, Position, SourceText, Tree,
    ValueReader, Variables, parse as parse_tree,
};
use squall_journal::redact::Redactor;

pub(crate) use self::ids::unknown_rule;
use crate::family::Family;
use crate::rule::Rule;

/// A named set of rules, checked and typed, with the profiles it extends not yet looked up.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The name given in the file; absent: who loads it names it (by file name or URL).
    pub name: Option<String>,
    /// What it is for, in a sentence.
    pub description: Option<String>,
    /// Profiles whose rules come after this one's own.
    pub extends: Vec<Extends>,
    /// Its own rules, in order of precedence: network, tool, model, and as written within each.
    pub rules: Vec<Arc<Rule>>,
    /// The file as it was named when it was read.
    pub file: Arc<str>,
    /// The text it was read from, YAML or JSON, variables not expanded.
    pub text: Arc<str>,
    /// What variables stood for anywhere in it.
    expanded: Arc<Expanded>,
    /// What variables stood for in its texts.
    redactor: Redactor,
}

/// A profile that another one extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extends {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub position: Position,
}

/// Longest name of a profile or a rule.
const LONGEST_NAME: usize = 64;

/// The name that stands for no chaos at all; no profile can have it.
pub const NONE: &str = "none";

/// Whether a profile can be called so: `[a-z0-9_-]{1,64}`, and not `none`.
pub fn is_profile_name(name: &str) -> bool {
    name != NONE && is_word(name)
}

/// `[a-z0-9_-]{1,64}`.
fn is_word(name: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// Reads a profile that somebody sent, from YAML or JSON; a variable in it is an error. `file` is named
/// in errors, and its stem stands for the name of a profile that has none.
pub fn parse(file: &str, text: &str) -> Result<Profile, Vec<DocumentError>> {
    parse_file(file, text, Variables::Refused)
}

/// Reads a local profile file: [`parse`], with `${VAR}` and `${VAR:-default}` expanded in every string.
pub fn parse_file(
    file: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<Profile, Vec<DocumentError>> {
    read_text(file, text, variables, read)
}

/// Reads inline chaos: what a profile has under `chaos:`, alone. `name` stands for the profile's
/// name in verdicts.
pub fn parse_chaos(file: &str, name: &str, text: &str) -> Result<Profile, Vec<DocumentError>> {
    parse_chaos_with(file, name, text, Variables::Refused)
}

/// [`parse_chaos`], with variables expanded in every string; what they stand for is secret.
pub fn parse_chaos_with(
    file: &str,
    name: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<Profile, Vec<DocumentError>> {
    read_text(file, text, variables, |value| {
        value.fields("a map of families of rules", |fields| {
            Some(read_part(fields, name, false))
        })
    })
}

fn read_text(
    file: &str,
    text: &str,
    variables: Variables<'_>,
    read: impl FnOnce(&mut ValueReader<'_, '_>) -> Option<Profile>,
) -> Result<Profile, Vec<DocumentError>> {
    let mut tree = parse_tree(file, text).map_err(|error| vec![error])?;
    let mut reader = DocumentReader::new(SourceText::new(file, text));
    reader.expand(&mut tree, variables);
    let mut profile = reader.read(&tree, read);
    if let Some(profile) = &mut profile {
        profile.text = text.into();
        profile.expands(&reader, &tree);
    }
    reader.finish(profile).map(|(profile, _)| profile)
}

pub(crate) fn read(value: &mut ValueReader<'_, '_>) -> Option<Profile> {
    let file = value.reader.source().place(value.position()).0.clone();
    value.fields("a map of fields", |fields| {
        let about =
            "`[a-z0-9_-]`, at most 64 characters; default: the file's name without extension.";
        let name = fields.parsed("name", about, name);
        let owner = name.as_deref().unwrap_or(stem(&file));
        let mut profile = read_beside(fields, owner);
        profile.name = name;
        Some(profile)
    })
}

fn name(name: &str) -> Result<String, String> {
    if name == NONE {
        return Err(
            "`name: none`: `none` stands for no chaos at all; choose another name".to_owned(),
        );
    }
    if is_word(name) {
        return Ok(name.to_owned());
    }
    Err(format!(
        "`name: {name}`: allowed are 1 to {LONGEST_NAME} of a-z, 0-9, `_` and `-`"
    ))
}

/// What a profile has beside its name: the families stand under `chaos`, or beside it.
fn read_beside(fields: &mut Fields<'_, '_>, owner: &str) -> Profile {
    let mut profile = Profile::begun(fields, owner);
    profile.description = description(fields);
    profile.extends = read_extends(fields);
    let is_whole = profile.extends.is_empty();
    let within = fields.field("chaos", "The rules, by family.", |value| {
        value.named("Chaos", |value| {
            value.fields("a map of families of rules", |fields| {
                Some(rules::read(fields, owner, 0, is_whole))
            })
        })
    });
    profile.rules = rules::read(fields, owner, 0, is_whole);
    if let Some(rules) = within {
        // One of both was surely forgotten.
        for family in Family::ALL.map(Family::as_str) {
            if fields.has(family) {
                fields.error(
                    family,
                    format!("`{family}` stands beside `chaos`; move it in"),
                );
            }
        }
        profile.rules = rules;
    }
    profile
}

fn description(fields: &mut Fields<'_, '_>) -> Option<String> {
    let description = fields.text("description", "What it is for, in a sentence.");
    description.map(|text| text.value)
}

/// Reads a profile that is a part of another document, the map that is read: its families of rules, and with
/// `may_extend` what it extends and a description. [`Profile::is_written_in`] gives it its text.
pub fn read_part(fields: &mut Fields<'_, '_>, name: &str, may_extend: bool) -> Profile {
    let mut profile = Profile::begun(fields, name);
    if may_extend {
        profile.description = description(fields);
        profile.extends = read_extends(fields);
    }
    let base = fields.reader.pointer().len();
    profile.rules = rules::read(fields, name, base, profile.extends.is_empty());
    profile
}

impl Profile {
    fn begun(fields: &Fields<'_, '_>, name: &str) -> Self {
        let (file, _) = fields.reader.source().place(fields.position);
        Self {
            name: Some(name.to_owned()),
            description: None,
            extends: Vec::new(),
            rules: Vec::new(),
            file: file.clone(),
            text: "".into(),
            expanded: Arc::default(),
            redactor: Redactor::default(),
        }
    }

    /// Takes what the variables below `node` stand for out of whatever is reported.
    fn expands(&mut self, reader: &DocumentReader, node: &At<Tree>) {
        let (all, secret) = reader.expanded_in(node);
        self.expanded = Arc::new(all);
        self.redactor = Redactor::with_values(secret.values().map(str::to_owned));
        for rule in &mut self.rules {
            if let Some(rule) = Arc::get_mut(rule) {
                rule.redactor = self.redactor.clone();
            }
        }
    }

    /// The same, of a part of another document: what is written there is its text.
    pub fn is_written_in(&mut self, reader: &DocumentReader, part: &At<Tree>) {
        self.text = reader.as_written(part).to_string().into();
        self.expands(reader, part);
    }

    /// Its text and what the variables in it stood for: with both alike, two profiles are one.
    pub fn version(&self) -> (&Arc<str>, &Arc<Expanded>) {
        (&self.text, &self.expanded)
    }

    /// The description without what variables stood for; empty when it has none.
    pub fn told_description(&self) -> String {
        let mut description = self.description.clone().unwrap_or_default();
        self.redactor.text(&mut description, usize::MAX);
        description
    }

    /// The profile as the JSON document it was written as.
    pub fn document(&self) -> Value {
        // It was read before.
        parse_tree(&self.file, &self.text).map_or(Value::Null, |tree| tree.value.to_json())
    }
}

fn read_extends(fields: &mut Fields<'_, '_>) -> Vec<Extends> {
    let about = "Profiles whose rules come after its own: one name or a list.";
    let extends = fields.field("extends", about, |value| {
        value
            .either()
            .when(NodeKind::Scalar, |value| Some(vec![extended(value)?]))
            .when(NodeKind::List, |value| {
                value.list("a list of names", extended)
            })
            .or("a name or a list of names")
    });
    extends.unwrap_or_default()
}

fn extended(value: &mut ValueReader<'_, '_>) -> Option<Extends> {
    let name = value.parsed(|name| {
        is_profile_name(name)
            .then(|| name.to_owned())
            .ok_or_else(|| format!("`extends: {name}` is no profile's name"))
    })?;
    let (_, position) = value.reader.source().place(value.position());
    Some(Extends { name, position })
}

/// The name a file gives its profile: its own, without directories and extension.
pub(crate) fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests;
