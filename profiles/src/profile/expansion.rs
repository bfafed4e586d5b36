//! Variables in the strings of a profile, expanded before any of them is given its meaning.

use std::collections::BTreeSet;

use serde_json::Value;

use super::located::{At, OneOrMany, Pairs, Text, Word};
use crate::error::Position;
use crate::variables::{Variables, expand, expand_document, recorded};

/// What cannot be expanded, with its place.
pub(crate) type Complaint = (Position, String);

/// Gives variables their values, and gathers the complaints.
#[derive(Debug)]
pub(crate) struct Expansion<'a> {
    pub(crate) variables: Variables<'a>,
    pub(crate) complaints: Vec<Complaint>,
    /// What variables stood for in texts. A number or a flag is no secret.
    pub(crate) secrets: BTreeSet<String>,
}

impl<'a> Expansion<'a> {
    pub(crate) fn new(variables: Variables<'a>) -> Self {
        Self {
            variables,
            complaints: Vec::new(),
            secrets: BTreeSet::new(),
        }
    }

    /// Expands what is a text, or has texts in it.
    fn text<T>(
        &mut self,
        position: Position,
        expand: impl FnOnce(Variables<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let (expanded, found) = recorded(self.variables, expand);
        self.secrets
            .extend(found.iter().map(|(_, value)| value.to_owned()));
        expanded
            .map_err(|message| self.complaints.push((position, message)))
            .ok()
    }
}

/// A part of a profile with strings in it.
pub(crate) trait Strings {
    /// Expands them. `position` is where this part stands, for those that do not know it.
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>);
}

impl Strings for String {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        if let Some(text) = expansion.text(position, |variables| expand(self, variables)) {
            *self = text;
        }
    }
}

impl Strings for Value {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        expansion.text(position, |variables| expand_document(self, variables));
    }
}

impl<T: Strings> Strings for At<T> {
    fn expand(&mut self, _: Position, expansion: &mut Expansion<'_>) {
        self.value.expand(self.position, expansion);
    }
}

impl<T: Strings> Strings for Option<T> {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        if let Some(part) = self {
            part.expand(position, expansion);
        }
    }
}

impl<T: Strings> Strings for Box<T> {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        (**self).expand(position, expansion);
    }
}

impl<T: Strings> Strings for Vec<T> {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        for part in self {
            part.expand(position, expansion);
        }
    }
}

impl Strings for OneOrMany {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        self.0.expand(position, expansion);
    }
}

impl<T: Strings> Strings for Pairs<T> {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        for (name, part) in &mut self.0 {
            name.expand(position, expansion);
            part.expand(position, expansion);
        }
    }
}

impl Strings for Text {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        self.0.expand(position, expansion);
    }
}

impl Strings for Word {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        self.0.expand(position, expansion);
    }
}
