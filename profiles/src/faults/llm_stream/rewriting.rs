//! Answers with other texts or tool calls.
//!
//! A part must be complete before it is rewritten. So the events of a stream from the part's first
//! text to its last are held, then sent at once, with the new text spread over them. A tool's name
//! comes in one piece, so nothing is held for it. All other events pass as they arrive.

mod called;
mod pages;

use bytes::Bytes;
use squall_dialects::json::Document;
use squall_dialects::model::{Delta, DeltaKind, Reading};
use squall_dialects::stream::Frame;

use self::called::{PartKey, ToolsByPart};
use self::pages::{AnswerPage, Done, is_meant, kind, rewrite_pages};
use super::events::{EventChange, Other, ParsedEvent};
use super::{AnsweredCall, LONGEST_PART, Step};
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

    /// The part to rewrite that an event has a piece of.
    fn part_in(&mut self, event: &ParsedEvent<'_>) -> Option<PartKey> {
        let found = event.reading.deltas.iter().find(|delta| {
            self.called.note(delta);
            is_meant(&self.rewrite, delta, &self.called)
        })?;
        Some((found.choice, found.part))
    }

    /// Whether an event only begins such a part.
    fn is_empty(&self, event: &ParsedEvent<'_>) -> bool {
        let speaks = |delta: &Delta<'_>| {
            is_meant(&self.rewrite, delta, &self.called) && !delta.text.is_empty()
        };
        let deltas = &mut event.reading.deltas.iter();
        !deltas.any(|delta| delta.repeats || speaks(delta))
    }

    /// Whether the part at hand is complete with this event, or was before it.
    fn completes(&self, event: &ParsedEvent<'_>, call: &AnsweredCall) -> bool {
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
        event: &ParsedEvent<'_>,
        key: Option<PartKey>,
        call: &AnsweredCall,
        steps: &mut Vec<Step>,
    ) {
        self.holding = self.holding.or(key);
        self.bytes += event.frame.bytes().len();
        self.held.push(event.frame.clone());
        if self.bytes > LONGEST_PART {
            self.done.why = Some(format!("the answer is longer than {LONGEST_PART} bytes"));
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
    fn release(&mut self, call: &AnsweredCall, steps: &mut Vec<Step>) {
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
            .map(|(frame, document)| ParsedEvent::new(frame, document, call))
            .collect();
        self.emit(&events, call, steps);
    }

    /// Rewrites events and gives them out.
    fn emit(&mut self, events: &[ParsedEvent<'_>], call: &AnsweredCall, steps: &mut Vec<Step>) {
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

impl EventChange for Rewriting {
    fn event(&mut self, event: &ParsedEvent<'_>, call: &AnsweredCall, steps: &mut Vec<Step>) {
        let part = self.part_in(event).filter(|_| !self.done.over);
        let in_pieces = kind(&self.rewrite) != DeltaKind::ToolName;
        if self.held.is_empty() {
            if part.is_none() || !in_pieces {
                self.emit(std::slice::from_ref(event), call, steps);
            } else if self.is_empty(event) {
                self.done.note(&event.reading);
                steps.push(event.pass());
            } else {
                self.hold(event, part, call, steps);
            }
            return;
        }
        let reading = &event.reading;
        let is_beside = reading.deltas.is_empty()
            && reading.edges.is_empty()
            && reading.finishes.is_empty()
            && reading.usage.is_none()
            && !reading.ends;
        let goes_on = part.is_some() && (part == self.holding || call.choices > 1);
        if is_beside && event.frame.name() == Some("ping") {
            steps.push(event.pass());
        } else if goes_on || is_beside || (call.choices > 1 && !self.completes(event, call)) {
            self.hold(event, part, call, steps);
        } else {
            self.release(call, steps);
            self.event(event, call, steps);
        }
    }

    fn other(&mut self, frame: &Frame, what: Other, call: &AnsweredCall, steps: &mut Vec<Step>) {
        if what != Other::Comment {
            self.release(call, steps);
        }
        steps.push(Step::Emit(frame.bytes().clone()));
    }

    fn end(&mut self, call: &AnsweredCall, steps: &mut Vec<Step>) {
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
    call: &AnsweredCall,
) -> Result<Bytes, String> {
    let mut done = Done::default();
    let pages = [AnswerPage::new(document, reading)];
    let edited = rewrite_pages(rewrite, &pages, call, &mut done);
    match edited.first() {
        Some(edited) if done.touched => Ok(Bytes::from(edited.edits.apply())),
        _ => Err(done.idle_because(rewrite)),
    }
}
