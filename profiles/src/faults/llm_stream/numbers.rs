//! Numbers of events, which go on where events are dropped or made up.

use bytes::Bytes;
use squall_dialects::json::{Document, Edits, Value};
use squall_dialects::stream::{DEFAULT_LIMIT, Framing, Splitter};

use super::Step;
use super::call::Call;
use super::events::Event;

/// Where a stream's numbers stand, if its events bear any.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: Option<u64>,
}

impl Numbers {
    /// Numbers that go on with that of `event`: all before it passed.
    pub(super) fn from(event: &Event<'_>, call: &Call) -> Self {
        let number = call.dialect.provider().number(event.spoken());
        Self {
            next: number.and_then(Value::as_u64),
        }
    }

    /// Makes the numbers of what is given out for `event` follow those before; where nothing was
    /// dropped or made up so far (not `touched`) they stay as the provider wrote them.
    pub(super) fn go_on(
        &mut self,
        steps: &mut [Step],
        event: &Event<'_>,
        touched: bool,
        framing: Framing,
        call: &Call,
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

    /// An event with this number passed.
    pub(super) fn passed(&mut self, number: u64) {
        self.next = Some(number.saturating_add(1));
    }

    /// The same as [`Self::go_on`] for one event that is given out.
    pub(super) fn follow(
        &mut self,
        bytes: &mut Bytes,
        touched: bool,
        framing: Framing,
        call: &Call,
    ) {
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
