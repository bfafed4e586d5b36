//! Streams in which an event comes twice, or the end mark never.

use squall_dialects::model::{Delta, DeltaKind};
use squall_dialects::stream::{Frame, FrameKind, Framing};

use super::events::{EventChange, Other, ParsedEvent};
use super::{AnsweredCall, Step};

/// A stream in which the first event that carries tokens comes twice.
#[derive(Debug, Default)]
pub(super) struct Repeating {
    touched: bool,
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
        steps.push(event.pass());
        if !self.touched && can_be_repeated(event) {
            steps.push(event.pass());
            self.touched = true;
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
