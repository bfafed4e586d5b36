//! `stream_stall`: the answer halts, then goes on.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{AnswerFault, read_after_tokens};
use crate::fault::StreamFault;
use crate::faults::delay::millis;
use crate::faults::mode::{Fields, Tools};
use crate::profile::amounts;

/// When, and how long.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamStall {
    /// Tokens that arrive before; default 10.
    after_tokens: u64,
    /// How long it halts; default 30,000 ms.
    wait: Duration,
}

impl AnswerFault for StreamStall {
    const NAME: &'static str = "stream_stall";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let after_tokens = read_after_tokens(fields);
        let about = "Milliseconds that the answer halts; default 30000.";
        let wait = amounts::millis(fields, "delay_ms", about);
        Some(Self {
            after_tokens,
            wait: wait.unwrap_or(Duration::from_secs(30)),
        })
    }

    fn change(&self) -> StreamFault {
        StreamFault::Stall {
            after_tokens: self.after_tokens,
            wait: self.wait,
        }
    }

    fn idle_because(&self) -> Option<&'static str> {
        self.wait.is_zero().then_some("the delay is 0 ms")
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("after_tokens".into(), json!(self.after_tokens));
        into.insert("delay_ms".into(), millis(self.wait));
    }
}
