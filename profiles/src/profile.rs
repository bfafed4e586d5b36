//! A profile: a named set of rules, read from a file or an API document.
//!
//! All errors of a document are reported together. Each has file, line, column, the value found,
//! the allowed values and the nearest valid word.

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

/// A named set of rules, checked and typed. The profiles it extends are not resolved yet.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The name given in the file; if absent, the loader names it by file name or URL.
    pub name: Option<String>,
    /// Its purpose, in one sentence.
    pub description: Option<String>,
    /// Profiles whose rules follow this profile's own rules.
    pub extends: Vec<Extends>,
    /// Its own rules, in order of precedence: network, tool, model; in file order within each.
    pub rules: Vec<Arc<Rule>>,
    /// The file name given to the parser.
    pub file: Arc<str>,
    /// The source text, YAML or JSON, with variables not expanded.
    pub text: Arc<str>,
    /// Values of all expanded variables.
    expanded: Arc<Expanded>,
    /// Removes variable values from reported texts.
    redactor: Redactor,
}

/// A profile that another one extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extends {
    /// Its name.
    pub name: String,
    /// Position of the name.
    pub position: Position,
}

/// Longest name of a profile or a rule.
const LONGEST_NAME: usize = 64;

/// The reserved name for no chaos; no profile can have it.
pub const NONE: &str = "none";

/// Whether `name` is a valid profile name: `[a-z0-9_-]{1,64}`, except `none`.
pub fn is_profile_name(name: &str) -> bool {
    name != NONE && is_word(name)
}

/// `[a-z0-9_-]{1,64}`.
fn is_word(name: &str) -> bool {
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// Parses an untrusted profile from YAML or JSON; a variable in it is an error. Errors name `file`,
/// and its stem is the default profile name.
pub fn parse(file: &str, text: &str) -> Result<Profile, Vec<DocumentError>> {
    parse_file(file, text, Variables::Refused)
}

/// Parses a local profile file like [`parse`], and expands `${VAR}` and `${VAR:-default}` in every
/// string.
pub fn parse_file(
    file: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<Profile, Vec<DocumentError>> {
    read_text(file, text, variables, read)
}

/// Parses inline chaos: only the content of a profile's `chaos:`. `name` is the profile's name in
/// verdicts.
pub fn parse_chaos(file: &str, name: &str, text: &str) -> Result<Profile, Vec<DocumentError>> {
    parse_chaos_with(file, name, text, Variables::Refused)
}

/// [`parse_chaos`], with variables expanded in every string; their values are secret.
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
        if fields.has("agent") {
            let message = "this is a suite; check it with `squall contract validate -c FILE`";
            fields.error("agent", message);
            fields.leave_others();
        }
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
        "`name: {name}`: expected 1 to {LONGEST_NAME} characters of a-z, 0-9, `_` and `-`"
    ))
}

/// The fields of a profile except its name. The families are under `chaos` or at the top level.
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
        // Having both is probably a mistake.
        for family in Family::ALL.map(Family::as_str) {
            if fields.has(family) {
                fields.error(
                    family,
                    format!("`{family}` belongs inside `chaos`; move it there"),
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

/// Reads a profile inside another document, from the current map: its families of rules. With
/// `may_extend`, also `extends` and the description. [`Profile::is_written_in`] sets its text.
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

    /// Removes the values of variables below `node` from everything that is reported.
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

    /// Sets text and variables of a profile inside another document.
    pub fn is_written_in(&mut self, reader: &DocumentReader, part: &At<Tree>) {
        self.text = reader.as_written(part).to_string().into();
        self.expands(reader, part);
    }

    /// Its text and the values of its variables; profiles with equal versions are the same.
    pub fn version(&self) -> (&Arc<str>, &Arc<Expanded>) {
        (&self.text, &self.expanded)
    }

    /// The description without variable values; empty if there is none.
    pub fn redacted_description(&self) -> String {
        let mut description = self.description.clone().unwrap_or_default();
        self.redactor.text(&mut description, usize::MAX);
        description
    }

    /// The profile's source as a JSON document.
    pub fn document(&self) -> Value {
        // The text was parsed successfully before.
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

/// The default profile name of a file: the file name without directories and extension.
pub(crate) fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests;
