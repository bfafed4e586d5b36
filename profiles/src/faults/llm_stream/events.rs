//! Faults on streamed responses: from bytes to events, and from steps to well-formed bytes.

use std::fmt::Debug;

use squall_dialects::Tally;
use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{Delta, Reading};
use squall_dialects::stream::{
    DEFAULT_LIMIT, Frame, FrameKind, Framing, Joiner, Splitter, SyntheticEvent,
};
use squall_dialects::tokens::Counting;

use super::AnsweredCall;
use crate::faults::editing::{EventsEditor, Step};

/// The effect of a fault on a stream, event by event.
pub(super) trait EventChange: Debug {
    /// Passes, changes or drops an event.
    fn event(&mut self, event: &ParsedEvent<'_>, call: &AnsweredCall, steps: &mut Vec<Step>);

    /// Passes or drops a frame without JSON data.
    fn other(&mut self, frame: &Frame, what: Other, call: &AnsweredCall, steps: &mut Vec<Step>) {
        let _ = (what, call);
        steps.push(Step::Emit(frame.bytes().clone()));
    }

    /// The stream has ended; held events are emitted.
    fn end(&mut self, call: &AnsweredCall, steps: &mut Vec<Step>) {
        let _ = (call, steps);
    }

    /// The upstream broke off; held events are emitted unchanged. False if only the response's end
    /// was missing, so that the splitter's remainder is dropped.
    fn broke_off(&mut self, steps: &mut Vec<Step>) -> bool {
        let _ = steps;
        true
    }

    /// Whether anything was changed or delayed so far.
    fn touched(&self) -> bool;

    /// Whether the stream announces token counts that were changed here.
    fn counts_anew(&self) -> bool {
        false
    }

    /// Why nothing was changed in a complete stream with this many tokens.
    fn idle_because(&self, tokens: u64) -> String;
}

/// A frame without JSON data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    /// The end mark of the stream.
    Mark,
    /// A keep-alive comment.
    Comment,
    /// Unknown.
    Unread,
}

/// Splits a stream into events and applies a change to them.
#[derive(Debug)]
pub(super) struct StreamEditor {
    call: AnsweredCall,
    splitter: Splitter,
    joiner: Joiner,
    change: Box<dyn EventChange>,
    /// Tokens the upstream sent so far.
    seen: u64,
    /// Of the upstream's events; `None` if they are too long.
    tally: Option<Box<Tally>>,
    /// Bytes of these events.
    bytes: usize,
    over: bool,
}

/// Longest stream with a tally, in bytes.
const TALLIED: usize = 1 << 20;

impl EventsEditor for StreamEditor {
    fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        let frames = self.splitter.push(chunk);
        let steps = self.frames(&frames);
        self.joined(steps)
    }

    fn finish(&mut self) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        let frames = self.splitter.finish();
        let mut steps = self.frames(&frames);
        if !self.over {
            self.change.end(&self.call, &mut steps);
        }
        self.over = true;
        self.joined(steps)
    }

    fn broke_off(&mut self) -> Vec<Step> {
        let rest = self.splitter.finish();
        let mut steps = Vec::new();
        if !std::mem::replace(&mut self.over, true) && self.change.broke_off(&mut steps) {
            steps.extend(rest.into_iter().map(|frame| Step::Emit(frame.into_bytes())));
        }
        self.joined(steps)
    }

    fn touched(&self) -> bool {
        self.change.touched()
    }

    fn counts_anew(&self) -> bool {
        self.change.counts_anew()
    }

    fn tally(&mut self) -> Option<Box<Tally>> {
        let is_unchanged = self.over && !self.change.touched();
        self.tally.take().filter(|_| is_unchanged)
    }

    fn untouched_because(&self) -> Option<String> {
        (self.over && !self.change.touched()).then(|| self.change.idle_because(self.seen))
    }
}

impl StreamEditor {
    pub(super) fn new(change: Box<dyn EventChange>, framing: Framing, call: AnsweredCall) -> Self {
        let tally = Tally::new(call.dialect, call.model().map(Counting::of_model));
        Self {
            call,
            splitter: Splitter::new(framing, DEFAULT_LIMIT),
            joiner: Joiner::new(framing),
            change,
            seen: 0,
            tally: Some(Box::new(tally)),
            bytes: 0,
            over: false,
        }
    }

    fn frames(&mut self, frames: &[Frame]) -> Vec<Step> {
        let mut steps = Vec::with_capacity(frames.len());
        for frame in frames {
            self.frame(frame, &mut steps);
            self.over = matches!(steps.last(), Some(Step::Finish | Step::End(_)));
            if self.over {
                break;
            }
        }
        steps
    }

    fn frame(&mut self, frame: &Frame, steps: &mut Vec<Step>) {
        let Self { call, change, .. } = self;
        let Some(data) = frame.data() else {
            let what = match frame.kind() {
                FrameKind::Event => Other::Comment,
                FrameKind::Oversize | FrameKind::Unfinished | FrameKind::Filler => Other::Unread,
            };
            return change.other(frame, what, call, steps);
        };
        let Ok(document) = Document::parse(&data) else {
            let mark = call.dialect.provider().is_end_mark(&data);
            let what = if mark { Other::Mark } else { Other::Unread };
            return change.other(frame, what, call, steps);
        };
        let mut event = ParsedEvent::new(frame, &document, call);
        call.count(&mut event.reading);
        self.seen += event.tokens();
        self.bytes += frame.bytes().len();
        self.tally.take_if(|_| self.bytes > TALLIED);
        if let Some(tally) = &mut self.tally {
            tally.note(&event.reading);
        }
        change.event(&event, call, steps);
    }

    /// Joins the steps so that the rest of the stream is well-formed.
    fn joined(&mut self, steps: Vec<Step>) -> Vec<Step> {
        if !self.joiner.is_needed() {
            return steps;
        }
        let mut joined = Vec::with_capacity(steps.len() + 1);
        for step in steps {
            match step {
                Step::Emit(bytes) => joined.push(Step::Emit(self.joiner.join(bytes))),
                Step::Finish => joined.extend([Step::Emit(self.joiner.close()), Step::Finish]),
                Step::Wait(_) | Step::End(_) => joined.push(step),
            }
        }
        joined
    }
}

/// A parsed event.
pub(super) struct ParsedEvent<'d> {
    pub(super) frame: &'d Frame,
    pub(super) document: &'d Document<'d>,
    pub(super) reading: Reading<'d>,
}

impl<'d> ParsedEvent<'d> {
    pub(super) fn new(frame: &'d Frame, document: &'d Document<'d>, call: &AnsweredCall) -> Self {
        let spoken = squall_dialects::Event::of(frame, document);
        Self {
            frame,
            document,
            reading: call.dialect.read(spoken),
        }
    }

    /// Tokens the model wrote in it.
    pub(super) fn tokens(&self) -> u64 {
        super::written(&self.reading)
    }

    /// Whether it contains model output.
    pub(super) fn speaks(&self) -> bool {
        self.reading.deltas.iter().any(Delta::speaks)
    }

    /// The event for dialects.
    pub(super) fn spoken(&self) -> squall_dialects::Event<'_> {
        squall_dialects::Event::of(self.frame, self.document)
    }

    /// Synthetic events with the framing of this one.
    pub(super) fn framed(&self, events: &[SyntheticEvent]) -> Vec<Step> {
        let framed = events.iter().map(|event| self.frame.following(event));
        framed.map(Step::Emit).collect()
    }

    /// The unchanged event.
    pub(super) fn pass(&self) -> Step {
        Step::Emit(self.frame.bytes().clone())
    }

    /// The event with edits and possibly another name; unchanged without any.
    pub(super) fn edited(&self, edits: &Edits<'_>, name: Option<&str>) -> Step {
        if edits.is_empty() {
            self.pass()
        } else {
            Step::Emit(self.frame.with(name, &edits.apply()))
        }
    }
}
