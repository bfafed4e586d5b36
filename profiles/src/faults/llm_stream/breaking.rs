//! Answers that do not reach their end: the connection breaks, or the provider reports an error in
//! the middle of a stream.

use bytes::Bytes;
use squall_dialects::json::{Document, Edits, Kind, raw_length};
use squall_dialects::model::{ModelError, Reading};

use super::budget::{self, Budget};
use super::call::Call;
use super::events::{Event, Job};
use super::{Step, too_short, written};
use crate::plan::Ending;

/// A stream that breaks after so many tokens.
#[derive(Debug)]
pub(super) struct Breaking {
    after_tokens: u64,
    budget: Budget,
    /// What is reported; `None`: nothing, the connection breaks.
    error: Option<ModelError>,
    /// The provider has no such event.
    unreportable: bool,
    touched: bool,
}

impl Breaking {
    pub(super) fn new(after_tokens: u64, error: Option<ModelError>) -> Self {
        Self {
            after_tokens,
            budget: Budget::new(after_tokens),
            error,
            unreportable: false,
            touched: false,
        }
    }

    /// How the stream ends; `None`: it cannot end so.
    fn last(&self, event: &Event<'_>, call: &Call) -> Option<Vec<Step>> {
        let Some(error) = &self.error else {
            return Some(vec![Step::End(Ending::Close)]);
        };
        let context = call.error_context();
        let made = call
            .dialect
            .error_event(error, &context, Some(event.spoken()))?;
        let mut steps = event.made(&[made]);
        steps.push(Step::Finish);
        Some(steps)
    }
}

impl Job for Breaking {
    /// Lets the event pass as far as the budget goes, and breaks off where it ends.
    fn event(&mut self, event: &Event<'_>, call: &Call, steps: &mut Vec<Step>) {
        if event.tokens() < self.budget.left() || !event.speaks() || self.unreportable {
            for delta in &event.reading.deltas {
                self.budget.spend(delta, event.document);
            }
            steps.push(event.pass());
            return;
        }
        let Some(last) = self.last(event, call) else {
            self.unreportable = true;
            steps.push(event.pass());
            return;
        };
        let before = self.budget.spent();
        let mut edits = Edits::new(event.document);
        for delta in &event.reading.deltas {
            let share = self.budget.spend(delta, event.document);
            budget::cut(&mut edits, event.document, delta, share);
        }
        if !edits.is_empty() {
            budget::forget_mirrors(&mut edits, &event.reading, |_| true);
        }
        // Whoever breaks off here has not said yet why it stops.
        let mut name = None;
        for finished in &event.reading.finishes {
            let dialect = call.dialect;
            name = dialect.put_finish(&mut edits, event.document, finished, None);
        }
        if self.budget.spent() > before {
            steps.push(event.edited(&edits, name));
        }
        steps.extend(last);
        self.touched = true;
    }

    fn touched(&self) -> bool {
        self.touched
    }

    fn idle_because(&self, tokens: u64) -> String {
        if self.unreportable {
            "the provider reports no errors in a stream".to_owned()
        } else {
            too_short(tokens, self.after_tokens)
        }
    }
}

/// The document up to the end of its `after_tokens`th token, and from there on. `None`: it has
/// fewer.
pub(super) fn parted(
    document: &Document<'_>,
    reading: &Reading<'_>,
    after_tokens: u64,
) -> Option<(Bytes, Bytes)> {
    let total = written(reading);
    if total == 0 || total < after_tokens {
        return None;
    }
    let mut deltas: Vec<_> = reading.deltas.iter().collect();
    deltas.sort_by_key(|delta| delta.place);
    let mut left = after_tokens;
    for delta in deltas {
        let cost = delta.tokens();
        if cost < left || cost == 0 {
            left -= cost;
            continue;
        }
        let value = document.value(delta.place);
        let kept = delta.take(left).len();
        let raw = match value.kind() {
            Kind::String => raw_length(value.raw(), kept),
            _ => kept,
        };
        let end = value.span().start + raw;
        let (before, after) = document.text().as_bytes().split_at(end);
        return Some((
            Bytes::copy_from_slice(before),
            Bytes::copy_from_slice(after),
        ));
    }
    None
}
