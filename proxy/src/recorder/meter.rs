//! Counts what a model call uses up while its answer passes, for budgets.
//!
//! The journal reads calls off the path, a little later. A budget has to know before the agent can
//! ask again: what an agent has of an answer was counted before it was handed on. Only calls that a
//! rule with a budget matches are read here, and none of their bytes waits for anything.

use squall_dialects::Tokens;
use squall_journal::record::LlmRecord;
use squall_profiles::spending::Charge;

use super::ModelTraffic;
use super::model::CallReading;
use super::note::used;

/// One call, on its way into the sums of budgets.
pub(crate) struct Meter {
    charge: Charge,
    /// From the answer's head on.
    reading: Option<CallReading>,
}

impl Meter {
    /// For a call of which no answer has come.
    pub(crate) fn new(charge: Charge) -> Self {
        Self {
            charge,
            reading: None,
        }
    }

    /// The answer's head has come.
    pub(crate) fn begin(&mut self, call: &ModelTraffic) {
        self.reading = Some(call.begin());
    }

    /// Whether the answer is read here.
    pub(crate) fn reads(&self) -> bool {
        self.reading.is_some()
    }

    /// The tokens out that the answer announces are Squall's own count.
    pub(crate) fn counted_anew(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.counted_anew();
        }
    }

    /// These bytes of the answer's body are the agent's next.
    pub(crate) fn answer(&mut self, bytes: &[u8]) {
        if let Some(reading) = &mut self.reading {
            reading.push(bytes);
            self.count();
        }
    }

    /// Those were the last.
    pub(crate) fn end(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.end();
            self.count();
        }
    }

    fn count(&mut self) {
        if let Some(reading) = &mut self.reading {
            let tokens = reading.tokens();
            self.charge.set(reading.model(), used(tokens));
        }
    }

    /// What the call said about itself; `None` when it was not read here.
    pub(crate) fn finish(mut self) -> Option<(LlmRecord, Tokens)> {
        self.end();
        self.reading.map(CallReading::finish)
    }
}
