//! Converts a tree to typed values and collects all errors.
//!
//! Messages never contain values of variables: they show the text as written.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::{Map, Value};

use crate::error::{self, DocumentError, Position};
use crate::limits::{DocumentLimits, Limited};
use crate::source::SourceText;
use crate::tree::{At, Tree};
use crate::variables::{Expanded, Variables, expand_noting, mentions_variable};

/// Shortest value of a variable that is hidden inside longer texts, in bytes. Shorter values occur in too many
/// ordinary words.
const SHORTEST: usize = 4;

/// Replaces the value of a variable.
const HIDDEN: &str = "REDACTED";

/// Reads one document and collects its errors.
#[derive(Debug)]
pub struct DocumentReader {
    source: SourceText,
    /// JSON pointer (RFC 6901) to the value that is being read.
    pointer: String,
    errors: Vec<DocumentError>,
    notes: Vec<DocumentError>,
    /// Positions of texts that contained variables.
    substituted: BTreeMap<Position, Substituted>,
    /// Values of variables, longest first.
    values: Vec<String>,
    /// The remaining limits of the document.
    pub limits: DocumentLimits,
    /// In a description: the schemas that references use.
    pub(crate) definitions: Option<Map<String, Value>>,
    /// In a description: the schema of the value that was read last.
    pub(crate) schema: Value,
}

/// A text that contained variables.
#[derive(Debug)]
struct Substituted {
    written: String,
    variables: Expanded,
    /// Whether it was read as a number or a flag, so that it is not secret.
    is_plain: bool,
}

impl DocumentReader {
    /// A reader for the document in `source`.
    pub fn new(source: SourceText) -> Self {
        Self {
            source,
            pointer: String::new(),
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

    /// Whether a schema is generated instead of reading a document.
    pub fn is_describing(&self) -> bool {
        self.definitions.is_some()
    }

    /// Expands `${VAR}` and `${VAR:-default}` in every text of a tree, including the names of members.
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
        let expanded = self
            .limits
            .take(Limited::ExpandedBytes, 1)
            .map_err(|over| over.to_string())
            .and_then(|()| expand_noting(text, variables, &mut found))
            .and_then(|expanded| {
                let within = self.limits.take(Limited::ExpandedBytes, expanded.len());
                within.map_err(|over| over.to_string())?;
                Ok(expanded)
            });
        let written = match expanded {
            Ok(expanded) => std::mem::replace(text, expanded),
            Err(message) => {
                self.error(position, message);
                // The text stays as it is, and values that are kept would add up.
                found = Expanded::default();
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

    /// The value with all warnings, or all errors, both in the order of the text.
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

    /// The source of the document.
    pub fn source(&self) -> &SourceText {
        &self.source
    }

    /// Reports an error.
    pub fn error(&mut self, position: Position, message: impl Into<String>) {
        if self.is_full() {
            return;
        }
        // A missing variable is reported once. Further errors at its position would only follow from it.
        let is_here = |error: &DocumentError| error.position == position;
        if self.has_variable(position) && self.errors.iter().any(is_here) {
            return;
        }
        let error = self.located(position, message.into());
        error::note(&mut self.errors, error);
    }

    /// Reports a warning.
    pub fn note(&mut self, position: Position, message: impl Into<String>) {
        let note = self.located(position, message.into());
        error::note(&mut self.notes, note);
    }

    fn located(&self, position: Position, mut message: String) -> DocumentError {
        let mut pointer = self.pointer.clone();
        self.hide(&mut message);
        self.hide(&mut pointer);
        DocumentError {
            file: String::new(),
            position,
            pointer,
            message,
        }
    }

    /// Whether there is an error so far.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether the maximum number of errors is reached.
    pub fn is_full(&self) -> bool {
        error::is_full(&self.errors)
    }

    /// Reports a value of the wrong kind.
    pub fn misplaced<T>(&mut self, position: Position, allowed: &str) -> Option<T> {
        let found = self.shown(position);
        let message = if found.is_empty() {
            format!("this is empty, expected {allowed}")
        } else {
            format!("found `{found}`, expected {allowed}")
        };
        self.error(position, message);
        None
    }

    /// Runs `read` with the pointer extended by a name or an index.
    pub fn below<T>(&mut self, step: impl Display, read: impl FnOnce(&mut Self) -> T) -> T {
        let step = step.to_string().replace('~', "~0").replace('/', "~1");
        self.below_pointer(&format!("/{step}"), read)
    }

    /// Runs `read` with the pointer extended by a relative JSON pointer.
    pub fn below_pointer<T>(&mut self, pointer: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pointer.len();
        self.pointer.push_str(pointer);
        let value = read(self);
        self.pointer.truncate(before);
        value
    }

    /// JSON pointer to the value that is being read.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The text at a position.
    pub fn shown(&self, position: Position) -> String {
        // No further error is reported, so the text is not needed.
        if self.is_full() {
            return String::new();
        }
        self.source.found_at(position)
    }

    /// Whether the text at a position contains a variable.
    pub fn has_variable(&self, position: Position) -> bool {
        self.substituted.contains_key(&position)
    }

    /// The unexpanded text at a position, if it contains a variable.
    pub fn unexpanded(&self, position: Position) -> Option<&str> {
        let found = self.substituted.get(&position)?;
        Some(&found.written)
    }

    pub(crate) fn is_plain(&mut self, position: Position) {
        if let Some(found) = self.substituted.get_mut(&position) {
            found.is_plain = true;
        }
    }

    /// The values of the document's variables.
    pub fn expanded(&self) -> Expanded {
        let mut all = Expanded::default();
        for found in self.substituted.values() {
            all.add(&found.variables);
        }
        all
    }

    /// The values of the variables below a node, and those of them that are secret because they are in texts.
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

    /// Removes the values of variables from a text.
    pub fn hide(&self, text: &mut String) {
        for value in &self.values {
            if text == value || (value.len() >= SHORTEST && text.contains(value)) {
                *text = text.replace(value, HIDDEN);
            }
        }
    }

    /// A node as JSON, variables not expanded.
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
