//! Faults on streamed responses: from bytes to events, and from steps to well-formed bytes.

use std::fmt::Debug;

use squall_dialects::Tally;
use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{Delta, Reading};
use squall_dialects::stream::{DEFAULT_LIMIT, Frame, FrameKind, Framing, Joiner, Made, Splitter};

use super::Step;
use super::call::Call;
use super::heard::UpstreamTexts;

/// The effect of a fault on a stream, event by event.
pub(super) trait Job: Debug + Send {
    /// Passes, changes or drops an event.
    fn event(&mut self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>);

    /// Passes or drops a frame without JSON data.
    fn other(&mut self, frame: &Frame, what: Other, call: &Call, steps: &mut Vec<Step>) {
        let _ = (what, call);
        steps.push(Step::Emit(frame.bytes().clone()));
    }

    /// The stream has ended; held events are emitted.
    fn end(&mut self, call: &Call, steps: &mut Vec<Step>) {
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

/// Splits a stream into events and applies a job to them.
#[derive(Debug)]
pub(super) struct EventEditor {
    splitter: Splitter,
    joiner: Joiner,
    job: Box<dyn Job>,
    /// Tokens the upstream sent so far.
    seen: u64,
    heard: UpstreamTexts,
    over: bool,
}

impl EventEditor {
    pub(super) fn new(job: Box<dyn Job>, framing: Framing) -> Self {
        Self {
            splitter: Splitter::new(framing, DEFAULT_LIMIT),
            joiner: Joiner::new(framing),
            job,
            seen: 0,
            heard: UpstreamTexts::default(),
            over: false,
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8], call: &mut Call) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        let frames = self.splitter.push(chunk);
        let steps = self.frames(&frames, call);
        self.joined(steps)
    }

    pub(super) fn finish(&mut self, call: &mut Call) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        let frames = self.splitter.finish();
        let mut steps = self.frames(&frames, call);
        if !self.over {
            self.job.end(call, &mut steps);
        }
        self.over = true;
        self.joined(steps)
    }

    pub(super) fn broke_off(&mut self) -> Vec<Step> {
        let rest = self.splitter.finish();
        let mut steps = Vec::new();
        if !std::mem::replace(&mut self.over, true) && self.job.broke_off(&mut steps) {
            steps.extend(rest.into_iter().map(|frame| Step::Emit(frame.into_bytes())));
        }
        self.joined(steps)
    }

    pub(super) fn touched(&self) -> bool {
        self.job.touched()
    }

    pub(super) fn counts_anew(&self) -> bool {
        self.job.counts_anew()
    }

    pub(super) fn untouched_because(&self) -> Option<String> {
        (self.over && !self.job.touched()).then(|| self.job.idle_because(self.seen))
    }

    /// The token counts of a stream that passed unchanged to its end; otherwise `None`.
    pub(super) fn heard(&mut self) -> Option<Box<Tally>> {
        (self.over && !self.job.touched()).then(|| self.heard.take())?
    }

    fn frames(&mut self, frames: &[Frame], call: &mut Call) -> Vec<Step> {
        let mut steps = Vec::with_capacity(frames.len());
        for frame in frames {
            self.frame(frame, call, &mut steps);
            self.over = matches!(steps.last(), Some(Step::Finish | Step::End(_)));
            if self.over {
                break;
            }
        }
        steps
    }

    fn frame(&mut self, frame: &Frame, call: &mut Call, steps: &mut Vec<Step>) {
        let Some(data) = frame.data() else {
            let what = match frame.kind() {
                FrameKind::Event => Other::Comment,
                FrameKind::Oversize | FrameKind::Unfinished | FrameKind::Filler => Other::Unread,
            };
            return self.job.other(frame, what, call, steps);
        };
        let Ok(document) = Document::parse(&data) else {
            let mark = call.dialect.provider().is_end_mark(&data);
            let what = if mark { Other::Mark } else { Other::Unread };
            return self.job.other(frame, what, call, steps);
        };
        let mut event = Event::new(frame, &document, call);
        call.count(&mut event.reading);
        self.seen += event.tokens();
        self.heard.note(&event.reading, frame.bytes().len(), call);
        self.job.event(&event, call, steps);
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
pub(super) struct Event<'d> {
    pub(super) frame: &'d Frame,
    pub(super) document: &'d Document<'d>,
    pub(super) reading: Reading<'d>,
}

impl<'d> Event<'d> {
    pub(super) fn new(frame: &'d Frame, document: &'d Document<'d>, call: &Call) -> Self {
        let spoken = squall_dialects::Event::of(frame, document);
        let mut reading = call.dialect.read(spoken);
        reading.count_by(call.counting());
        Self {
            frame,
            document,
            reading,
        }
    }

    /// Tokens the model wrote in it.
    pub(super) fn tokens(&self) -> u64 {
        self.reading.deltas.iter().map(Delta::tokens).sum()
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
    pub(super) fn made(&self, events: &[Made]) -> Vec<Step> {
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
