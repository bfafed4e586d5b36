//! One event of a stream on which choices end early, while it is decided what is left of it.

use std::collections::BTreeSet;

use squall_dialects::json::Edits;
use squall_dialects::model::{Finish, Finished};
use squall_dialects::stream::Made;
use squall_dialects::{EndOfChoice, tokens};

use super::super::call::Call;
use super::super::events::Event;
use super::Instead;

/// What becomes of one event.
pub(super) struct Cutting<'e> {
    pub(super) event: &'e Event<'e>,
    pub(super) edits: Edits<'e>,
    /// The event's new name, if it gets one.
    pub(super) name: Option<&'static str>,
    /// Choices that are cut here and still have to be ended.
    pub(super) cut: BTreeSet<u64>,
    /// Events that come before it.
    pub(super) before: Vec<Made>,
    /// Whether the event, or what is left of it, goes to the agent.
    pub(super) keep: bool,
    /// Others come in its place.
    pub(super) replaced: bool,
}

impl<'e> Cutting<'e> {
    pub(super) fn new(event: &'e Event<'e>) -> Self {
        let reading = &event.reading;
        let says_nothing =
            reading.deltas.is_empty() && reading.finishes.is_empty() && reading.edges.is_empty();
        Self {
            event,
            edits: Edits::new(event.document),
            name: None,
            cut: BTreeSet::new(),
            before: Vec::new(),
            keep: says_nothing,
            replaced: false,
        }
    }

    /// Sets or clears the finish reason of a choice in the event.
    pub(super) fn finish(&mut self, at: &Finished, finish: Option<&Finish>, call: &Call) {
        let document = self.event.document;
        let named = call
            .dialect
            .put_finish(&mut self.edits, document, at, finish);
        self.name = named.or(self.name);
    }

    /// Ends a choice without output where the upstream ends it. Synthetic events replace the upstream's;
    /// if the dialect cannot create them, the upstream's are edited. `thought`: tokens of its thinking.
    pub(super) fn end_in_place(
        &mut self,
        at: &Finished,
        instead: &Instead,
        finish: &Finish,
        thought: u64,
        call: &Call,
    ) {
        let words = tokens::count(call.counting(), &instead.text);
        let end = EndOfChoice {
            choice: at.choice,
            finish,
            tokens: words.saturating_add(thought),
            instead: Some(words),
            kept: true,
        };
        let event = self.event.spoken();
        if !call.dialect.finish_events(event, &end).is_empty() {
            self.cut.insert(at.choice);
            self.replaced = true;
            return;
        }
        let made = call
            .dialect
            .say_events(event, at.choice, instead.saying(call));
        self.before.extend(made);
        self.finish(at, Some(finish), call);
        self.say(instead, at.choice, finish, call);
        self.keep = true;
    }

    /// Makes an event that repeats a choice say this.
    pub(super) fn say(&mut self, instead: &Instead, choice: u64, finish: &Finish, call: &Call) {
        let (document, saying) = (self.event.document, instead.saying(call));
        call.dialect
            .say(&mut self.edits, document, choice, saying, finish);
    }
}
