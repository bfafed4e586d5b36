//! Responses that end before the model does: shortened as at `max_tokens`, or replaced by other
//! text.
//!
//! In a stream, the event beyond the limit is cut in place, and the choice ends immediately. The
//! rest of the stream is read and dropped in two cases. If token counts follow, only the provider
//! knows the input tokens. If a dialect cannot create the end, because it repeats data of the
//! upstream, the upstream's end is edited.

mod cutting;
mod whole;

use std::collections::BTreeMap;

use squall_dialects::json::Edits;
use squall_dialects::model::{Delta, DeltaKind, Finish, Saying, Usage};
use squall_dialects::stream::{Frame, Framing};
use squall_dialects::{EndOfChoice, Quirk, tokens};

use self::cutting::Cutting;
pub(super) use self::whole::whole;
use super::budget::{self, Budget, Kept, Share};
use super::call::Call;
use super::events::{Event, Job, Other};
use super::numbers::Numbers;
use super::said::Said;
use super::{Step, too_short};
use crate::changes;
use crate::faults::llm_rewrite::words;

/// Most distinct choices; further ones pass unchanged.
const CHOICES: usize = 128;

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
    fn saying(&self, call: &Call) -> Saying<'_> {
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

    fn instead(&self) -> Option<&Instead> {
        match &self.words {
            ChoiceWords::AtMost(_) => None,
            ChoiceWords::Instead(instead) => Some(instead),
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

/// A stream that ends early.
#[derive(Debug)]
pub(super) struct EarlyEnd {
    how: EndedAnswer,
    framing: Framing,
    usage_expected: bool,
    choices: BTreeMap<u64, Choice>,
    said: Said,
    phase: Phase,
    touched: bool,
    /// Visible tokens that the provider has counted, if it reports counts along with the output.
    told: Option<u64>,
    numbers: Numbers,
}

#[derive(Debug)]
struct Choice {
    budget: Budget,
    state: ChoiceState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChoiceState {
    Open,
    /// It was ended here; further events for it are dropped.
    Truncated,
    /// The upstream ended it.
    Ended,
    /// It cannot be replaced.
    Passing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Passing,
    /// Every choice has ended; only the token counts remain.
    Draining,
    /// Every choice must end, with the upstream's finish.
    Waiting,
}

impl Job for EarlyEnd {
    fn event(&mut self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        self.usage_expected |= event.reading.usage_follows || call.usage;
        let first = steps.len();
        match self.phase {
            Phase::Passing => self.pass(event, call, steps),
            Phase::Draining => self.drain(event, call, steps),
            Phase::Waiting => self.wait(event, call, steps),
        }
        self.numbers
            .go_on(&mut steps[first..], event, self.touched, self.framing, call);
    }

    fn other(&mut self, frame: &Frame, what: Other, _call: &Call, steps: &mut Vec<Step>) {
        // Comments keep connections alive; other frames may contain dropped output.
        if self.phase == Phase::Passing || what != Other::Unread {
            steps.push(Step::Emit(frame.bytes().clone()));
        }
        if self.phase != Phase::Passing && what == Other::Mark {
            steps.push(Step::Finish);
        }
    }

    fn broke_off(&mut self, _steps: &mut Vec<Step>) -> bool {
        self.phase == Phase::Passing
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
            usage_expected: false,
            choices: BTreeMap::new(),
            said: Said::default(),
            phase: Phase::Passing,
            touched: false,
            told: None,
            numbers: Numbers::default(),
        }
    }

    /// Passes, cuts or drops one event.
    fn pass(&mut self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        let mut cutting = Cutting::new(event);
        self.cut_deltas(&mut cutting, call);
        self.cut_edges(&mut cutting, call);
        self.end_choices(&mut cutting, call);
        let Cutting {
            mut edits,
            name,
            cut,
            before,
            keep,
            replaced,
            ..
        } = cutting;
        if let Some(usage) = event.reading.usage.filter(|_| self.touched) {
            self.count_anew(&mut edits, &usage, call);
        }
        steps.extend(event.made(&before));
        let passes = keep && !replaced;
        if passes {
            steps.push(event.edited(&edits, name));
        }
        let begun = self.has_begun(event);
        for choice in cut {
            // Counts that come with each event know of what the agent did not get of this one.
            let most = self.told.filter(|_| !passes);
            self.end_choice(choice, begun, most, event, call, steps);
        }
        self.told = budget::told(event).or(self.told);
        self.end_stream(event, call, steps);
    }

    /// Cuts what exceeds the limit.
    fn cut_deltas(&mut self, cutting: &mut Cutting<'_>, call: &Call) {
        let event = cutting.event;
        cutting.keep |= event.reading.introduces;
        let is_id = |delta: &Delta<'_>| delta.kind == DeltaKind::ToolId;
        let ids_alone = event.reading.deltas.iter().all(is_id);
        for delta in &event.reading.deltas {
            if delta.is_thinking() && !delta.repeats && self.thinks(delta) {
                cutting.keep = true;
                continue;
            }
            // An id goes with its call, and what repeats something has its say when it is cut.
            if is_id(delta) || delta.repeats {
                let goes_on = ids_alone && self.goes_on(delta.choice);
                cutting.keep |= delta.repeats || goes_on;
                continue;
            }
            let speechless = delta.speaks() && !self.can_say(event, delta.choice, call);
            let Some(choice) = self.choice(delta.choice) else {
                cutting.keep = true;
                continue;
            };
            if speechless {
                choice.state = ChoiceState::Passing;
            }
            if choice.state == ChoiceState::Passing {
                cutting.keep = true;
                continue;
            }
            let share = match choice.state {
                ChoiceState::Truncated => Share::Nothing,
                ChoiceState::Open | ChoiceState::Ended | ChoiceState::Passing => {
                    choice.budget.spend(delta, event.document)
                }
            };
            if share != Share::All && choice.state != ChoiceState::Truncated {
                choice.state = ChoiceState::Truncated;
                cutting.cut.insert(delta.choice);
                self.touched = true;
            }
            match share {
                Share::All => self.said.add(delta, &delta.text),
                Share::Part(bytes) => self.said.add(delta, &delta.text[..bytes]),
                Share::Nothing => {}
            }
            cutting.keep |= share != Share::Nothing;
            budget::cut(&mut cutting.edits, event.document, delta, share);
        }
        let cut = &cutting.cut;
        budget::forget_mirrors(&mut cutting.edits, &event.reading, |index| {
            cut.contains(&index)
        });
        let over = |choice: u64| {
            let known = self.choices.get(&choice);
            known.is_some_and(|choice| choice.state == ChoiceState::Truncated)
        };
        budget::forget_sources(&mut cutting.edits, &event.reading, |choice, _| over(choice));
    }

    /// Passes thinking unchanged, unless its choice has ended; false then.
    fn thinks(&mut self, delta: &Delta<'_>) -> bool {
        if let Some(choice) = self.choice(delta.choice) {
            if choice.state == ChoiceState::Truncated {
                return false;
            }
            choice.budget.think(delta);
        }
        self.said.add(delta, &delta.text);
        true
    }

    /// Notes which parts begin. Where other words are said, none does, but for thinking; nor where no
    /// token is left for what it would say.
    fn cut_edges(&mut self, cutting: &mut Cutting<'_>, call: &Call) {
        let event = cutting.event;
        for edge in &event.reading.edges {
            let speaks = !edge.closes && !edge.thinks;
            let can_say = speaks && self.can_say(event, edge.choice, call);
            let instead = self.how.instead().is_some();
            let Some(choice) = self.choice(edge.choice) else {
                cutting.keep = true;
                continue;
            };
            let due = instead || choice.budget.left() == 0;
            if can_say && due && choice.state == ChoiceState::Open {
                choice.state = ChoiceState::Truncated;
                cutting.cut.insert(edge.choice);
                self.touched = true;
            }
            let cut = self
                .choice(edge.choice)
                .is_some_and(|choice| choice.state == ChoiceState::Truncated);
            if !cut {
                cutting.keep = true;
            }
            if !edge.closes && !cut {
                self.said.begin(edge.choice, edge.part);
            }
        }
    }

    /// Records the choices that the upstream ends here; a choice that is cut here has another
    /// finish reason.
    fn end_choices(&mut self, cutting: &mut Cutting<'_>, call: &Call) {
        let event = cutting.event;
        let how = self.how.clone();
        for finished in &event.reading.finishes {
            let can_say = self.can_say(event, finished.choice, call);
            let Some(choice) = self.choice(finished.choice) else {
                cutting.keep = true;
                continue;
            };
            let state = choice.state;
            match (state, how.instead()) {
                (ChoiceState::Open, Some(instead))
                    if can_say && !(instead.text.is_empty() && finished.finish == how.finish) =>
                {
                    // The model had nothing to say.
                    choice.state = ChoiceState::Truncated;
                    let thought = choice.budget.thought();
                    self.touched = true;
                    cutting.end_in_place(finished, instead, &how.finish, thought, call);
                }
                // It thought for longer than it may, and said nothing.
                (ChoiceState::Open, None) if choice.budget.is_overdrawn() => {
                    choice.state = ChoiceState::Truncated;
                    self.touched = true;
                    cutting.finish(finished, Some(&how.finish), call);
                    cutting.keep = true;
                }
                (ChoiceState::Open | ChoiceState::Ended | ChoiceState::Passing, _) => {
                    choice.state = ChoiceState::Ended;
                    cutting.keep = true;
                }
                (ChoiceState::Truncated, None) if cutting.cut.remove(&finished.choice) => {
                    cutting.finish(finished, Some(&how.finish), call);
                    cutting.keep = true;
                }
                // Words and end come in one event: both are made up, and the event goes.
                (ChoiceState::Truncated, Some(_)) if cutting.cut.contains(&finished.choice) => {
                    cutting.finish(finished, None, call);
                }
                (ChoiceState::Truncated, _) => cutting.finish(finished, None, call),
            }
        }
    }

    /// Whether output of a choice still reaches the agent.
    fn goes_on(&self, choice: u64) -> bool {
        let as_begun = self.how.instead().is_none();
        let known = self.choices.get(&choice);
        known.map_or(as_begun, |choice| match choice.state {
            ChoiceState::Open => as_begun,
            ChoiceState::Ended | ChoiceState::Passing => true,
            ChoiceState::Truncated => false,
        })
    }

    /// Whether a choice can be replaced at this event, if it must be.
    fn can_say(&self, event: &Event<'_>, choice: u64, call: &Call) -> bool {
        let Some(instead) = self.how.instead() else {
            return true;
        };
        let open = |choice: &Choice| choice.state == ChoiceState::Open;
        if instead.text.is_empty() || !self.choices.get(&choice).is_none_or(open) {
            return true;
        }
        let saying = instead.saying(call);
        let made = call.dialect.say_events(event.spoken(), choice, saying);
        !made.is_empty() || call.dialect.provider().has(Quirk::SaysAtTheEnd)
    }

    /// Whether the agent received any of the part that an event belongs to.
    fn has_begun(&self, event: &Event<'_>) -> bool {
        let reading = &event.reading;
        let deltas = reading
            .deltas
            .iter()
            .map(|delta| (delta.choice, delta.part));
        let edges = reading.edges.iter().map(|edge| (edge.choice, edge.part));
        let mut parts = deltas.chain(edges);
        parts.any(|(choice, part)| self.said.has_begun(choice, part))
    }

    /// Ends a choice after its output.
    fn end_choice(
        &mut self,
        choice: u64,
        mut kept: bool,
        most: Option<u64>,
        event: &Event<'_>,
        call: &Call,
        steps: &mut Vec<Step>,
    ) {
        let mut tokens = self
            .kept(self.spent(choice, call))
            .all()
            .min(most.unwrap_or(u64::MAX));
        let mut words = None;
        if let Some(instead) = self.how.instead() {
            let said = instead.saying(call);
            let made = call.dialect.say_events(event.spoken(), choice, said);
            kept = !made.is_empty();
            let spent = self.spent(choice, call);
            (tokens, words) = (spent.all(), Some(spent.words));
            steps.extend(event.made(&made));
        }
        let end = EndOfChoice {
            choice,
            finish: &self.how.finish,
            tokens,
            instead: words,
            kept,
        };
        let events = call.dialect.finish_events(event.spoken(), &end);
        if events.is_empty() {
            self.phase = Phase::Waiting;
        }
        steps.extend(event.made(&events));
    }

    /// Ends the stream once all its choices have ended and at least one was cut.
    fn end_stream(&mut self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        if !self.touched || self.phase == Phase::Waiting {
            return;
        }
        let open = self
            .choices
            .values()
            .any(|choice| matches!(choice.state, ChoiceState::Open | ChoiceState::Passing));
        let all_seen = self.choices.len() as u64 >= call.choices;
        if open || !all_seen {
            return;
        }
        if event.reading.ends {
            steps.push(Step::Finish);
        } else if self.usage_expected && event.reading.usage.is_none() {
            self.phase = Phase::Draining;
        } else {
            Self::close(event, call, steps);
        }
    }

    /// Drops events until the token counts arrive.
    fn drain(&self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        let Some(usage) = event.reading.usage else {
            if event.reading.ends {
                steps.extend([event.pass(), Step::Finish]);
            }
            return;
        };
        // Some servers report counts with every event; only the last one is passed on.
        if event.speaks() && event.reading.finishes.is_empty() {
            return;
        }
        let mut edits = Edits::new(event.document);
        for delta in &event.reading.deltas {
            budget::cut(&mut edits, event.document, delta, Share::Nothing);
        }
        budget::forget_mirrors(&mut edits, &event.reading, |_| true);
        budget::forget_sources(&mut edits, &event.reading, |_, _| true);
        let mut name = None;
        for finished in &event.reading.finishes {
            let finish = Some(&self.how.finish);
            let dialect = call.dialect;
            name = dialect.put_finish(&mut edits, event.document, finished, finish);
        }
        self.count_anew(&mut edits, &usage, call);
        steps.push(event.edited(&edits, name));
        if event.reading.ends {
            steps.push(Step::Finish);
        } else {
            Self::close(event, call, steps);
        }
    }

    /// Passes only the upstream's end, adapted to what the agent received.
    fn wait(&self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        let mut cutting = Cutting::new(event);
        let ends = !event.reading.finishes.is_empty() || event.reading.ends;
        // Citations of later text do not apply to what the agent received.
        cutting.keep &= event.reading.sources.is_empty();
        cutting.keep |= ends || event.reading.introduces;
        for edge in &event.reading.edges {
            cutting.keep |= edge.closes && self.said.has_begun(edge.choice, edge.part);
        }
        // The first edit of a place applies.
        for finished in &event.reading.finishes {
            cutting.finish(finished, Some(&self.how.finish), call);
            if let Some(instead) = self.how.instead() {
                cutting.say(instead, finished.choice, &self.how.finish, call);
            }
        }
        for delta in &event.reading.deltas {
            if !delta.repeats {
                budget::cut(&mut cutting.edits, event.document, delta, Share::Nothing);
            } else if self.said.has_begun(delta.choice, delta.part) {
                let known = self.said.repeat(&mut cutting.edits, event.document, delta);
                if !self.said.is_whole(delta) {
                    delta.mark_cut(&mut cutting.edits);
                }
                if !known {
                    // It was opened, and nothing was said of it.
                    cutting.edits.replace(delta.place, "\"\"");
                }
                cutting.keep = true;
            } else {
                budget::cut(&mut cutting.edits, event.document, delta, Share::Nothing);
            }
        }
        budget::forget_mirrors(&mut cutting.edits, &event.reading, |_| true);
        let texts = event.reading.deltas.iter();
        let texts = texts.filter(|delta| delta.kind == DeltaKind::Text);
        let whole: Vec<_> = texts
            .filter(|delta| delta.repeats && self.said.is_whole(delta))
            .map(|delta| (delta.choice, delta.part))
            .collect();
        budget::forget_sources(&mut cutting.edits, &event.reading, |choice, part| {
            !whole.contains(&(choice, part))
        });
        if let Some(usage) = &event.reading.usage {
            self.count_anew(&mut cutting.edits, usage, call);
        }
        if cutting.keep {
            steps.push(event.edited(&cutting.edits, cutting.name));
        }
        if event.reading.ends {
            steps.push(Step::Finish);
        }
    }

    /// Ends the stream like the provider.
    fn close(event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        let end = call.dialect.provider().end_event();
        steps.extend(event.made(end.as_slice()));
        steps.push(Step::Finish);
    }

    fn count_anew(&self, edits: &mut Edits<'_>, usage: &Usage, call: &Call) {
        let kept = self
            .choices
            .keys()
            .map(|choice| self.spent(*choice, call))
            .sum();
        match self.how.words {
            ChoiceWords::AtMost(_) => budget::count_anew(edits, usage, self.kept(kept)),
            ChoiceWords::Instead(_) => budget::count_instead(edits, usage, kept),
        }
    }

    /// Tokens that the agent received, at least as many as the provider has reported to it.
    fn kept(&self, kept: Kept) -> Kept {
        let told = self.told.unwrap_or_default();
        Kept {
            words: kept.words.max(told.saturating_sub(kept.thought)),
            ..kept
        }
    }

    /// Tokens of a choice that the agent received.
    fn spent(&self, choice: u64, call: &Call) -> Kept {
        let Some(choice) = self.choices.get(&choice) else {
            return Kept::default();
        };
        let kept = Kept::of(&choice.budget);
        match self.how.instead() {
            Some(instead) if choice.state == ChoiceState::Truncated => {
                let words = tokens::count(call.counting(), &instead.text);
                Kept { words, ..kept }
            }
            _ => kept,
        }
    }

    /// The state of a choice; `None` if there are too many.
    fn choice(&mut self, index: u64) -> Option<&mut Choice> {
        if self.choices.len() == CHOICES && !self.choices.contains_key(&index) {
            return None;
        }
        let most = match self.how.words {
            ChoiceWords::AtMost(max_tokens) => max_tokens,
            ChoiceWords::Instead(_) => 0,
        };
        let new = || Choice {
            budget: Budget::new(most),
            state: ChoiceState::Open,
        };
        Some(self.choices.entry(index).or_insert_with(new))
    }
}
