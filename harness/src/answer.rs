//! The answer of an agent.

use std::time::Duration;

use squall_profiles::canary::Canary;

/// A turn of a conversation, with the agent's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnsweredTurn {
    /// The text of the turn.
    pub text: String,
    /// The text of the answer.
    pub answer: String,
    /// When the turn was sent, since the conversation began. Turns that are sent together have the same.
    pub at: Duration,
    /// Whether it is filler, not a turn of the prompt.
    pub is_filler: bool,
}

/// One of several conversations of an invocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentConversation {
    /// The agent's answer.
    pub answer: AgentAnswer,
    /// The scope of its calls.
    pub scope: String,
    /// The canary in its first turn.
    pub canary: Option<Canary>,
}

/// An agent's answer to one invocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentAnswer {
    /// Its text; after a failure, the error text that the agent sent.
    pub text: String,
    /// Why the agent failed: a status, a time-out, a broken connection. Invariants still judge the text, but the
    /// task counts as not completed.
    pub error: Option<String>,
    /// The connection was closed or reset before the answer was complete.
    pub broke_off: bool,
    /// The answer was not complete in time.
    pub timed_out: bool,
    /// The agent rejected a changed request: status 400 to 499, 501 or 505, or no status line of HTTP/1.
    pub rejected: bool,
    /// From the first byte of the prompt to the last byte of the answer, all turns included.
    pub latency: Duration,
    /// Its turns so far, in order, that of an error included.
    pub turns: Vec<AnsweredTurn>,
}

impl AgentAnswer {
    /// An answer without an error.
    pub fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A failure of the agent, with the text that it sent.
    pub(crate) fn failed(text: String, why: String) -> Self {
        Self {
            error: Some(why),
            ..Self::of(text)
        }
    }

    /// Whether no byte of an answer came.
    pub fn is_silent(&self) -> bool {
        (self.broke_off || self.timed_out) && self.text.is_empty()
    }

    /// Whether nothing of its text can be seen.
    pub fn is_blank(&self) -> bool {
        is_blank(&self.text)
    }
}

/// Whether nothing of a text can be seen.
pub(crate) fn is_blank(text: &str) -> bool {
    let unseen = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{2060}')
    };
    text.chars().all(unseen)
}
