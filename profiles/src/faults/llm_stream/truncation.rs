//! A stream that ends after so many tokens, as the provider ends one at `max_tokens`.
//!
//! The event that crosses the limit is cut in place and the choice ended at once, without waiting
//! for what the upstream still writes. Only where token counts are to follow is the rest of the
//! stream read, and dropped, up to the counts: nobody but the provider knows the tokens in.

use std::collections::BTreeMap;

use squall_dialects::json::Edits;
use squall_dialects::model::{DeltaKind, Finish, Finished, Usage};
use squall_dialects::stream::Framing;
use squall_dialects::{Dialect, EndOfChoice};

use super::Step;
use super::budget::{self, Budget, Share};
use super::events::Event;

/// Choices that are told apart; further ones pass untouched.
const CHOICES: usize = 128;

/// An answer that is to end after so many tokens per choice.
#[derive(Debug)]
pub(super) struct Truncation {
    max_tokens: u64,
    framing: Framing,
    choices_expected: u64,
    usage_expected: bool,
    choices: BTreeMap<u64, Choice>,
    touched: bool,
    /// Every choice has ended; only the token counts are still to come.
    draining: bool,
}

#[derive(Debug)]
struct Choice {
    budget: Budget,
    state: ChoiceState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChoiceState {
    Open,
    /// The limit was reached; what the upstream still sends for it is dropped.
    Truncated,
    /// The upstream ended it.
    Ended,
}

impl Truncation {
    pub(super) fn new(max_tokens: u64, framing: Framing) -> Self {
        Self {
            max_tokens,
            framing,
            choices_expected: 1,
            usage_expected: false,
            choices: BTreeMap::new(),
            touched: false,
            draining: false,
        }
    }

    pub(super) fn expect(&mut self, choices: u64, usage: bool) {
        self.choices_expected = choices;
        self.usage_expected |= usage;
    }

    pub(super) fn max_tokens(&self) -> u64 {
        self.max_tokens
    }

    pub(super) fn touched(&self) -> bool {
        self.touched
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Passes, cuts or drops one event.
    pub(super) fn event(
        &mut self,
        event: &Event<'_>,
        dialect: &dyn Dialect,
        steps: &mut Vec<Step>,
    ) {
        self.usage_expected |= event.reading.usage_follows;
        if self.draining {
            self.drain(event, dialect, steps);
            return;
        }
        let mut cutting = Cutting::new(event);
        self.cut_deltas(&mut cutting);
        self.end_choices(&mut cutting, dialect);
        let Cutting {
            mut edits,
            name,
            cut,
            keep,
            ..
        } = cutting;
        if let Some(usage) = event.reading.usage.filter(|_| self.touched) {
            self.count_anew(&mut edits, &usage);
        }
        if keep {
            steps.push(event.edited(&edits, name));
        }
        for choice in cut {
            let tokens = self.choices.get(&choice).map(|cut| cut.budget.spent());
            let end = EndOfChoice {
                choice,
                finish: &Finish::Length,
                tokens: tokens.unwrap_or_default(),
                kept: keep,
            };
            let events = dialect.finish_events(event.spoken(), &end);
            steps.extend(event.made(&events));
        }
        self.end_stream(event, dialect, steps);
    }

    /// Cuts what is over the limit.
    fn cut_deltas(&mut self, cutting: &mut Cutting<'_>) {
        let event = cutting.event;
        cutting.keep |= event.reading.introduces;
        for delta in &event.reading.deltas {
            // A choice's first event also says who speaks: it stays, empty if need be.
            // An id goes with its call.
            if delta.kind == DeltaKind::ToolId {
                continue;
            }
            let Some(choice) = self.choice(delta.choice) else {
                continue;
            };
            let share = match choice.state {
                ChoiceState::Truncated => Share::Nothing,
                ChoiceState::Open | ChoiceState::Ended => {
                    choice.budget.spend(delta, event.document)
                }
            };
            if share != Share::All && choice.state != ChoiceState::Truncated {
                choice.state = ChoiceState::Truncated;
                cutting.cut.push(delta.choice);
                self.touched = true;
            }
            cutting.keep |= share != Share::Nothing;
            budget::cut(&mut cutting.edits, event.document, delta, share);
        }
        let cut = &cutting.cut;
        budget::forget_mirrors(&mut cutting.edits, &event.reading, |index| {
            cut.contains(&index)
        });
    }

    /// Notes which choices the upstream ends here; one that is cut here ends for its length.
    fn end_choices(&mut self, cutting: &mut Cutting<'_>, dialect: &dyn Dialect) {
        let event = cutting.event;
        for finished in &event.reading.finishes {
            let Some(choice) = self.choice(finished.choice) else {
                cutting.keep = true;
                continue;
            };
            if choice.state != ChoiceState::Truncated {
                choice.state = ChoiceState::Ended;
                cutting.keep = true;
            } else if let Some(here) = cutting.cut.iter().position(|cut| *cut == finished.choice) {
                cutting.finish(finished, Some(&Finish::Length), dialect);
                cutting.cut.swap_remove(here);
                cutting.keep = true;
            } else {
                cutting.finish(finished, None, dialect);
            }
        }
    }

    /// Ends the stream once all its choices have ended and at least one of them was cut.
    fn end_stream(&mut self, event: &Event<'_>, dialect: &dyn Dialect, steps: &mut Vec<Step>) {
        let open = self
            .choices
            .values()
            .any(|choice| choice.state == ChoiceState::Open);
        let all_seen = self.choices.len() as u64 >= self.choices_expected;
        if !self.touched || open || !all_seen {
            return;
        }
        if self.usage_expected && event.reading.usage.is_none() {
            self.draining = true;
        } else {
            self.end(event, dialect, steps);
        }
    }

    /// Drops events until the token counts come.
    fn drain(&self, event: &Event<'_>, dialect: &dyn Dialect, steps: &mut Vec<Step>) {
        let Some(usage) = event.reading.usage else {
            return;
        };
        // Some servers count along with every event; only the last one is the agent's.
        if event.tokens() > 0 && event.reading.finishes.is_empty() {
            return;
        }
        let mut edits = Edits::new(event.document);
        for delta in &event.reading.deltas {
            budget::cut(&mut edits, event.document, delta, Share::Nothing);
        }
        budget::forget_mirrors(&mut edits, &event.reading, |_| true);
        let mut name = None;
        for finished in &event.reading.finishes {
            let length = Some(&Finish::Length);
            name = dialect.put_finish(&mut edits, event.document, finished, length);
        }
        self.count_anew(&mut edits, &usage);
        steps.push(event.edited(&edits, name));
        if event.reading.ends {
            steps.push(Step::Finish);
        } else {
            self.end(event, dialect, steps);
        }
    }

    /// Ends the stream as the provider does.
    fn end(&self, event: &Event<'_>, dialect: &dyn Dialect, steps: &mut Vec<Step>) {
        steps.extend(event.made(&dialect.end(self.framing)));
        steps.push(Step::Finish);
    }

    fn count_anew(&self, edits: &mut Edits<'_>, usage: &Usage) {
        let kept = self
            .choices
            .values()
            .map(|choice| choice.budget.spent())
            .sum();
        budget::count_anew(edits, usage, kept);
    }

    /// The state of a choice; `None` when there are too many to tell apart.
    fn choice(&mut self, index: u64) -> Option<&mut Choice> {
        if self.choices.len() == CHOICES && !self.choices.contains_key(&index) {
            return None;
        }
        let new = || Choice {
            budget: Budget::new(self.max_tokens),
            state: ChoiceState::Open,
        };
        Some(self.choices.entry(index).or_insert_with(new))
    }
}

/// What becomes of one event.
struct Cutting<'e> {
    event: &'e Event<'e>,
    edits: Edits<'e>,
    /// The event's new name, if it gets one.
    name: Option<&'static str>,
    /// Choices that are cut here and still have to be ended.
    cut: Vec<u64>,
    /// Whether the event, or what is left of it, goes to the agent.
    keep: bool,
}

impl<'e> Cutting<'e> {
    fn new(event: &'e Event<'e>) -> Self {
        let says_nothing = event.reading.deltas.is_empty() && event.reading.finishes.is_empty();
        let edits = Edits::new(event.document);
        Self {
            event,
            edits,
            name: None,
            cut: Vec::new(),
            keep: says_nothing,
        }
    }

    /// Makes the event say that a choice ends so, or not yet.
    fn finish(&mut self, at: &Finished, finish: Option<&Finish>, dialect: &dyn Dialect) {
        let named = dialect.put_finish(&mut self.edits, self.event.document, at, finish);
        self.name = named.or(self.name);
    }
}
