//! Counts the usage of a model call while its response passes, for budgets.
//!
//! The journal parses calls slightly later. A budget must count before the agent's next call, so
//! each piece is counted before it is passed on. This applies only to calls that match a rule with
//! a budget, and delays no bytes.

use squall_dialects::Tokens;
use squall_journal::record::LlmRecord;
use squall_profiles::spending::Charge;

use super::ModelTraffic;
use super::model::CallReading;
use super::note::used;

/// Adds one call's usage to the sums of budgets.
pub(crate) struct Meter {
    charge: Charge,
    /// Set once the response's head has arrived.
    reading: Option<CallReading>,
}

impl Meter {
    /// For a call before its response.
    pub(crate) fn new(charge: Charge) -> Self {
        Self {
            charge,
            reading: None,
        }
    }

    /// Starts with the response's head.
    pub(crate) fn begin(&mut self, call: &ModelTraffic) {
        self.reading = Some(call.begin());
    }

    /// Whether the response is parsed here.
    pub(crate) fn reads(&self) -> bool {
        self.reading.is_some()
    }

    /// The output tokens in the response are Squall's own count.
    pub(crate) fn counted_anew(&mut self) {
        if let Some(reading) = &mut self.reading {
            reading.counted_anew();
        }
    }

    /// Counts bytes of the response's body before the agent gets them.
    pub(crate) fn answer(&mut self, bytes: &[u8]) {
        if let Some(reading) = &mut self.reading {
            reading.push(bytes);
            self.count();
        }
    }

    /// The body has ended.
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

    /// The call's record and usage; `None` if it was not parsed here.
    pub(crate) fn finish(mut self) -> Option<(LlmRecord, Tokens)> {
        self.end();
        self.reading.map(CallReading::finish)
    }
}
