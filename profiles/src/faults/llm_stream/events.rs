//! Faults on an answer that comes as events.

use std::time::Duration;

use squall_dialects::Dialect;
use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{Delta, Reading};
use squall_dialects::stream::{
    DEFAULT_LIMIT, Frame, FrameKind, Framing, Joiner, Made, Splitter, Template,
};

use super::budget::{self, Budget};
use super::truncation::Truncation;
use super::{Step, pace, too_short};
use crate::fault::StreamFault;
use crate::plan::Ending;

/// Applies a fault event by event.
#[derive(Debug)]
pub(super) struct EventEditor {
    dialect: &'static dyn Dialect,
    splitter: Splitter,
    joiner: Joiner,
    job: Job,
    /// Tokens the upstream sent so far.
    seen: u64,
    touched: bool,
    over: bool,
}

#[derive(Debug)]
enum Job {
    Truncate(Truncation),
    Cut {
        after_tokens: u64,
        budget: Budget,
    },
    Slow {
        first: Option<Duration>,
        tokens_per_second: Option<f64>,
    },
}

impl EventEditor {
    pub(super) fn new(
        fault: &StreamFault,
        dialect: &'static dyn Dialect,
        framing: Framing,
    ) -> Self {
        let job = match *fault {
            StreamFault::Truncate { max_tokens } => {
                Job::Truncate(Truncation::new(max_tokens, framing))
            }
            StreamFault::Cut { after_tokens } => Job::Cut {
                after_tokens,
                budget: Budget::new(after_tokens),
            },
            StreamFault::Slow {
                time_to_first_token,
                tokens_per_second,
            } => Job::Slow {
                first: Some(time_to_first_token),
                tokens_per_second,
            },
        };
        Self {
            dialect,
            splitter: Splitter::new(framing, DEFAULT_LIMIT),
            joiner: Joiner::new(framing),
            job,
            seen: 0,
            touched: false,
            over: false,
        }
    }

    /// What the request lets one expect of the stream.
    pub(super) fn expect(&mut self, choices: u64, usage: bool) {
        if let Job::Truncate(truncation) = &mut self.job {
            truncation.expect(choices, usage);
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        let frames = self.splitter.push(chunk);
        self.frames(&frames)
    }

    pub(super) fn finish(&mut self) -> Vec<Step> {
        if self.over {
            return Vec::new();
        }
        let frames = self.splitter.finish();
        let steps = self.frames(&frames);
        self.over = true;
        steps
    }

    pub(super) fn broke_off(&mut self) -> Vec<Step> {
        let rest = self.splitter.finish();
        // Of a truncated answer nothing but its end was still to come.
        let pass = !self.over && !self.is_draining();
        self.over = true;
        let pieces = rest.into_iter().filter(|_| pass);
        let steps = pieces.map(|frame| Step::Emit(frame.into_bytes())).collect();
        self.joined(steps)
    }

    pub(super) fn touched(&self) -> bool {
        self.touched
    }

    pub(super) fn untouched_because(&self) -> Option<String> {
        if self.touched || !self.over {
            return None;
        }
        Some(match &self.job {
            Job::Truncate(truncation) => too_short(self.seen, truncation.max_tokens()),
            Job::Cut { after_tokens, .. } => too_short(self.seen, *after_tokens),
            Job::Slow { .. } if self.seen == 0 => too_short(0, 0),
            Job::Slow { .. } => "the pace asks for no wait".to_owned(),
        })
    }

    fn is_draining(&self) -> bool {
        matches!(&self.job, Job::Truncate(truncation) if truncation.is_draining())
    }

    fn frames(&mut self, frames: &[Frame]) -> Vec<Step> {
        let mut steps = Vec::with_capacity(frames.len());
        for frame in frames {
            self.frame(frame, &mut steps);
            if self.over {
                break;
            }
        }
        self.joined(steps)
    }

    /// The steps, so that what is left of the stream is well-formed.
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

    fn frame(&mut self, frame: &Frame, steps: &mut Vec<Step>) {
        let pass = || Step::Emit(frame.bytes().clone());
        let Some(data) = frame.data() else {
            // Comments keep connections alive; anything else may hold what is to be dropped.
            if frame.kind() == FrameKind::Event || !self.is_draining() {
                steps.push(pass());
            }
            return;
        };
        if let Ok(document) = Document::parse(&data) {
            let reading = self
                .dialect
                .read_event(squall_dialects::Event::of(frame, &document));
            let event = Event {
                frame,
                document: &document,
                reading,
            };
            self.seen += event.tokens();
            self.event(&event, steps);
        } else if !self.is_draining() {
            steps.push(pass());
        } else if self.dialect.is_end_mark(&data) {
            steps.extend([pass(), Step::Finish]);
            self.over = true;
        }
    }

    fn event(&mut self, event: &Event<'_>, steps: &mut Vec<Step>) {
        match &mut self.job {
            Job::Truncate(truncation) => {
                truncation.event(event, self.dialect, steps);
                self.touched |= truncation.touched();
            }
            Job::Cut { budget, .. } => self.touched |= cut(event, self.dialect, budget, steps),
            Job::Slow {
                first,
                tokens_per_second,
            } => {
                self.touched |= slow(event, first, *tokens_per_second, steps);
            }
        }
        self.over = matches!(steps.last(), Some(Step::Finish | Step::End(_)));
    }
}

/// One event, read.
pub(super) struct Event<'d> {
    pub(super) frame: &'d Frame,
    pub(super) document: &'d Document<'d>,
    pub(super) reading: Reading<'d>,
}

impl Event<'_> {
    /// Tokens the model wrote in it.
    pub(super) fn tokens(&self) -> u64 {
        self.reading.deltas.iter().map(Delta::tokens).sum()
    }

    /// The event as dialects read it.
    pub(super) fn spoken(&self) -> squall_dialects::Event<'_> {
        squall_dialects::Event::of(self.frame, self.document)
    }

    /// Made-up events, framed like this one.
    pub(super) fn made(&self, events: &[Made]) -> Vec<Step> {
        let template = Template::from(self.frame);
        let framed = events.iter().map(|event| template.frame(event));
        framed.map(Step::Emit).collect()
    }

    /// The event as it came.
    pub(super) fn pass(&self) -> Step {
        Step::Emit(self.frame.bytes().clone())
    }

    /// The event with changes made and maybe another name; as it came when there are none.
    pub(super) fn edited(&self, edits: &Edits<'_>, name: Option<&str>) -> Step {
        if edits.is_empty() {
            self.pass()
        } else {
            Step::Emit(self.frame.with(name, &edits.apply()))
        }
    }
}

/// Lets the event pass as far as the budget goes, and breaks off where it ends. True if it did.
fn cut(
    event: &Event<'_>,
    dialect: &dyn Dialect,
    budget: &mut Budget,
    steps: &mut Vec<Step>,
) -> bool {
    if event.tokens() < budget.left() || event.tokens() == 0 {
        for delta in &event.reading.deltas {
            budget.spend(delta, event.document);
        }
        steps.push(event.pass());
        return false;
    }
    let before = budget.spent();
    let mut edits = Edits::new(event.document);
    for delta in &event.reading.deltas {
        let share = budget.spend(delta, event.document);
        budget::cut(&mut edits, event.document, delta, share);
    }
    if !edits.is_empty() {
        budget::forget_mirrors(&mut edits, &event.reading, |_| true);
    }
    // Whoever breaks off here has not said yet why it stops.
    let mut name = None;
    for finished in &event.reading.finishes {
        name = dialect.put_finish(&mut edits, event.document, finished, None);
    }
    if budget.spent() > before {
        steps.push(event.edited(&edits, name));
    }
    steps.push(Step::End(Ending::Close));
    true
}

/// Holds an event that carries tokens back. True if it waits.
fn slow(
    event: &Event<'_>,
    first: &mut Option<Duration>,
    tokens_per_second: Option<f64>,
    steps: &mut Vec<Step>,
) -> bool {
    let wait = match event.tokens() {
        0 => Duration::ZERO,
        tokens => first
            .take()
            .unwrap_or_else(|| pace(tokens, tokens_per_second)),
    };
    if !wait.is_zero() {
        steps.push(Step::Wait(wait));
    }
    steps.push(event.pass());
    !wait.is_zero()
}
