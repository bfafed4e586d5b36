//! Sums up the content of a stream, so that it need not be parsed again.

use squall_dialects::Tally;
use squall_dialects::model::Reading;
use squall_dialects::tokens::Counting;

use super::call::Call;

/// Longest stream to sum up, bytes.
const LONGEST: usize = 1 << 20;

/// Sums up the content of the upstream's events, up to a limit.
#[derive(Debug, Default)]
pub(super) struct UpstreamTexts {
    tally: Option<Box<Tally>>,
    bytes: usize,
}

impl UpstreamTexts {
    /// Adds an event of that many bytes.
    pub(super) fn note(&mut self, reading: &Reading<'_>, bytes: usize, call: &Call) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > LONGEST {
            self.tally = None;
            return;
        }
        let begin = || {
            let counting = call.model().map(Counting::of_model);
            Box::new(Tally::new(call.dialect, counting))
        };
        self.tally.get_or_insert_with(begin).note(reading);
    }

    /// The sum; `None` if there is none, or the limit was exceeded.
    pub(super) fn take(&mut self) -> Option<Box<Tally>> {
        self.tally.take()
    }
}
