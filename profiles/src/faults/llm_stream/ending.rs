//! Responses that end before the model does: shortened as at `max_tokens`, or replaced by other
//! text.
//!
//! In a stream, the event beyond the limit is cut in place. The rest of the choice is read and
//! dropped until the upstream ends it; then that end is edited. So every end has the provider's
//! form, and its input tokens are the provider's.

mod whole;

use std::collections::{BTreeMap, BTreeSet};

use squall_dialects::json::Edits;
use squall_dialects::model::{Delta, DeltaKind, Finish, Finished, Reading, Saying, Usage};
use squall_dialects::stream::{Frame, FrameKind, Framing, SyntheticEvent};
use squall_dialects::{Event, Quirk, tokens};

pub(super) use self::whole::whole;
use super::budget::{self, Budget, ReceivedTokens, Share};
use super::events::{EventChange, Other, ParsedEvent};
use super::numbers::Numbers;
use super::received::ReceivedParts;
use super::{AnsweredCall, Step, too_short};
use crate::changes;
use crate::faults::llm_rewrite::words;

/// The replacement of the model's output.
#[derive(Debug, Clone)]
pub(super) struct EndedAnswer {
    words: ChoiceWords,
    /// The finish reason of every changed choice.
    finish: Finish,
}

/// The content of a choice before its end.
#[derive(Debug, Clone)]
enum ChoiceWords {
    /// The model's own output, up to this many tokens.
    AtMost(u64),
    /// Other text.
    Instead(Instead),
}

/// Text that replaces a choice.
#[derive(Debug, Clone)]
struct Instead {
    text: String,
    /// Whether the text is a refusal.
    refusal: bool,
}

impl Instead {
    fn saying(&self, call: &AnsweredCall) -> Saying<'_> {
        let provider = call.dialect.provider_of(&call.error_context());
        if self.refusal && !provider.has(Quirk::NoRefusals) {
            Saying::Refusal(&self.text)
        } else {
            Saying::Text(&self.text)
        }
    }
}

impl EndedAnswer {
    /// The first `max_tokens` tokens, and the provider's length reason.
    pub(super) fn at_most(max_tokens: u64) -> Self {
        Self {
            words: ChoiceWords::AtMost(max_tokens),
            finish: Finish::Length,
        }
    }

    /// Other text, with its finish reason.
    pub(super) fn instead_of(instead: changes::Instead) -> Self {
        let (text, refusal, finish) = match instead {
            changes::Instead::Nothing => (String::new(), false, Finish::Done),
            changes::Instead::Filtered => (String::new(), false, Finish::Filtered),
            changes::Instead::Refusal { choice } => {
                (words::refusal(choice).to_owned(), true, Finish::Refused)
            }
            changes::Instead::Garbage { choice } => (words::garbage(choice), false, Finish::Done),
        };
        Self {
            words: ChoiceWords::Instead(Instead { text, refusal }),
            finish,
        }
    }

    fn idle_because(&self, tokens: u64) -> String {
        match &self.words {
            ChoiceWords::AtMost(max_tokens) => too_short(tokens, *max_tokens),
            ChoiceWords::Instead(_) if tokens > 0 => {
                "the answer cannot be put into other words".into()
            }
            ChoiceWords::Instead(instead) if instead.text.is_empty() => {
                "the answer is empty already".into()
            }
            ChoiceWords::Instead(_) => too_short(0, 0),
        }
    }
}

/// A stream whose choices end early.
#[derive(Debug)]
pub(super) struct EarlyEnd {
    how: EndedAnswer,
    framing: Framing,
    choices: BTreeMap<u64, Choice>,
    received: ReceivedParts,
    numbers: Numbers,
    touched: bool,
}

#[derive(Debug)]
struct Choice {
    budget: Budget,
    state: ChoiceState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChoiceState {
    /// Its output passes.
    Open,
    /// It has ended for the agent: its further output is dropped, and its end is edited.
    Cut,
    /// It cannot be replaced, so it passes unchanged.
    Passing,
}

/// What the agent gets of one event.
struct Remainder<'e> {
    edits: Edits<'e>,
    /// The event's new name, if it gets one.
    name: Option<&'static str>,
    /// Whether anything of the event is left.
    keep: bool,
    /// Synthetic events with the text of replaced choices.
    made: Vec<SyntheticEvent>,
    /// Texts, by choice and part, of which not all is left.
    shortened: BTreeSet<(u64, u64)>,
}

impl EventChange for EarlyEnd {
    fn event(&mut self, event: &ParsedEvent<'_>, call: &AnsweredCall, steps: &mut Vec<Step>) {
        let first = steps.len();
        let Remainder {
            edits,
            name,
            keep,
            made,
            ..
        } = self.remainder(event.spoken(), &event.reading, call);
        let edited = keep.then(|| event.edited(&edits, name));
        // New text precedes the end of its choice, and follows everything else of the event.
        if event.reading.finishes.is_empty() {
            steps.extend(edited);
            steps.extend(event.framed(&made));
        } else {
            steps.extend(event.framed(&made));
            steps.extend(edited);
        }
        self.numbers
            .renumber(&mut steps[first..], event, self.touched, self.framing, call);
    }

    fn other(&mut self, frame: &Frame, what: Other, _: &AnsweredCall, steps: &mut Vec<Step>) {
        // Unknown frames may contain dropped output.
        let is_unknown = what == Other::Unread && frame.kind() != FrameKind::Filler;
        if !self.touched || !is_unknown {
            steps.push(Step::Emit(frame.bytes().clone()));
        }
    }

    fn broke_off(&mut self, _steps: &mut Vec<Step>) -> bool {
        !self.touched
    }

    fn touched(&self) -> bool {
        self.touched
    }

    fn counts_anew(&self) -> bool {
        self.touched
    }

    fn idle_because(&self, tokens: u64) -> String {
        self.how.idle_because(tokens)
    }
}

impl EarlyEnd {
    pub(super) fn new(how: EndedAnswer, framing: Framing) -> Self {
        Self {
            how,
            framing,
            choices: BTreeMap::new(),
            received: ReceivedParts::default(),
            numbers: Numbers::default(),
            touched: false,
        }
    }

    /// Shortens or replaces the choices of an event, or of a whole answer.
    fn remainder<'e>(
        &mut self,
        event: Event<'e>,
        reading: &Reading<'_>,
        call: &AnsweredCall,
    ) -> Remainder<'e> {
        let mut rest = Remainder {
            edits: Edits::new(event.document),
            name: None,
            keep: reading.introduces || (self.is_beside(reading)),
            made: Vec::new(),
            shortened: BTreeSet::new(),
        };
        let how = self.how.clone();
        match &how.words {
            ChoiceWords::Instead(instead) => {
                self.replace_choices(instead, event, reading, &mut rest, call);
                self.pass_deltas(event, reading, &mut rest);
                self.pass_edges(reading, &mut rest);
            }
            ChoiceWords::AtMost(_) => {
                self.pass_deltas(event, reading, &mut rest);
                self.pass_edges(reading, &mut rest);
                self.shorten_choices(event, reading, &mut rest, call);
            }
        }
        self.pass_repeats(event, reading, &mut rest);
        budget::forget_mirrors(&mut rest.edits, reading, |choice| self.is_cut(choice));
        let Remainder {
            edits, shortened, ..
        } = &mut rest;
        let is_whole = |choice, part| {
            let mut texts = reading.deltas.iter().filter(|delta| {
                (delta.choice, delta.part, delta.kind) == (choice, part, DeltaKind::Text)
            });
            texts.any(|delta| {
                if delta.repeats {
                    self.received.is_whole(delta)
                } else {
                    !shortened.contains(&(choice, part))
                }
            })
        };
        budget::forget_sources(edits, reading, |choice, part| {
            self.is_cut(choice) && !is_whole(choice, part)
        });
        if let Some(usage) = reading.usage.as_ref().filter(|_| self.touched) {
            self.count_anew(&mut rest.edits, usage, call);
        }
        rest
    }

    /// Whether an event has neither output nor an end of anything.
    fn is_beside(&self, reading: &Reading<'_>) -> bool {
        reading.deltas.is_empty()
            && reading.finishes.is_empty()
            && reading.edges.is_empty()
            && !reading.sources.iter().any(|it| self.is_cut(it.choice))
    }

    /// Replaces the choices whose output begins here, or that end here without output, and edits
    /// the ends of replaced ones.
    fn replace_choices<'e>(
        &mut self,
        instead: &Instead,
        event: Event<'e>,
        reading: &Reading<'_>,
        rest: &mut Remainder<'e>,
        call: &AnsweredCall,
    ) {
        let how = self.how.clone();
        let spoken = reading.deltas.iter();
        let spoken = spoken.filter(|delta| delta.speaks() && !delta.is_thinking());
        let begun = reading
            .edges
            .iter()
            .filter(|edge| !edge.closes && !edge.thinks);
        let begun = begun.map(|edge| edge.choice);
        let begun: Vec<u64> = spoken.map(|delta| delta.choice).chain(begun).collect();
        let can_say_later = call.dialect.provider().has(Quirk::SaysAtTheEnd);
        for choice in begun {
            self.replace(choice, instead, can_say_later, event, rest, call);
        }
        // Sound may come before its words, or without any.
        for choice in reading.sources.iter().map(|source| source.choice) {
            let made = (call.dialect).say_events(event, choice, instead.saying(call));
            if !made.is_empty() || instead.text.is_empty() {
                self.replace(choice, instead, can_say_later, event, rest, call);
            }
        }
        for finished in &reading.finishes {
            rest.keep = true;
            let index = finished.choice;
            let is_so = instead.text.is_empty() && finished.finish == how.finish;
            match self.choice(index).state {
                ChoiceState::Passing => continue,
                ChoiceState::Open if is_so => continue,
                ChoiceState::Open | ChoiceState::Cut => {}
            }
            let (saying, edits) = (instead.saying(call), &mut rest.edits);
            let says = (call.dialect).say(edits, event.document, index, saying, &how.finish);
            self.replace(index, instead, says, event, rest, call);
            if self.is_cut(index) {
                rest.finish(finished, &how.finish, event, call);
            }
        }
    }

    /// Replaces an open choice, unless that is not possible. `says`: the event that ends it has the
    /// new text.
    fn replace(
        &mut self,
        index: u64,
        instead: &Instead,
        says: bool,
        event: Event<'_>,
        rest: &mut Remainder<'_>,
        call: &AnsweredCall,
    ) {
        let choice = self.choice(index);
        if choice.state != ChoiceState::Open {
            return;
        }
        let made = (call.dialect).say_events(event, index, instead.saying(call));
        if says || !made.is_empty() || instead.text.is_empty() {
            choice.state = ChoiceState::Cut;
            self.touched = true;
            rest.made.extend(made);
        } else {
            choice.state = ChoiceState::Passing;
        }
    }

    /// Cuts what exceeds the limit, and what follows in cut choices.
    fn pass_deltas<'e>(
        &mut self,
        event: Event<'e>,
        reading: &Reading<'_>,
        rest: &mut Remainder<'e>,
    ) {
        let is_id = |delta: &Delta<'_>| delta.kind == DeltaKind::ToolId;
        let ids_alone = reading.deltas.iter().all(is_id);
        for delta in reading.deltas.iter().filter(|delta| !delta.repeats) {
            let choice = self.choice(delta.choice);
            if is_id(delta) {
                // An id is removed with its call.
                rest.keep |= ids_alone && choice.state != ChoiceState::Cut;
                continue;
            }
            let share = match choice.state {
                ChoiceState::Passing => Share::All,
                ChoiceState::Cut => Share::Nothing,
                ChoiceState::Open if delta.is_thinking() => {
                    choice.budget.think(delta);
                    Share::All
                }
                ChoiceState::Open => choice.budget.spend(delta, event.document),
            };
            if share != Share::All && choice.state == ChoiceState::Open {
                choice.state = ChoiceState::Cut;
                self.touched = true;
                // Results of tools that the provider runs belong to the calls before them.
                let results = reading.results.iter();
                for (_, result) in results.filter(|(part, _)| *part > delta.part) {
                    rest.edits.remove(*result);
                }
            }
            match share {
                Share::All => self.received.add(delta, &delta.text),
                Share::Part(bytes) => self.received.add(delta, &delta.text[..bytes]),
                Share::Nothing => {}
            }
            rest.keep |= share != Share::Nothing;
            budget::cut(&mut rest.edits, event.document, delta, share);
            if share != Share::All {
                budget::mark_cut(&mut rest.edits, event.document, delta, share);
                let text = (delta.kind == DeltaKind::Text).then_some((delta.choice, delta.part));
                rest.shortened.extend(text);
            }
        }
    }

    /// Passes the starts of parts in open choices, and the ends of parts that the agent received.
    fn pass_edges(&mut self, reading: &Reading<'_>, rest: &mut Remainder<'_>) {
        for edge in &reading.edges {
            let opens = !edge.closes;
            let choice = self.choice(edge.choice);
            // No token is left for what the part would say.
            if opens
                && !edge.thinks
                && choice.state == ChoiceState::Open
                && choice.budget.left() == 0
            {
                choice.state = ChoiceState::Cut;
                self.touched = true;
            }
            if !self.is_cut(edge.choice) {
                rest.keep = true;
                if opens {
                    self.received.begin(edge.choice, edge.part);
                }
            }
            rest.keep |= edge.closes && self.received.has_begun(edge.choice, edge.part);
        }
    }

    /// Edits the ends of shortened choices.
    fn shorten_choices(
        &mut self,
        event: Event<'_>,
        reading: &Reading<'_>,
        rest: &mut Remainder<'_>,
        call: &AnsweredCall,
    ) {
        for finished in &reading.finishes {
            let choice = self.choice(finished.choice);
            // It thought for longer than it may, and said nothing.
            if choice.state == ChoiceState::Open && choice.budget.is_overdrawn() {
                choice.state = ChoiceState::Cut;
                self.touched = true;
            }
            rest.keep = true;
            if self.is_cut(finished.choice) {
                rest.finish(finished, &self.how.finish, event, call);
            }
        }
    }

    /// Makes repetitions of a cut choice equal to what the agent received of it.
    fn pass_repeats<'e>(&self, event: Event<'e>, reading: &Reading<'_>, rest: &mut Remainder<'e>) {
        for delta in reading.deltas.iter().filter(|delta| delta.repeats) {
            let (edits, document) = (&mut rest.edits, event.document);
            if !self.is_cut(delta.choice) {
                rest.keep = true;
            } else if self.received.has_begun(delta.choice, delta.part) {
                rest.keep = true;
                let is_known = self.received.repeat(edits, document, delta);
                if !self.received.is_whole(delta) {
                    delta.mark_cut(edits);
                }
                if !is_known {
                    edits.replace(delta.place, "\"\"");
                }
            } else {
                budget::cut(edits, document, delta, Share::Nothing);
            }
        }
    }

    fn count_anew(&self, edits: &mut Edits<'_>, usage: &Usage, call: &AnsweredCall) {
        let mut received = ReceivedTokens::default();
        for choice in self.choices.values() {
            received.thought += choice.budget.thought();
            received.words += match &self.how.words {
                ChoiceWords::Instead(instead) if choice.state == ChoiceState::Cut => {
                    tokens::count(call.counting(), &instead.text)
                }
                ChoiceWords::Instead(_) | ChoiceWords::AtMost(_) => choice.budget.spent(),
            };
        }
        match self.how.words {
            ChoiceWords::AtMost(_) => budget::count_anew(edits, usage, received),
            ChoiceWords::Instead(_) => budget::count_instead(edits, usage, received),
        }
    }

    fn is_cut(&self, choice: u64) -> bool {
        let known = self.choices.get(&choice);
        known.is_some_and(|choice| choice.state == ChoiceState::Cut)
    }

    fn choice(&mut self, index: u64) -> &mut Choice {
        let most = match self.how.words {
            ChoiceWords::AtMost(max_tokens) => max_tokens,
            // Only thinking passes before the choice is replaced.
            ChoiceWords::Instead(_) => u64::MAX,
        };
        self.choices.entry(index).or_insert_with(|| Choice {
            budget: Budget::new(most),
            state: ChoiceState::Open,
        })
    }
}

impl Remainder<'_> {
    fn finish(&mut self, at: &Finished, finish: &Finish, event: Event<'_>, call: &AnsweredCall) {
        let (edits, dialect) = (&mut self.edits, call.dialect);
        let name = dialect.put_finish(edits, event.document, at, Some(finish));
        self.name = name.or(self.name);
    }
}
