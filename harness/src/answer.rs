//! What an agent answered.

use std::time::Duration;

/// An agent's answer to one invocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Its text; of an error whatever the agent said of it.
    pub text: String,
    /// Why it is no answer as such: a status, a time-out, a broken connection. An error is judged like
    /// any other text, but nothing has been completed.
    pub error: Option<String>,
    /// The connection was closed or reset before the answer was whole.
    pub broke_off: bool,
    /// Not a byte of an answer came, to no turn.
    pub is_silent: bool,
    /// From the first byte of the question to the last of the answer, all turns together.
    pub latency: Duration,
}

impl Answer {
    /// An answer without an error.
    pub fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Whether nothing of its text can be seen.
    pub fn is_blank(&self) -> bool {
        let unseen = |c: char| {
            c.is_whitespace()
                || c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{2060}')
        };
        self.text.chars().all(unseen)
    }
}
