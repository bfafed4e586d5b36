//! Agents, asked.
//!
//! A [`Driver`] asks one agent, whatever it is; one invocation is all turns of a prompt. What an agent
//! says of its own failure is an [`Answer`] to be judged; an [`AskError`] is what keeps an invocation
//! from being judged at all.

pub mod command;
mod extract;
pub mod http;
pub mod openai;
mod program;
mod reset;
mod stream;
mod template;
#[cfg(test)]
mod testing;
mod turn;

use squall_journal::reach::Pending;

use crate::answer::Answer;
use crate::suite::Prompt;

/// Asks an agent.
pub trait Driver: Send + Sync {
    /// Asks it once, turn by turn.
    fn ask<'a>(&'a self, invocation: &'a Invocation) -> Pending<'a, Result<Answer, AskError>>;

    /// Makes it forget what it was asked before; nothing where the suite names no way.
    fn reset(&self) -> Pending<'_, Result<(), ResetError>>;
}

/// One asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// What is asked.
    pub prompt: Prompt,
    /// The scope that the agent's own calls are to fall into.
    pub scope: String,
    /// W3C trace context, for agents that pass it on.
    pub traceparent: String,
    /// Stands for the conversation in all its turns.
    pub conversation: String,
}

impl Invocation {
    /// What tells the agent's calls apart, for agents that pass it on.
    fn headers(&self) -> [(&'static str, String); 2] {
        [
            ("traceparent", self.traceparent.clone()),
            ("baggage", format!("squall.scope={}", self.scope)),
        ]
    }
}

/// Why an invocation cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Nobody is there.
    #[error("the agent cannot be reached at {endpoint} ({tries} tries): {why}")]
    Unreachable {
        /// Where it was looked for.
        endpoint: String,
        /// How often.
        tries: u64,
        /// What happened.
        why: String,
    },
    /// The template wants what the prompt does not have.
    #[error(
        "the template has a placeholder `{{{name}}}` and the prompt no line `{name}: …`; known are {known}"
    )]
    Placeholder {
        /// The placeholder.
        name: String,
        /// What there is.
        known: String,
    },
    /// The request cannot be made of the suite's words.
    #[error("the request to the agent cannot be made: {0}")]
    Request(String),
    /// The answer is not where the suite says.
    #[error("`response_path: {path}` {why}; the answer is {shape}")]
    NotThere {
        /// The path.
        path: String,
        /// What is there instead.
        why: String,
        /// The answer's shape, without its values.
        shape: String,
    },
}

/// Why an agent has not forgotten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResetError {
    /// It answered, and not with success.
    #[error("the reset at {endpoint} was answered with {status}")]
    Refused {
        /// Where it was asked to.
        endpoint: String,
        /// The status.
        status: u16,
    },
    /// It did not answer in time, or not at all.
    #[error("the reset at {endpoint} was not answered: {why}")]
    Unanswered {
        /// Where it was asked to.
        endpoint: String,
        /// What happened.
        why: String,
    },
    /// The program that resets it did not do so.
    #[error("the reset by {program} failed: {why}")]
    Failed {
        /// The program.
        program: String,
        /// What happened.
        why: String,
    },
    /// This sort of agent cannot be reset in this way.
    #[error("an agent of this type is not reset by {0}")]
    WrongWay(&'static str),
}
