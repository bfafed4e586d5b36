//! Sequence numbers of events, which stay consecutive when events are dropped or added.

use bytes::Bytes;
use squall_dialects::json::{Document, Edits, Value};
use squall_dialects::stream::{DEFAULT_LIMIT, Framing, Splitter};

use super::events::ParsedEvent;
use super::{AnsweredCall, Step};

/// The next sequence number of a stream, if its events have any.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: Option<u64>,
}

impl Numbers {
    /// Numbers that continue with that of `event`: all before it passed.
    pub(super) fn from(event: &ParsedEvent<'_>, call: &AnsweredCall) -> Self {
        let number = call.dialect.provider().number(event.spoken());
        Self {
            next: number.and_then(Value::as_u64),
        }
    }

    /// Renumbers the events that are sent for `event`. They stay unchanged if no event was dropped
    /// or added so far (not `touched`).
    pub(super) fn renumber(
        &mut self,
        steps: &mut [Step],
        event: &ParsedEvent<'_>,
        touched: bool,
        framing: Framing,
        call: &AnsweredCall,
    ) {
        if call.dialect.provider().number(event.spoken()).is_none() {
            return;
        }
        for step in steps {
            if let Step::Emit(bytes) = step {
                self.follow(bytes, touched, framing, call);
            }
        }
    }

    /// [`Self::renumber`] for one event.
    fn follow(&mut self, bytes: &mut Bytes, touched: bool, framing: Framing, call: &AnsweredCall) {
        let mut splitter = Splitter::new(framing, DEFAULT_LIMIT);
        let mut frames = splitter.push(bytes);
        frames.extend(splitter.finish());
        let Some(frame) = frames.first() else {
            return;
        };
        let data = frame.data().unwrap_or_default();
        let Ok(document) = Document::parse(&data) else {
            return;
        };
        let spoken = squall_dialects::Event::of(frame, &document);
        let Some(place) = call.dialect.provider().number(spoken) else {
            return;
        };
        let Some(number) = place.as_u64() else {
            return;
        };
        let due = self.next.filter(|_| touched).unwrap_or(number);
        self.next = Some(due.saturating_add(1));
        if number != due {
            let mut edits = Edits::new(&document);
            edits.replace(place.id(), due.to_string());
            *bytes = frame.with(None, &edits.apply());
        }
    }
}
