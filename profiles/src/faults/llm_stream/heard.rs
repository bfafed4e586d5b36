//! What a stream has said, for whoever would have to read it again otherwise.

use squall_dialects::Tally;
use squall_dialects::model::Reading;
use squall_dialects::tokens::Counting;

use super::call::Call;

/// Bytes of a stream up to which is kept what it says.
const LONGEST: usize = 1 << 20;

/// Adds up what the upstream's events say, as long as they are not too many.
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

    /// All that was said; `None` where nothing was, or too much.
    pub(super) fn take(&mut self) -> Option<Box<Tally>> {
        self.tally.take()
    }
}
