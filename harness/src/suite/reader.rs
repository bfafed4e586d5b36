//! From a tree to typed values, gathering every error on the way: of suites, and of the daemon's configuration.
//!
//! A map is read field by field; the names that were asked for are the ones it may have, so what it
//! has beside them is an error with the nearest of them. Values that come from variables are never
//! repeated in a message: what is shown is the text as it was written.

mod fields;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::Value;
use squall_journal::redact::Redactor;
use squall_profiles::document::{self, At, ScalarKind, Tree};
use squall_profiles::error::{self, Position, ProfileError};
use squall_profiles::glob::Glob;
use squall_profiles::limits::{Limited, Limits};
use squall_profiles::pattern::PatternError;
use squall_profiles::pointer::Pointer;

pub use self::fields::Fields;
use super::variables;
use crate::pattern::Pattern;

/// What is wrong, or only odd, with one suite so far.
#[derive(Debug)]
pub struct Reader<'a> {
    pub(crate) file: &'a str,
    /// The text as it was written.
    text: &'a str,
    pointer: Pointer,
    /// What is wrong so far.
    pub errors: Vec<ProfileError>,
    /// What is allowed and changes nothing, or surely is not meant.
    pub(crate) notes: Vec<ProfileError>,
    /// Where scalars stand that have a variable in them, and what is written there.
    variables: BTreeMap<Position, String>,
    /// What the variables stand for.
    pub(crate) redactor: Redactor,
    /// What the rest of the suite may make of itself.
    pub(crate) limits: Limits,
}

impl<'a> Reader<'a> {
    /// For a document that was read from this text.
    pub fn over(file: &'a str, text: &'a str, tree: &At<Tree>) -> Self {
        Self::new(file, text, variables::places(tree))
    }

    pub(crate) fn new(file: &'a str, text: &'a str, variables: BTreeMap<Position, String>) -> Self {
        Self {
            file,
            text,
            pointer: Pointer::default(),
            errors: Vec::new(),
            notes: Vec::new(),
            variables,
            redactor: Redactor::default(),
            limits: Limits::default(),
        }
    }

    /// Notes an error about what is being read.
    pub fn error(&mut self, position: Position, message: impl Into<String>) {
        if error::is_full(&self.errors) {
            return;
        }
        // Of a variable that is missing nothing more can be said.
        let said = |error: &ProfileError| error.position == position;
        if self.has_variable(position) && self.errors.iter().any(said) {
            return;
        }
        let error = self.told(position, message);
        error::note(&mut self.errors, error);
    }

    /// Counts one more among what the document may have.
    pub(crate) fn take(&mut self, what: Limited, node: &At<Tree>) -> Option<()> {
        let taken = self.limits.take(what, 1);
        taken
            .map_err(|over| self.error(node.position, over.to_string()))
            .ok()
    }

    /// Notes what is no error.
    pub(crate) fn note(&mut self, position: Position, message: impl Into<String>) {
        let note = self.told(position, message);
        error::note(&mut self.notes, note);
    }

    fn told(&self, position: Position, message: impl Into<String>) -> ProfileError {
        ProfileError {
            file: self.file.to_owned(),
            position,
            pointer: self.pointer.to(""),
            message: message.into(),
        }
    }

    /// Reads what stands below a name or a number.
    pub(crate) fn below<T>(&mut self, name: impl Display, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pointer.enter(name);
        let value = read(self);
        self.pointer.leave(before);
        value
    }

    /// Reads what stands below by a JSON pointer.
    pub(crate) fn below_pointer(&mut self, pointer: &str, read: impl FnOnce(&mut Self)) {
        let before = self.pointer.follow(pointer);
        read(self);
        self.pointer.leave(before);
    }

    /// JSON pointer to what is being read.
    pub(crate) fn pointer(&self) -> &str {
        self.pointer.as_str()
    }

    /// What stands at a place, as it was written.
    pub(crate) fn shown(&self, position: Position) -> String {
        // Nothing more is said of it.
        if error::is_full(&self.errors) {
            return String::new();
        }
        document::found_at(self.text, position)
    }

    /// Something else stands where one of a kind belongs.
    pub(crate) fn misplaced(&mut self, position: Position, allowed: &str) {
        let found = self.shown(position);
        let message = if found.is_empty() {
            format!("nothing stands here, allowed is {allowed}")
        } else {
            format!("found `{found}`, allowed is {allowed}")
        };
        self.error(position, message);
    }

    /// Whether a variable stands in the scalar at a place.
    pub(crate) fn has_variable(&self, position: Position) -> bool {
        self.variables.contains_key(&position)
    }

    /// What is written in the scalar at a place, if a variable stands in it.
    pub fn unexpanded(&self, position: Position) -> Option<&str> {
        self.variables.get(&position).map(String::as_str)
    }

    /// What was read, as it was written: variables not expanded.
    pub(crate) fn as_written(&self, node: &At<Tree>) -> Value {
        match &node.value {
            Tree::Map(members) => {
                let members = members.iter();
                let members =
                    members.map(|(name, node)| (name.value.clone(), self.as_written(node)));
                Value::Object(members.collect())
            }
            Tree::List(items) => items.iter().map(|item| self.as_written(item)).collect(),
            Tree::Scalar { .. } | Tree::Null => match self.unexpanded(node.position) {
                Some(written) => written.into(),
                None => node.value.to_json(),
            },
        }
    }

    /// A text; numbers and flags are taken for one.
    pub fn text(&mut self, node: &At<Tree>) -> Option<At<String>> {
        if let Tree::Scalar { text, .. } = &node.value {
            return Some(At {
                value: text.clone(),
                position: node.position,
            });
        }
        self.misplaced(node.position, "a text");
        None
    }

    /// A text that is more than blanks.
    pub(crate) fn words(&mut self, node: &At<Tree>) -> Option<At<String>> {
        let text = self.text(node)?;
        if text.value.trim().is_empty() {
            self.error(text.position, "this is empty; write a text");
            return None;
        }
        Some(text)
    }

    /// What something is called. Names are told everywhere: nothing that a variable stands for is in one.
    pub(crate) fn name(&mut self, node: &At<Tree>) -> Option<At<String>> {
        let mut name = self.words(node)?;
        self.redactor.text(&mut name.value, usize::MAX);
        Some(name)
    }

    /// A regular expression, look-around and back-references included.
    pub(crate) fn pattern(&mut self, node: &At<Tree>, flags: &str) -> Option<Pattern> {
        let text = self.text(node)?;
        match Pattern::new(flags, &text.value, &self.limits) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let found = self.shown(text.position);
                let message = match error {
                    PatternError::Syntax(why) => {
                        let why = why.rsplit_once(": ").map_or(&*why, |(_, why)| why);
                        format!("`{found}` is not a regular expression: {why}")
                    }
                    over => format!("`{found}` is not taken: {over}"),
                };
                self.error(text.position, message);
                None
            }
        }
    }

    /// A glob over words.
    pub(crate) fn glob(&mut self, written: &At<String>) -> Option<Glob> {
        Glob::within(&written.value, &self.limits)
            .map_err(|error| self.error(written.position, error.to_string()))
            .ok()
    }

    fn number(&mut self, node: &At<Tree>, allowed: &str) -> Option<f64> {
        let Tree::Scalar { text, kind } = &node.value else {
            self.misplaced(node.position, allowed);
            return None;
        };
        let number = text
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        match (kind, number) {
            (ScalarKind::Number, Some(number)) => return Some(number),
            (ScalarKind::Text, Some(number)) if self.has_variable(node.position) => {
                return Some(number);
            }
            (ScalarKind::Text, Some(_)) if !text.contains(['e', 'E', 'n', 'N']) => {
                let message =
                    format!("found the text `\"{text}\"`, allowed is {allowed}; write `{text}`");
                self.error(node.position, message);
            }
            _ if self.has_variable(node.position) => {
                let found = self.shown(node.position);
                let message =
                    format!("`{found}` does not stand for what is allowed here, {allowed}");
                self.error(node.position, message);
            }
            _ => self.misplaced(node.position, allowed),
        }
        None
    }

    /// A number in a range.
    pub(crate) fn real(&mut self, node: &At<Tree>, range: RangeInclusive<f64>) -> Option<f64> {
        self.real_of(node, range, "")
    }

    fn real_of(&mut self, node: &At<Tree>, range: RangeInclusive<f64>, unit: &str) -> Option<f64> {
        let (least, most) = (*range.start(), *range.end());
        let allowed = if most >= f64::MAX {
            format!("a number of at least {least}{unit}")
        } else {
            format!("a number from {least} to {most}{unit}")
        };
        let number = self.number(node, &allowed)?;
        if !range.contains(&number) {
            self.misplaced(node.position, &allowed);
            return None;
        }
        Some(number)
    }

    fn flag(&mut self, node: &At<Tree>) -> Option<bool> {
        match &node.value {
            Tree::Scalar { text, kind } => match (kind, text.as_str()) {
                (ScalarKind::Flag, text) => return Some(text == "true"),
                (ScalarKind::Text, "true") if self.has_variable(node.position) => {
                    return Some(true);
                }
                (ScalarKind::Text, "false") if self.has_variable(node.position) => {
                    return Some(false);
                }
                (ScalarKind::Text, text) => {
                    if let Some(value) = document::flag_of_yaml_1_1(text) {
                        return Some(value);
                    }
                }
                _ => {}
            },
            Tree::Null | Tree::List(_) | Tree::Map(_) => {}
        }
        self.misplaced(node.position, "`true` or `false`");
        None
    }
}

/// A list; each item is read below its number.
pub(crate) fn each<'t, 'a, T>(
    reader: &mut Reader<'a>,
    node: &'t At<Tree>,
    what: &str,
    mut read: impl FnMut(&mut Reader<'a>, &'t At<Tree>) -> Option<T>,
) -> Option<At<Vec<T>>> {
    let Tree::List(items) = &node.value else {
        reader.misplaced(node.position, what);
        return None;
    };
    let items = items.iter().enumerate();
    let value = items
        .filter_map(|(index, item)| reader.below(index, |reader| read(reader, item)))
        .collect();
    Some(At {
        value,
        position: node.position,
    })
}
