//! Numbers of an invocation that repeats are compared by.

use statrs::statistics::{Data, OrderStatistics as _};

use super::Prices;
use super::wire::max_spent::cost;
use crate::answer::AgentAnswer;
use crate::trace::Trace;
use squall_documents::named;

named! {
    /// A number that every invocation has.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Measure {
        /// Duration of the invocation, in milliseconds.
        Latency = "latency",
        /// Length of the answer, in characters.
        Length = "length",
        /// Cost of its model calls, in US dollars.
        Cost = "cost",
        /// Calls that the agent made.
        Calls = "calls",
    }
}

/// The numbers of one invocation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    latency_ms: f64,
    characters: f64,
    /// `None`: without prices, or tokens or calls are unknown.
    cost: Option<f64>,
    /// `None`: calls may be missing.
    calls: Option<f64>,
}

impl Measured {
    /// The numbers of an invocation.
    #[expect(clippy::cast_precision_loss, reason = "counts of an invocation")]
    pub fn of(answer: &AgentAnswer, trace: &Trace, prices: &Prices) -> Self {
        let is_complete = trace.unseen().is_none();
        Self {
            latency_ms: answer.latency.as_micros() as f64 / 1000.0,
            characters: answer.text.chars().count() as f64,
            cost: cost(trace, prices).filter(|_| is_complete),
            calls: is_complete.then(|| trace.attempts().len() as f64),
        }
    }

    /// One of the numbers; `None`: it is unknown.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Latency => Some(self.latency_ms),
            Measure::Length => Some(self.characters),
            Measure::Cost => self.cost,
            Measure::Calls => self.calls,
        }
    }
}

/// The median-unbiased estimate of a quantile (Hyndman and Fan, type 8); `share` is from 0 to 1.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    Data::new(values.to_vec()).quantile(share)
}
