//! What can still be read of a document when parts of it cannot: it without them.
//!
//! So a slip in one field does not hide what is wrong with all others.

use super::located::{At, Tree};
use crate::error::ProfileError;
use crate::pointer::{Pointer, steps};

/// A document without the parts that errors are about.
pub(super) struct Part<'a> {
    whole: &'a At<Tree>,
    /// What was taken out, by JSON pointer, in the order of the text.
    out: Vec<&'a str>,
    /// What is left, each node at its place in the whole.
    pub(super) tree: At<Tree>,
}

impl<'a> Part<'a> {
    /// What is left of `whole`; `None` if the errors are not about parts of it, or nothing is left.
    pub(super) fn of(whole: &'a At<Tree>, errors: &'a [ProfileError]) -> Option<Self> {
        let mut out: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        if out.contains(&"") {
            return None;
        }
        out.dedup();
        let mut tree = whole.clone();
        // From the end on, so that no number of an item changes before it is used.
        for pointer in out.iter().rev() {
            take_out(&mut tree, pointer);
        }
        (tree != *whole).then_some(Self { whole, out, tree })
    }

    /// What is wrong with the part, said of the whole; without what follows from the gaps alone.
    pub(super) fn led_back(&self, errors: Vec<ProfileError>) -> Vec<ProfileError> {
        let led_back = errors.into_iter().map(|error| ProfileError {
            pointer: self.pointer(&error.pointer),
            ..error
        });
        led_back
            .filter(|error| !self.follows_from_a_gap(&error.pointer))
            .collect()
    }

    /// Where a pointer into the part leads to in the whole: items that were taken out are counted again.
    fn pointer(&self, pointer: &str) -> String {
        let mut led = Pointer::default();
        for step in steps(pointer) {
            let list = matches!(self.whole.nearest(led.as_str()).value, Tree::List(_));
            let number = step.parse::<usize>().ok().filter(|_| list);
            let _ = match number {
                Some(number) => led.enter(self.number(led.as_str(), number)),
                None => led.enter(step),
            };
        }
        led.as_str().to_owned()
    }

    /// The number that an item of a list had before others were taken out.
    fn number(&self, list: &str, number: usize) -> usize {
        let gone = self.out.iter().filter_map(|pointer| {
            let (parent, step) = pointer.rsplit_once('/')?;
            step.parse::<usize>().ok().filter(|_| parent == list)
        });
        gone.fold(number, |number, gone| number + usize::from(gone <= number))
    }

    /// Whether an error is about something from which a part was taken, or about what such a thing lacks:
    /// the part may be what is missed.
    fn follows_from_a_gap(&self, pointer: &str) -> bool {
        let parents = || self.out.iter().filter_map(|out| out.rsplit_once('/'));
        let of_a_gap = |pointer: &str| parents().any(|(parent, _)| parent == pointer);
        let lacks = |(parent, _): (&str, &str)| {
            let found = self.whole.nearest(pointer).position == self.whole.nearest(parent).position;
            found && of_a_gap(parent)
        };
        of_a_gap(pointer) || pointer.rsplit_once('/').is_some_and(lacks)
    }
}

/// Takes out what a pointer leads to, if it is there.
fn take_out(tree: &mut At<Tree>, pointer: &str) {
    let mut node = tree;
    let mut steps = steps(pointer).peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        match &mut node.value {
            Tree::List(items) => {
                let number = step.parse().ok().filter(|number| *number < items.len());
                let Some(number) = number else { return };
                if last {
                    items.remove(number);
                    return;
                }
                node = &mut items[number];
            }
            Tree::Map(members) => {
                let number = members.iter().position(|(name, _)| name.value == step);
                let Some(number) = number else { return };
                if last {
                    members.remove(number);
                    return;
                }
                node = &mut members[number].1;
            }
            Tree::Null | Tree::Scalar { .. } => return,
        }
    }
}
