//! Streams in which an event comes twice, or the end mark never.

use bytes::Bytes;
use squall_dialects::model::{Delta, DeltaKind};
use squall_dialects::stream::{Frame, FrameKind, Framing};

use super::events::{EventChange, Other, ParsedEvent};
use super::{AnsweredCall, Step};

/// Among how many of the first events with tokens the draw chooses.
const CHOICES: u64 = 4;

/// A stream in which one event that carries tokens comes twice.
#[derive(Debug)]
pub(super) struct Repeating {
    /// Events with tokens that come before it.
    left: u64,
    /// The latest event with tokens of the part at hand, until one was repeated.
    latest: Option<Bytes>,
    touched: bool,
}

impl Repeating {
    pub(super) fn new(choice: u64) -> Self {
        Self {
            left: choice % CHOICES,
            latest: None,
            touched: false,
        }
    }
}

/// Whether an event carries tokens, and neither thinking nor a signature: agents give those back as
/// they got them.
fn can_be_repeated(event: &ParsedEvent<'_>) -> bool {
    let mut deltas = event.reading.deltas.iter();
    let opaque = |delta: &Delta<'_>| delta.is_thinking() || delta.kind == DeltaKind::Signature;
    event.speaks() && !deltas.any(opaque)
}

impl EventChange for Repeating {
    fn event(&mut self, event: &ParsedEvent<'_>, _call: &AnsweredCall, steps: &mut Vec<Step>) {
        // The text or the call is shorter than the draw would have it: its last event, then.
        let reading = &event.reading;
        let ends = !reading.finishes.is_empty() || reading.edges.iter().any(|edge| edge.closes);
        if !event.speaks()
            && ends
            && let Some(latest) = self.latest.take()
        {
            steps.push(Step::Emit(latest));
            self.touched = true;
        }
        steps.push(event.pass());
        if !can_be_repeated(event) || self.touched {
            return;
        }
        // Nothing follows what says its words and ends by one event.
        if self.left == 0 || ends {
            steps.push(event.pass());
            self.latest = None;
            self.touched = true;
        } else {
            self.left -= 1;
            self.latest = Some(event.frame.bytes().clone());
        }
    }

    fn touched(&self) -> bool {
        self.touched
    }

    fn idle_because(&self, _tokens: u64) -> String {
        "the answer holds no event to repeat".to_owned()
    }
}

/// A stream that lacks its end mark.
#[derive(Debug)]
pub(super) struct Unterminated {
    framing: Framing,
    touched: bool,
}

impl Unterminated {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            touched: false,
        }
    }
}

impl EventChange for Unterminated {
    fn event(&mut self, event: &ParsedEvent<'_>, _call: &AnsweredCall, steps: &mut Vec<Step>) {
        if event.reading.ends {
            self.touched = true;
        } else {
            steps.push(event.pass());
        }
    }

    fn other(&mut self, frame: &Frame, what: Other, _call: &AnsweredCall, steps: &mut Vec<Step>) {
        // The end of a list is its bracket.
        let bracket = self.framing == Framing::Array
            && frame.kind() == FrameKind::Filler
            && frame.bytes().contains(&b']');
        if bracket || what == Other::Mark {
            self.touched = true;
        } else {
            steps.push(Step::Emit(frame.bytes().clone()));
        }
    }

    fn touched(&self) -> bool {
        self.touched
    }

    fn idle_because(&self, _tokens: u64) -> String {
        "the stream has no end mark".to_owned()
    }
}
