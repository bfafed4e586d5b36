//! Answers with other texts or tool calls.
//!
//! A part must be complete before it is rewritten. So the events of a stream are held from the
//! first piece of what is rewritten to the end of the answer, then sent at once, with the new text
//! spread over them. The events before it pass as they arrive, and so do keep-alives.

mod called;
mod pages;

use bytes::Bytes;
use squall_dialects::json::Document;
use squall_dialects::model::Reading;
use squall_dialects::stream::Frame;

use self::pages::{AnswerPage, Done, rewrite_pages};
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
    done: Done,
}

impl Rewriting {
    pub(super) fn new(rewrite: Rewrite) -> Self {
        Self {
            rewrite,
            held: Vec::new(),
            bytes: 0,
            done: Done::default(),
        }
    }

    /// Emits the held events unchanged.
    fn give_up(&mut self, steps: &mut Vec<Step>) {
        self.bytes = 0;
        let held = self.held.drain(..);
        steps.extend(held.map(|frame| Step::Emit(frame.into_bytes())));
    }

    /// Rewrites the held events and emits them.
    fn release(&mut self, call: &AnsweredCall, steps: &mut Vec<Step>) {
        self.bytes = 0;
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
            .map(|(frame, document)| {
                let mut event = ParsedEvent::new(frame, document, call);
                event.reading.count_by(call.counting());
                event
            })
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
        let begins = !self.done.over && self.done.note(&self.rewrite, &event.reading);
        if self.held.is_empty() && !begins {
            self.emit(std::slice::from_ref(event), call, steps);
        } else if event.frame.name() == Some("ping") {
            steps.push(event.pass());
        } else {
            self.bytes += event.frame.bytes().len();
            self.held.push(event.frame.clone());
            if self.bytes > LONGEST_PART {
                self.done.why = Some(format!("the answer is longer than {LONGEST_PART} bytes"));
                self.done.over = true;
                self.give_up(steps);
            } else if event.reading.ends {
                self.release(call, steps);
            }
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
