//! Agents, asked.
//!
//! A [`Driver`] asks one agent, whatever it is; one invocation is all turns of a prompt. What an agent
//! says of its own failure is an [`Answer`] to be judged; an [`AskError`] is what keeps an invocation
//! from being judged at all.

mod body;
mod caller;
mod command;
mod extract;
pub mod group;
mod http;
mod name;
mod openai;
pub mod pointing;
pub(crate) mod program;
mod python;
mod reset;
mod server;
mod stream;
pub(crate) mod template;
#[cfg(test)]
pub(crate) mod testing;
mod workers;

use std::path::PathBuf;

pub use self::name::agent_name;
use self::pointing::ProxyVariables;
use crate::answer::Answer;
use crate::dial::Dialler;
use crate::reach::Pending;
use crate::suite::agent::Way;
use crate::suite::{Agent, Prompt};

/// Asks an agent.
pub trait Driver: Send + Sync {
    /// Asks it once, turn by turn.
    fn ask<'a>(&'a self, invocation: &'a Invocation) -> Pending<'a, Result<Answer, AskError>>;

    /// Makes it forget what it was asked before, so that it can be asked there; nothing where the suite names no
    /// way. What was asked in other slots it may forget as well, unless it lives in a process for each.
    fn reset<'a>(&'a self, place: &'a Place) -> Pending<'a, Result<(), ResetError>>;

    /// Ends what was started for it, in good order. Dropping the driver ends it too, at once.
    fn stop(&self) -> Pending<'_, ()> {
        Box::pin(async {})
    }
}

/// What an agent is asked with, beside what its suite says of it.
#[derive(Clone)]
pub struct Surroundings {
    /// The variables that point what is started at the proxy.
    pub variables: ProxyVariables,
    /// Invocations at once, each in a slot of its own; so many processes are kept warm. At least 1.
    pub slots: usize,
    /// How often an invocation is tried again that reached nobody: `advanced.retries`.
    pub retries: u64,
    /// What dials for it.
    pub dialler: Dialler,
    /// The suite's folder: where Python modules are looked for, before where the command runs.
    pub folder: PathBuf,
}

/// Whoever asks the agent of a suite, of any type. Nothing is started before it is first asked.
pub fn driver(agent: &Agent, surroundings: &Surroundings) -> Box<dyn Driver> {
    let driver: Box<dyn Driver> = match &agent.way {
        Way::Http(http) => Box::new(http::HttpDriver::new(agent, http, surroundings)),
        Way::Command(command) => {
            Box::new(command::CommandDriver::new(agent, command, surroundings))
        }
        Way::Python { target, langchain } => Box::new(python::PythonDriver::new(
            agent,
            target,
            *langchain,
            surroundings,
        )),
        Way::OpenAi(chat) => Box::new(openai::OpenAiDriver::new(agent, chat, surroundings)),
    };
    match &agent.start {
        Some(start) => Box::new(server::Started::new(driver, start.clone(), surroundings)),
        None => driver,
    }
}

/// Where an agent is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The slot: one invocation follows the other in it. A process that stays knows this name only, which stands for
    /// the scope.
    pub slot: String,
    /// The scope that the agent's own calls are to fall into, of this invocation alone.
    pub scope: String,
}

impl Place {
    /// A scope that is a slot as well: everything that is asked there is asked in one scope.
    pub fn shared(scope: &str) -> Self {
        Self {
            slot: scope.to_owned(),
            scope: scope.to_owned(),
        }
    }
}

/// One invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// What is asked.
    pub prompt: Prompt,
    /// Where.
    pub place: Place,
    /// W3C trace context, for agents that pass it on.
    pub traceparent: String,
    /// Stands for the conversation in all its turns.
    pub conversation: String,
}

impl Invocation {
    /// The same for programs, which are told by their environment.
    fn variables(&self) -> [pointing::Variable; 3] {
        [
            ("SQUALL_CONVERSATION", self.conversation.clone()),
            ("SQUALL_SCOPE", self.place.scope.clone()),
            ("TRACEPARENT", self.traceparent.clone()),
        ]
    }

    /// What tells the agent's calls apart, for agents that pass it on.
    fn headers(&self) -> [(&'static str, String); 2] {
        [
            ("traceparent", self.traceparent.clone()),
            ("baggage", baggage(&self.place.scope)),
        ]
    }
}

/// The W3C baggage that names a scope.
fn baggage(scope: &str) -> String {
    format!("squall.scope={scope}")
}

/// Why an invocation cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Nobody is there.
    #[error("the agent cannot be reached at {endpoint}{}: {why}", self::tries(*tries))]
    Unreachable {
        /// Where it was looked for.
        endpoint: String,
        /// How often.
        tries: u64,
        /// What happened.
        why: String,
    },
    /// `agent.start` did not bring it up.
    #[error("the agent could not be started by {program}: {why}")]
    NotStarted {
        /// The program.
        program: String,
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
    /// The answer came as events of which none says anything.
    #[error(
        "the agent answered with a stream in which no event has an answer where one is known to stand; one is {shape}; \
         say where with `response_path`"
    )]
    SaysNothing {
        /// Shape of its first event, without its values.
        shape: String,
    },
    /// The answer, decoded, is longer than what is read of one.
    #[error("the answer is longer than 8 MiB, which is the most that is read of one")]
    TooLong,
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

impl AskError {
    /// Whether there is no agent to ask at all.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NotStarted { .. })
    }
}

/// How often something was tried, unless once.
pub(crate) fn tries(tries: u64) -> String {
    match tries {
        0 | 1 => String::new(),
        more => format!(" ({more} tries)"),
    }
}

/// Why an agent has not forgotten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResetError {
    /// There is no agent to reset: it could not be started.
    #[error(transparent)]
    NotThere(AskError),
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
    /// The program or the function that resets it did not do so.
    #[error("the reset by {by} failed: {why}")]
    Failed {
        /// The program or the function.
        by: String,
        /// What happened.
        why: String,
    },
}
