//! A profile: a named set of rules, read from a file or an API document.
//!
//! Reading has two steps. First the text becomes flat raw structs that mirror it and keep every
//! position; then those become typed rules, and everything they say that makes no sense is reported
//! at once, with file, line, column, what was found, what is allowed, and the nearest valid word.

mod attacks;
pub(crate) mod conditions;
mod expansion;
mod ids;
pub(crate) mod located;
mod misshapen;
pub(crate) mod modes;
mod part;
pub(crate) mod places;
pub(crate) mod raw;
pub(crate) mod reader;
mod rules;
pub(crate) mod scalar;
pub(crate) mod shape;
mod triggers;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::expansion::Strings;
pub(crate) use self::ids::unknown_rule;
use self::located::{At, OneOrMany, Tree};
use self::misshapen::Shape;
use self::part::Part;
use self::places::Places;
use self::raw::{RawChaos, RawProfile, RawRule};
use self::reader::Reader;
use self::rules::Written;
use self::shape::Read;
use crate::error::{self, Position, ProfileError};
use crate::limits::Limits;
use crate::rule::{Family, Rule};
use crate::variables::{Expanded, Variables};
use squall_journal::redact::Redactor;

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
pub fn parse(file: &str, text: &str) -> Result<Profile, Vec<ProfileError>> {
    parse_file(file, text, Variables::Refused)
}

/// Reads a local profile file: [`parse`], with `${VAR}` and `${VAR:-default}` expanded in every string.
pub fn parse_file(
    file: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<Profile, Vec<ProfileError>> {
    let source = Source {
        file,
        text,
        variables,
        places: &Places::default(),
        is_part: false,
        limits: &Limits::default(),
    };
    read_all(source, &profile_of)
}

/// Reads a profile that is a part of another document, of which `tree` has the places, and `limits` what
/// is left of them: [`parse_file`].
pub fn parse_tree(
    file: &str,
    tree: &At<Tree>,
    variables: Variables<'_>,
    limits: &Limits,
) -> Result<Profile, Vec<ProfileError>> {
    let text = tree.value.to_line();
    let source = Source {
        file,
        text: &text,
        variables,
        places: &places_of(&text, tree),
        is_part: false,
        limits,
    };
    read_all(source, &profile_of)
}

fn profile_of(read: Read<RawProfile>, source: Source<'_>) -> Result<Profile, Vec<ProfileError>> {
    let Read {
        raw,
        redactor,
        expanded,
    } = read;
    let Source { file, text, .. } = source;
    let mut reader = Reader::new(file, redactor.clone(), source.places.clone(), source.limits);
    let name = raw.name.as_ref().map(|at| read_name(at, &mut reader));
    let extends = raw.extends.as_ref().map(|at| &at.value);
    let extends = extends.map_or_else(Vec::new, |names| read_extends(names, &mut reader));
    let owner = name.clone().unwrap_or_else(|| stem(file).to_owned());
    let beside = RawChaos {
        network_faults: raw.network_faults,
        tool_faults: raw.tool_faults,
        llm_faults: raw.llm_faults,
        context_attacks: raw.context_attacks,
    };
    let rules = if let Some(chaos) = &raw.chaos {
        refuse_beside_chaos(&beside, &mut reader);
        reader.below("chaos", |reader| read_chaos(&owner, &chaos.value, reader))
    } else {
        read_chaos(&owner, &beside, &mut reader)
    };
    if extends.is_empty() {
        ids::check_references(&rules, &mut reader);
    }
    finish(
        reader,
        Profile {
            name,
            description: raw.description.map(|at| at.value),
            extends,
            rules,
            file: file.into(),
            text: text.into(),
            expanded: Arc::new(expanded),
            redactor,
        },
    )
}

/// Reads inline chaos: what a profile has under `chaos:`, alone. `name` stands for the profile's
/// name in verdicts.
pub fn parse_chaos(file: &str, name: &str, text: &str) -> Result<Profile, Vec<ProfileError>> {
    parse_chaos_with(file, name, text, Variables::Refused)
}

/// [`parse_chaos`], with variables expanded in every string; what they stand for is secret.
pub fn parse_chaos_with(
    file: &str,
    name: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<Profile, Vec<ProfileError>> {
    let source = Source {
        file,
        text,
        variables,
        places: &Places::default(),
        is_part: false,
        limits: &Limits::default(),
    };
    read_all(source, &|read, source| chaos_of(name, read, source))
}

fn chaos_of(
    name: &str,
    read: Read<RawChaos>,
    source: Source<'_>,
) -> Result<Profile, Vec<ProfileError>> {
    let Read {
        raw,
        redactor,
        expanded,
    } = read;
    let Source { file, text, .. } = source;
    let mut reader = Reader::new(file, redactor.clone(), source.places.clone(), source.limits);
    let rules = read_chaos(name, &raw, &mut reader);
    ids::check_references(&rules, &mut reader);
    finish(
        reader,
        Profile {
            name: Some(name.to_owned()),
            description: None,
            extends: Vec::new(),
            rules,
            file: file.into(),
            text: text.into(),
            expanded: Arc::new(expanded),
            redactor,
        },
    )
}

/// A text that is read.
#[derive(Clone, Copy)]
struct Source<'s> {
    file: &'s str,
    text: &'s str,
    variables: Variables<'s>,
    /// Where what it says stands.
    places: &'s Places,
    /// Whether it is what is left of one that was not whole.
    is_part: bool,
    /// What it may make of itself.
    limits: &'s Limits,
}

/// What makes a profile of a text that was read.
type Build<'b, T> = &'b dyn Fn(Read<T>, Source<'_>) -> Result<Profile, Vec<ProfileError>>;

/// Reads a text, and if parts of it cannot be read, what is left without them: so that all is told that is
/// wrong with it.
fn read_all<T: DeserializeOwned + Strings + Shape>(
    source: Source<'_>,
    build: Build<'_, T>,
) -> Result<Profile, Vec<ProfileError>> {
    let unread = match shape::read::<T>(source.file, source.text, source.variables) {
        Ok(read) => return build(read, source),
        Err(unread) => unread,
    };
    let part = unread
        .tree
        .as_ref()
        .filter(|_| !error::is_full(&unread.errors));
    let part = part.and_then(|tree| Part::of(tree, &unread.errors));
    let more = part.map_or_else(Vec::new, |part| {
        let text = part.tree.value.to_line();
        let source = Source {
            text: &text,
            places: &places_of(&text, &part.tree).and_then(source.places),
            is_part: true,
            // What was read of it before has gone.
            limits: &Limits::default(),
            ..source
        };
        part.led_back(read_all(source, build).err().unwrap_or_default())
    });
    let mut errors = match unread.tree {
        // What is left over of a document is told of, and not the text that was made of it.
        None if source.is_part => Vec::new(),
        Some(_) | None => unread.errors,
    };
    for error in &mut errors {
        error.position = source.places.of(error.position);
    }
    for error in more {
        error::note(&mut errors, error);
    }
    errors.sort_by_key(|error| error.position);
    Err(errors)
}

/// From places in a text to those in the tree that it was made from.
fn places_of(text: &str, tree: &At<Tree>) -> Places {
    // A text that cannot be read has no places to tell of.
    let read = shape::from_str::<At<Tree>>(text);
    read.map_or_else(|_| Places::default(), |read| Places::between(&read, tree))
}

impl Profile {
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
        // It was read before; a document that JSON cannot hold (a map's key that is a list) has no
        // place for one in the raw structs either.
        shape::from_str(&self.text).unwrap_or(Value::Null)
    }
}

fn finish(reader: Reader, profile: Profile) -> Result<Profile, Vec<ProfileError>> {
    let mut errors = reader.errors;
    if errors.is_empty() {
        return Ok(profile);
    }
    errors.sort_by_key(|error| error.position);
    Err(errors)
}

/// Families stand under `chaos` or beside it: with both, one of them was surely forgotten.
fn refuse_beside_chaos(beside: &RawChaos, reader: &mut Reader) {
    let first = |rules: &Option<Vec<At<Box<RawRule>>>>| Some(rules.as_ref()?.first()?.position);
    let written = [
        ("network_faults", first(&beside.network_faults)),
        ("tool_faults", first(&beside.tool_faults)),
        ("llm_faults", first(&beside.llm_faults)),
        (
            "context_attacks",
            beside.context_attacks.as_ref().map(|at| at.position),
        ),
    ];
    for (family, position) in written {
        if let Some(position) = position {
            reader.error(
                family,
                position,
                format!("`{family}` stands beside `chaos`; move it in"),
            );
        }
    }
}

fn read_name(at: &At<String>, reader: &mut Reader) -> String {
    if at.value == NONE {
        let message = "`name: none`: `none` stands for no chaos at all; choose another name";
        reader.error("name", at.position, message);
    } else if !is_word(&at.value) {
        let message = format!(
            "`name: {}`: allowed are 1 to {LONGEST_NAME} of a-z, 0-9, `_` and `-`",
            at.value
        );
        reader.error("name", at.position, message);
    }
    at.value.clone()
}

fn read_extends(names: &OneOrMany, reader: &mut Reader) -> Vec<Extends> {
    let mut extends: Vec<Extends> = Vec::new();
    for at in &names.0 {
        if !is_profile_name(&at.value) {
            let message = format!("`extends: {}` is no profile's name", at.value);
            reader.error("extends", at.position, message);
        }
        extends.push(Extends {
            name: at.value.clone(),
            position: reader.place(at.position),
        });
    }
    extends
}

/// The name a file gives its profile: its own, without directories and extension.
pub(crate) fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn read_chaos(owner: &str, raw: &RawChaos, reader: &mut Reader) -> Vec<Arc<Rule>> {
    let families = [
        (Family::Network, raw.network_faults.as_deref()),
        (Family::Tool, raw.tool_faults.as_deref()),
        (Family::Llm, raw.llm_faults.as_deref()),
    ];
    let mut written: Vec<_> = families
        .into_iter()
        .flat_map(|(family, rules)| {
            let rules = rules.unwrap_or_default().iter().enumerate();
            rules.map(move |(index, rule)| Written {
                family,
                place: index.to_string(),
                mode: None,
                raw: &rule.value,
                position: rule.position,
            })
        })
        .collect();
    let nothing = RawRule::default();
    if let Some(attacks) = &raw.context_attacks {
        written.extend(attacks::switched_on(attacks, &nothing, reader));
    }
    rules::read(owner, &written, reader)
}

#[cfg(test)]
mod tests;
