//! `slow_stream`: tokens come slowly.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::AnswerFault;
use crate::fault::StreamFault;
use crate::faults::delay::millis;
use crate::faults::mode::{Fields, Tools};
use crate::profile::amounts::{self, positive};

/// How slowly.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowStream {
    /// Wait before the first token; default 0.
    time_to_first_token: Duration,
    /// Pace after it; `None`: as the upstream sends.
    tokens_per_second: Option<f64>,
}

/// The pace when nothing at all is written.
const TOKENS_PER_SECOND: f64 = 5.0;

impl AnswerFault for SlowStream {
    const NAME: &'static str = "slow_stream";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "Pace of the tokens after the first.";
        let pace = positive(fields, "tokens_per_second", about);
        let first = amounts::millis(fields, "ttft_ms", "Milliseconds before the first token.");
        let unset = !fields.has("ttft_ms") && !fields.has("tokens_per_second");
        Some(Self {
            time_to_first_token: first.unwrap_or_default(),
            tokens_per_second: pace.or(unset.then_some(TOKENS_PER_SECOND)),
        })
    }

    fn change(&self) -> StreamFault {
        StreamFault::Slow {
            time_to_first_token: self.time_to_first_token,
            tokens_per_second: self.tokens_per_second,
        }
    }

    fn idle_because(&self) -> Option<&'static str> {
        let idle = self.time_to_first_token.is_zero() && self.tokens_per_second.is_none();
        idle.then_some("`ttft_ms` is 0 and no `tokens_per_second` is asked for")
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("ttft_ms".into(), millis(self.time_to_first_token));
        if let Some(pace) = self.tokens_per_second {
            into.insert("tokens_per_second".into(), json!(pace));
        }
    }
}
