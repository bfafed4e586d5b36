//! From a tree to typed values, with every error on the way.
//!
//! Values of variables are never repeated in a message: what is shown is the text as it is written.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::{Map, Value};

use crate::error::{self, DocumentError, Position};
use crate::limits::{DocumentLimits, Limited};
use crate::pointer::Pointer;
use crate::source::SourceText;
use crate::tree::{At, Tree};
use crate::variables::{Expanded, Variables, expand_noting, mentions_variable};

/// Shortest value of a variable, in bytes, that is hidden inside longer texts. A shorter one stands in half of all
/// words.
const SHORTEST: usize = 4;

/// What stands in the place of a variable's value.
const HIDDEN: &str = "REDACTED";

/// Reads one document, and keeps what is wrong with it.
#[derive(Debug)]
pub struct DocumentReader {
    source: SourceText,
    pointer: Pointer,
    errors: Vec<DocumentError>,
    notes: Vec<DocumentError>,
    /// Where texts had variables in them.
    substituted: BTreeMap<Position, Substituted>,
    /// Values of variables, the longest first.
    values: Vec<String>,
    /// What the rest of the document may make of itself.
    pub limits: DocumentLimits,
    /// In a description: the schemas that others refer to.
    pub(crate) definitions: Option<Map<String, Value>>,
    /// In a description: the schema of the value that was read last.
    pub(crate) schema: Value,
}

/// A text that had variables in it.
#[derive(Debug)]
struct Substituted {
    written: String,
    variables: Expanded,
    /// Whether it was read as a number or a flag, which is no secret.
    is_plain: bool,
}

impl DocumentReader {
    /// Reads what was written in `source`.
    pub fn new(source: SourceText) -> Self {
        Self {
            source,
            pointer: Pointer::default(),
            errors: Vec::new(),
            notes: Vec::new(),
            substituted: BTreeMap::new(),
            values: Vec::new(),
            limits: DocumentLimits::default(),
            definitions: None,
            schema: Value::Null,
        }
    }

    pub(crate) fn describing() -> Self {
        Self {
            definitions: Some(Map::new()),
            ..Self::new(SourceText::new("", ""))
        }
    }

    /// Whether a schema is made, and no document is read.
    pub fn is_describing(&self) -> bool {
        self.definitions.is_some()
    }

    /// Expands `${VAR}` and `${VAR:-default}` in every text of a tree, names of members included.
    pub fn expand(&mut self, tree: &mut At<Tree>, variables: Variables<'_>) {
        if tree.mentions_variable() {
            self.expand_node(tree, variables);
            self.values = self.expanded().values().map(str::to_owned).collect();
            self.values.retain(|value| !value.is_empty());
            self.values.sort_by_key(|value| Reverse(value.len()));
        }
    }

    fn expand_node(&mut self, node: &mut At<Tree>, variables: Variables<'_>) {
        match &mut node.value {
            Tree::Null => {}
            Tree::Scalar { text, .. } => self.expand_text(node.position, text, variables),
            Tree::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.below(index, |reader| reader.expand_node(item, variables));
                }
            }
            Tree::Map(members) => {
                for (name, member) in members {
                    self.expand_text(name.position, &mut name.value, variables);
                    self.below(&name.value, |reader| reader.expand_node(member, variables));
                }
            }
        }
    }

    fn expand_text(&mut self, position: Position, text: &mut String, variables: Variables<'_>) {
        if !mentions_variable(text) {
            return;
        }
        let mut found = Expanded::default();
        let expanded = expand_noting(text, variables, &mut found).and_then(|expanded| {
            let within = self.limits.take(Limited::ExpandedBytes, expanded.len());
            within.map_err(|over| over.to_string())?;
            Ok(expanded)
        });
        let written = match expanded {
            Ok(expanded) => std::mem::replace(text, expanded),
            Err(message) => {
                self.error(position, message);
                text.clone()
            }
        };
        let substituted = Substituted {
            written,
            variables: found,
            is_plain: false,
        };
        self.substituted.insert(position, substituted);
    }

    /// What was read and what was noted on the way, or what is wrong with the document, each in the order of the
    /// text.
    pub fn finish<T>(self, read: Option<T>) -> Result<(T, Vec<DocumentError>), Vec<DocumentError>> {
        let in_order = |mut all: Vec<DocumentError>| -> Vec<DocumentError> {
            all.sort_by_key(|error| error.position);
            all.dedup();
            let all = all.into_iter();
            all.map(|error| self.source.placed(error)).collect()
        };
        match read {
            Some(value) if self.errors.is_empty() => Ok((value, in_order(self.notes))),
            _ => Err(in_order(self.errors)),
        }
    }

    /// What the document was read from.
    pub fn source(&self) -> &SourceText {
        &self.source
    }

    /// Notes an error.
    pub fn error(&mut self, position: Position, message: impl Into<String>) {
        if self.is_full() {
            return;
        }
        // Of a variable that is missing nothing more can be said.
        let is_here = |error: &DocumentError| error.position == position;
        if self.has_variable(position) && self.errors.iter().any(is_here) {
            return;
        }
        let error = self.made(position, message.into());
        error::note(&mut self.errors, error);
    }

    /// Notes what is allowed and odd.
    pub fn note(&mut self, position: Position, message: impl Into<String>) {
        let note = self.made(position, message.into());
        error::note(&mut self.notes, note);
    }

    fn made(&self, position: Position, mut message: String) -> DocumentError {
        let mut pointer = self.pointer.as_str().to_owned();
        self.hide(&mut message);
        self.hide(&mut pointer);
        DocumentError {
            file: String::new(),
            position,
            pointer,
            message,
        }
    }

    /// Whether anything is wrong so far.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether no more errors are reported.
    pub fn is_full(&self) -> bool {
        error::is_full(&self.errors)
    }

    /// Something else is written where one of a kind belongs.
    pub fn misplaced<T>(&mut self, position: Position, allowed: &str) -> Option<T> {
        let found = self.shown(position);
        let message = if found.is_empty() {
            format!("nothing stands here, allowed is {allowed}")
        } else {
            format!("found `{found}`, allowed is {allowed}")
        };
        self.error(position, message);
        None
    }

    /// Reads what is below a name or a number.
    pub fn below<T>(&mut self, step: impl Display, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pointer.enter(step);
        let value = read(self);
        self.pointer.leave(before);
        value
    }

    /// Reads what a JSON pointer leads to from here.
    pub fn below_pointer<T>(&mut self, pointer: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pointer.follow(pointer);
        let value = read(self);
        self.pointer.leave(before);
        value
    }

    /// JSON pointer to what is being read.
    pub fn pointer(&self) -> &str {
        self.pointer.as_str()
    }

    /// What is written at a position.
    pub fn shown(&self, position: Position) -> String {
        // Nothing more is reported.
        if self.is_full() {
            return String::new();
        }
        self.source.found_at(position)
    }

    /// Whether the text at a position has a variable in it.
    pub fn has_variable(&self, position: Position) -> bool {
        self.substituted.contains_key(&position)
    }

    /// What is written in the text at a position, if a variable is in it.
    pub fn unexpanded(&self, position: Position) -> Option<&str> {
        let found = self.substituted.get(&position)?;
        Some(&found.written)
    }

    pub(crate) fn is_plain(&mut self, position: Position) {
        if let Some(found) = self.substituted.get_mut(&position) {
            found.is_plain = true;
        }
    }

    /// What the variables of the document stand for.
    pub fn expanded(&self) -> Expanded {
        let mut all = Expanded::default();
        for found in self.substituted.values() {
            all.add(&found.variables);
        }
        all
    }

    /// What the variables below a node stand for; and those of them that are secret, as they are in texts.
    pub fn expanded_in(&self, node: &At<Tree>) -> (Expanded, Expanded) {
        let (mut all, mut secret) = (Expanded::default(), Expanded::default());
        if !self.substituted.is_empty() {
            node.each_text(&mut |position, _| {
                if let Some(found) = self.substituted.get(&position) {
                    all.add(&found.variables);
                    if !found.is_plain {
                        secret.add(&found.variables);
                    }
                }
            });
        }
        (all, secret)
    }

    /// Takes values of variables out of a text.
    pub fn hide(&self, text: &mut String) {
        for value in &self.values {
            if text == value || (value.len() >= SHORTEST && text.contains(value)) {
                *text = text.replace(value, HIDDEN);
            }
        }
    }

    /// A node as it is written, variables not expanded.
    pub fn as_written(&self, node: &At<Tree>) -> Value {
        let written = |position, text: &str| self.unexpanded(position).unwrap_or(text).to_owned();
        match &node.value {
            Tree::Map(members) => {
                let members = members.iter().map(|(name, node)| {
                    (written(name.position, &name.value), self.as_written(node))
                });
                Value::Object(members.collect())
            }
            Tree::List(items) => items.iter().map(|item| self.as_written(item)).collect(),
            Tree::Scalar { .. } | Tree::Null => match self.unexpanded(node.position) {
                Some(written) => written.into(),
                None => node.value.to_json(),
            },
        }
    }

    pub(crate) fn describe<T>(&mut self, schema: Value) -> Option<T> {
        self.schema = schema;
        None
    }
}
