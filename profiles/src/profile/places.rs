//! Where the parts of a text really stand, when the text was made from parts of another one.

use std::collections::BTreeMap;

use super::located::{At, Tree};
use crate::error::Position;

/// From places in a text to places in what the user wrote; what is not in it stands where it says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places(BTreeMap<Position, Position>);

impl Places {
    /// The places of a tree whose shape is that of another one: what was `read`, and as it `stands`.
    pub(crate) fn between(read: &At<Tree>, stands: &At<Tree>) -> Self {
        let mut places = Self::default();
        places.pair(read, stands);
        places
    }

    /// Where what was read at a place stands.
    pub(crate) fn of(&self, position: Position) -> Position {
        self.0.get(&position).copied().unwrap_or(position)
    }

    /// The same, led on to where what these lead to stands in turn.
    pub(crate) fn and_then(mut self, on: &Self) -> Self {
        for place in self.0.values_mut() {
            *place = on.of(*place);
        }
        self
    }

    fn pair(&mut self, read: &At<Tree>, stands: &At<Tree>) {
        self.0.insert(read.position, stands.position);
        match (&read.value, &stands.value) {
            (Tree::List(read), Tree::List(stand)) => {
                for (read, stands) in read.iter().zip(stand) {
                    self.pair(read, stands);
                }
            }
            (Tree::Map(read), Tree::Map(stand)) => {
                for ((read_name, read), (name, stands)) in read.iter().zip(stand) {
                    self.0.insert(read_name.position, name.position);
                    self.pair(read, stands);
                }
            }
            (Tree::Null | Tree::Scalar { .. } | Tree::List(_) | Tree::Map(_), _) => {}
        }
    }
}
