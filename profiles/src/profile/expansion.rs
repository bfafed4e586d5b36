//! Variables in the strings of a profile, expanded before any of them is given its meaning.

use serde_json::Value;

use super::located::{At, OneOrMany, Pairs, Tree};
use super::raw::{RawArmedBy, RawRamp, RawRule, RawWindow};
use super::raw::{RawChaos, RawProfile};
use crate::error::Position;
use crate::variables::{Variables, expand, expand_document};

/// What cannot be expanded, with its place.
pub(crate) type Complaint = (Position, String);

/// Gives variables their values, and gathers the complaints.
#[derive(Debug)]
pub(crate) struct Expansion<'a> {
    pub(crate) variables: Variables<'a>,
    pub(crate) complaints: Vec<Complaint>,
}

impl Expansion<'_> {
    fn note(&mut self, position: Position, expanded: Result<(), String>) {
        if let Err(message) = expanded {
            self.complaints.push((position, message));
        }
    }
}

/// A part of a profile with strings in it.
pub(crate) trait Strings {
    /// Expands them. `position` is where this part stands, for those that do not know it.
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>);
}

impl Strings for String {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        let expanded = expand(self, expansion.variables).map(|text| *self = text);
        expansion.note(position, expanded);
    }
}

impl Strings for Value {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        let expanded = expand_document(self, expansion.variables);
        expansion.note(position, expanded);
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

/// Nothing to expand in these; trees stand only where they are refused.
macro_rules! no_strings {
    ($($kind:ty),*) => {
        $(impl Strings for $kind {
            fn expand(&mut self, _: Position, _: &mut Expansion<'_>) {}
        })*
    };
}

no_strings!(f64, bool, Tree);

macro_rules! strings_of {
    ($($raw:ident { $($field:ident),* $(,)? })*) => {
        $(impl Strings for $raw {
            fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
                let Self { $($field),* } = self;
                $($field.expand(position, expansion);)*
            }
        })*
    };
}

strings_of! {
    RawProfile {
        name, description, extends, chaos, network_faults, tool_faults, llm_faults, context_attacks,
    }
    RawChaos { network_faults, tool_faults, llm_faults, context_attacks }
    RawWindow { after, open_for }
    RawRamp { from, to, over }
    RawArmedBy { rule, tool, match_url, methods, status }
}

impl Strings for RawRule {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        self.expand_fields(position, expansion);
    }
}
