//! Collects the checks of a suite, with positions in its text.

use squall_documents::{At, Position, Tree};

use crate::run::{CheckRecord, CheckState};
use crate::suite::Suite;

/// The checks in order.
pub(super) struct Checks<'s> {
    suite: &'s Suite,
    tree: Option<At<Tree>>,
    pub(super) all: Vec<CheckRecord>,
}

impl<'s> Checks<'s> {
    pub(super) fn of(suite: &'s Suite) -> Self {
        Self {
            suite,
            tree: squall_documents::parse(&suite.file, &suite.text).ok(),
            all: Vec::new(),
        }
    }

    pub(super) fn passed(&mut self, name: &str, found: impl Into<String>) {
        self.add(name, CheckState::Passed, found.into());
    }

    pub(super) fn skipped(&mut self, name: &str, why: impl Into<String>) {
        self.add(name, CheckState::Skipped, why.into());
    }

    pub(super) fn warned(&mut self, name: &str, pointer: &str, found: String, advice: &str) {
        self.add(name, CheckState::Warned, found);
        self.advise(pointer, advice);
    }

    pub(super) fn failed(&mut self, name: &str, pointer: &str, found: String, advice: &str) {
        self.add(name, CheckState::Failed, found);
        self.advise(pointer, advice);
    }

    fn add(&mut self, name: &str, state: CheckState, found: String) {
        self.all.push(CheckRecord {
            name: name.to_owned(),
            state,
            found,
            advice: None,
            pointer: None,
            place: None,
        });
    }

    fn advise(&mut self, pointer: &str, advice: &str) {
        let place = self.place(pointer);
        if let Some(last) = self.all.last_mut() {
            last.advice = Some(advice.to_owned());
            last.pointer = Some(pointer.to_owned());
            last.place = place;
        }
    }

    /// The position in the text; if the value is absent, that of its parent.
    fn place(&self, pointer: &str) -> Option<String> {
        let Position { line, column } = self.tree.as_ref()?.nearest(pointer).position;
        (line > 0).then(|| format!("{}:{line}:{column}", self.suite.file))
    }
}
