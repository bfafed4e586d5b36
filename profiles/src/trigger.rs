//! When a matching rule fires.

use std::fmt;
use std::time::Duration;

/// Why the trigger of an eligible rule did not fire. `Display` gives the sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotDrawn {
    /// `after_calls` lets the first calls pass.
    AfterCalls {
        /// Which call this was.
        call: u64,
        /// How many pass.
        pass: u64,
    },
    /// `every` fires on other calls.
    Every {
        /// Which call this was.
        call: u64,
        /// It fires on multiples of this.
        every: u64,
    },
    /// `calls` lists other calls.
    Calls {
        /// Which call this was.
        call: u64,
        /// The calls it fires on.
        calls: std::sync::Arc<[u64]>,
    },
    /// `limit` is used up.
    Limit {
        /// How often it may fire.
        limit: u64,
    },
    /// Outside its `window`.
    Window {
        /// Time since activation.
        elapsed: Duration,
        /// When the window opens.
        after: Duration,
        /// How long it stays open; `None`: to the end.
        open_for: Option<Duration>,
    },
    /// What `armed_by` names has not happened.
    NotArmed,
    /// The draw was not below the rule's probability, both in parts per million.
    Drew {
        /// What was drawn.
        value: u32,
        /// It fires below this.
        below: u32,
    },
}

impl fmt::Display for NotDrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
