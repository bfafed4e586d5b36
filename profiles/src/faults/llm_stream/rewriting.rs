//! Answers whose tool calls say something else, and whole answers whose texts do; see
//! [`super::drifting`] for streamed ones.
//!
//! What is to be rewritten has to be known whole. Of a stream, the events from the first piece of a
//! part that says something to its last are held, then given all at once, with the new text spread
//! over them; a tool's name comes in one piece, so nothing is held for it. Everything else passes as
//! it comes, pieces that say nothing yet included.

mod called;
mod pages;

use bytes::Bytes;
use squall_dialects::json::Document;
use squall_dialects::model::{Delta, DeltaKind, Reading};
use squall_dialects::stream::Frame;

use self::called::{PartKey, ToolsByPart};
use self::pages::{AnswerPage, Done, is_meant, kind, rewrite_pages};
use super::call::Call;
use super::events::{Event, Job, Other};
use super::{DEFAULT_HOLD, Step};
use crate::changes::Rewrite;

/// A stream whose texts or tool calls are rewritten.
#[derive(Debug)]
pub(super) struct Rewriting {
    rewrite: Rewrite,
    /// Events from the first piece of what is to be rewritten.
    held: Vec<Frame>,
    bytes: usize,
    /// The part that the first of them belongs to.
    holding: Option<PartKey>,
    /// The tools that were called, in held events too.
    called: ToolsByPart,
    done: Done,
}

impl Rewriting {
    pub(super) fn new(rewrite: Rewrite) -> Self {
        Self {
            rewrite,
            held: Vec::new(),
            bytes: 0,
            holding: None,
            called: ToolsByPart::default(),
            done: Done::default(),
        }
    }

    /// The part that an event holds a piece of that is to be rewritten.
    fn wanted(&mut self, event: &Event<'_>) -> Option<PartKey> {
        let found = event.reading.deltas.iter().find(|delta| {
            self.called.hear(delta);
            is_meant(&self.rewrite, delta, &self.called)
        })?;
        Some((found.choice, found.part))
    }

    /// Whether what an event holds of such a part is empty.
    fn says_nothing_yet(&self, event: &Event<'_>) -> bool {
        let speaks = |delta: &Delta<'_>| {
            is_meant(&self.rewrite, delta, &self.called) && !delta.text.is_empty()
        };
        let deltas = &event.reading.deltas;
        !deltas.iter().any(|delta| delta.repeats || speaks(delta))
    }

    /// Whether the part at hand is complete with this event, or was before it.
    fn completes(&self, event: &Event<'_>, call: &Call) -> bool {
        let reading = &event.reading;
        if reading.ends || (reading.usage.is_some() && reading.deltas.is_empty()) {
            return true;
        }
        // Of several choices the events are mixed, so all of them are held to the end.
        if call.choices > 1 {
            return false;
        }
        let wanted = kind(&self.rewrite);
        let other = |delta: &Delta<'_>| {
            let of_the_part = Some((delta.choice, delta.part)) == self.holding
                && (delta.kind == wanted || (delta.kind.is_of_a_call() && wanted.is_of_a_call()));
            delta.repeats || !of_the_part
        };
        !reading.finishes.is_empty()
            || !reading.edges.is_empty()
            || reading.deltas.iter().any(other)
    }

    fn hold(
        &mut self,
        event: &Event<'_>,
        key: Option<PartKey>,
        call: &Call,
        steps: &mut Vec<Step>,
    ) {
        self.holding = self.holding.or(key);
        self.bytes += event.frame.bytes().len();
        self.held.push(event.frame.clone());
        if self.bytes > DEFAULT_HOLD {
            self.done.why = Some(format!("the answer is longer than {DEFAULT_HOLD} bytes"));
            self.done.over = true;
            self.give_up(steps);
        } else if self.completes(event, call) {
            self.release(call, steps);
        }
    }

    /// Emits the held events unchanged.
    fn give_up(&mut self, steps: &mut Vec<Step>) {
        (self.bytes, self.holding) = (0, None);
        let held = self.held.drain(..);
        steps.extend(held.map(|frame| Step::Emit(frame.into_bytes())));
    }

    /// Rewrites the held events and emits them.
    fn release(&mut self, call: &Call, steps: &mut Vec<Step>) {
        (self.bytes, self.holding) = (0, None);
        let held = std::mem::take(&mut self.held);
        let data: Vec<_> = held
            .iter()
            .map(|frame| frame.data().unwrap_or_default())
            .collect();
        // Each was read before it was held.
        let documents: Vec<_> = data
            .iter()
            .filter_map(|data| Document::parse(data).ok())
            .collect();
        let events: Vec<_> = held
            .iter()
            .zip(&documents)
            .map(|(frame, document)| Event::new(frame, document, call))
            .collect();
        self.emit(&events, call, steps);
    }

    /// Rewrites events and gives them out.
    fn emit(&mut self, events: &[Event<'_>], call: &Call, steps: &mut Vec<Step>) {
        let pages: Vec<AnswerPage<'_>> = events
            .iter()
            .map(|event| AnswerPage::new(event.document, &event.reading))
            .collect();
        let edits = rewrite_pages(&self.rewrite, &pages, call, &mut self.done);
        for (event, edited) in events.iter().zip(&edits) {
            steps.push(event.edited(&edited.edits, edited.name));
        }
    }
}

impl Job for Rewriting {
    fn event(&mut self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        let wanted = self.wanted(event).filter(|_| !self.done.over);
        let in_pieces = kind(&self.rewrite) != DeltaKind::ToolName;
        if self.held.is_empty() {
            if wanted.is_none() || !in_pieces {
                self.emit(std::slice::from_ref(event), call, steps);
            } else if self.says_nothing_yet(event) {
                self.done.hear(&event.reading);
                steps.push(event.pass());
            } else {
                self.hold(event, wanted, call, steps);
            }
            return;
        }
        let reading = &event.reading;
        let goes_on = wanted.is_some() && (wanted == self.holding || call.choices > 1);
        let says_nothing = reading.deltas.is_empty()
            && reading.edges.is_empty()
            && reading.finishes.is_empty()
            && reading.usage.is_none()
            && !reading.ends;
        if goes_on || (call.choices > 1 && !self.completes(event, call)) {
            self.hold(event, wanted, call, steps);
        } else if says_nothing {
            steps.push(event.pass());
        } else {
            self.release(call, steps);
            self.event(event, call, steps);
        }
    }

    fn other(&mut self, frame: &Frame, what: Other, call: &Call, steps: &mut Vec<Step>) {
        if what != Other::Comment {
            self.release(call, steps);
        }
        steps.push(Step::Emit(frame.bytes().clone()));
    }

    fn end(&mut self, call: &Call, steps: &mut Vec<Step>) {
        self.release(call, steps);
    }

    fn broke_off(&mut self, steps: &mut Vec<Step>) -> bool {
        self.give_up(steps);
        true
    }

    fn touched(&self) -> bool {
        self.done.touched
    }

    fn idle_because(&self, _tokens: u64) -> String {
        self.done.idle_because(&self.rewrite)
    }
}

/// A rewritten whole response, or why it stays unchanged.
pub(super) fn whole(
    rewrite: &Rewrite,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &Call,
) -> Result<Bytes, String> {
    let mut done = Done::default();
    let pages = [AnswerPage::new(document, reading)];
    let edited = rewrite_pages(rewrite, &pages, call, &mut done);
    match edited.first() {
        Some(edited) if done.touched => Ok(Bytes::from(edited.edits.apply())),
        _ => Err(done.idle_because(rewrite)),
    }
}
