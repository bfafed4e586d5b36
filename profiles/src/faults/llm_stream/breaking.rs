//! Answers that do not reach their end: the connection breaks, or the provider reports an error in
//! the middle of a stream.

use bytes::Bytes;
use squall_dialects::json::{Document, Edits, JsonKind, raw_length};
use squall_dialects::model::{ModelError, Reading};
use squall_dialects::stream::Framing;

use super::budget::{self, Budget, ReceivedTokens, Share};
use super::events::{EventChange, ParsedEvent};
use super::numbers::Numbers;
use super::{AnsweredCall, Step, too_short, written};
use crate::plan::Ending;

/// A stream that breaks after so many tokens.
#[derive(Debug)]
pub(super) struct BreakingStream {
    after_tokens: u64,
    framing: Framing,
    budget: Budget,
    /// What is reported; `None`: nothing, the connection breaks.
    error: Option<ModelError>,
    /// The provider has no such event.
    unreportable: bool,
    touched: bool,
}

impl BreakingStream {
    pub(super) fn new(after_tokens: u64, error: Option<ModelError>, framing: Framing) -> Self {
        Self {
            after_tokens,
            framing,
            budget: Budget::new(after_tokens),
            error,
            unreportable: false,
            touched: false,
        }
    }

    /// What there still is of the event in which the budget ends; `None`: nothing that was said.
    fn cut_short(&mut self, event: &ParsedEvent<'_>, call: &AnsweredCall) -> Option<Step> {
        let mut edits = Edits::new(event.document);
        let mut shares = Vec::new();
        for delta in &event.reading.deltas {
            let share = self.budget.spend(delta, event.document);
            budget::cut(&mut edits, event.document, delta, share);
            shares.push((delta, share));
        }
        // A call that lacks what it cannot be without goes with all that was said of it.
        let taken_out = shares.iter().filter(|(delta, share)| {
            *share == Share::Nothing && budget::takes_part_out(delta, event.document)
        });
        let taken_out: Vec<_> = taken_out.map(|(it, _)| (it.choice, it.part)).collect();
        let said = shares
            .iter()
            .filter(|(delta, share)| delta.tokens > 0 && *share != Share::Nothing);
        let (gone, left): (Vec<_>, Vec<_>) =
            said.partition(|(it, _)| taken_out.contains(&(it.choice, it.part)));
        if left.is_empty() {
            return None;
        }
        if !edits.is_empty() {
            budget::forget_mirrors(&mut edits, &event.reading, |_| true);
            budget::forget_sources(&mut edits, &event.reading, |_, _| true);
            if let Some(usage) = &event.reading.usage {
                let gone: u64 = gone.iter().map(|(delta, _)| delta.tokens).sum();
                let received = ReceivedTokens {
                    words: self.budget.spent().saturating_sub(gone),
                    thought: self.budget.thought(),
                };
                budget::count_anew(&mut edits, usage, received);
            }
        }
        // Whoever breaks off here has not said yet why it stops.
        let mut name = None;
        for finished in &event.reading.finishes {
            let dialect = call.dialect;
            name = dialect.put_finish(&mut edits, event.document, finished, None);
        }
        Some(event.edited(&edits, name))
    }

    /// How the stream ends; `None`: it cannot end so.
    fn last(&self, event: &ParsedEvent<'_>, call: &AnsweredCall) -> Option<Vec<Step>> {
        let Some(error) = &self.error else {
            return Some(vec![Step::End(Ending::Close)]);
        };
        let context = call.error_context();
        let made = call
            .dialect
            .error_event(error, &context, Some(event.spoken()))?;
        let mut steps = event.framed(&[made]);
        steps.push(Step::Finish);
        Some(steps)
    }
}

impl EventChange for BreakingStream {
    /// Lets the event pass as far as the budget goes, and breaks off where it ends.
    fn event(&mut self, event: &ParsedEvent<'_>, call: &AnsweredCall, steps: &mut Vec<Step>) {
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
        let first = steps.len();
        steps.extend(self.cut_short(event, call));
        steps.extend(last);
        // Of an event that is dropped whole, its number is the next one's.
        Numbers::from(event, call).renumber(&mut steps[first..], event, true, self.framing, call);
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
        let cost = delta.tokens;
        if cost < left || cost == 0 {
            left -= cost;
            continue;
        }
        let value = document.value(delta.place);
        let kept = delta.take(left).len();
        let raw = match value.kind() {
            JsonKind::String => raw_length(value.raw(), kept),
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
