//! Invokes agents.
//!
//! A [`Driver`] invokes one agent of any type. One invocation covers all turns of a prompt. A failure that the
//! agent reports is an [`AgentAnswer`] to be judged; an [`AskError`] means that an invocation cannot be judged.

pub(crate) mod body;
mod caller;
pub mod change;
mod command;
pub(crate) mod conversation;
mod extract;
pub mod group;
mod http;
mod name;
mod openai;
pub mod pointing;
pub(crate) mod program;
mod python;
mod reset;
pub(crate) mod server;
pub mod settings;
mod stream;
pub(crate) mod template;
#[cfg(test)]
pub(crate) mod testing;
mod workers;

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::PathBuf;

use self::change::RequestChange;
pub use self::conversation::{ConversationFault, ConversationFaultMode, PromptTurn};
pub use self::name::agent_name;
use self::pointing::ProxyVariables;
use self::settings::{Agent, Way};
use crate::answer::AgentAnswer;
use crate::dial::Dialler;
use crate::prompt::Prompt;
use crate::reach::Pending;

/// Invokes an agent.
pub trait Driver: Send + Sync {
    /// Sends one turn of an invocation.
    fn turn<'a>(
        &'a self,
        invocation: &'a Invocation,
        turn: PromptTurn<'a>,
    ) -> Pending<'a, Result<AgentAnswer, AskError>>;

    /// Sends all turns of an invocation.
    fn ask<'a>(&'a self, invocation: &'a Invocation) -> Pending<'a, Result<AgentAnswer, AskError>> {
        Box::pin(conversation::converse(self, invocation))
    }

    /// Resets the agent for this place. Does nothing if the suite configures no reset. The agent may lose its state
    /// in other slots too, unless it has one process per slot.
    fn reset<'a>(&'a self, place: &'a InvocationPlace) -> Pending<'a, Result<(), ResetError>>;

    /// Stops the processes that were started for the agent, gracefully. Dropping the driver kills them at once.
    fn stop(&self) -> Pending<'_, ()> {
        Box::pin(async {})
    }
}

/// What an agent needs beside its suite.
#[derive(Clone)]
pub struct Surroundings {
    /// Environment variables that configure the proxy for started processes.
    pub variables: ProxyVariables,
    /// Concurrent invocations, each in its own slot, and the number of processes that stay alive. At least 1.
    pub slots: usize,
    /// Retries of an invocation that did not reach the agent: `advanced.retries`.
    pub retries: u64,
    /// Opens connections for it.
    pub dialler: Dialler,
    /// The suite's folder. Python modules are searched there first, then in the working directory.
    pub folder: PathBuf,
}

/// The driver for a suite's agent of any type. It starts nothing before the first invocation.
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

/// The slot and the scope of an invocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationPlace {
    /// The slot, which runs invocations sequentially. A long-lived process knows only this name, which identifies
    /// the scope.
    pub slot: String,
    /// The scope of the agent's calls in this invocation.
    pub scope: String,
}

impl InvocationPlace {
    /// A scope that is also the slot: all invocations in it share one scope.
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
    /// The prompt.
    pub prompt: Prompt,
    /// A change to the request, for HTTP agents; others ignore it.
    pub change: Option<RequestChange>,
    /// Its slot and scope.
    pub place: InvocationPlace,
    /// W3C trace context, for agents that pass it on.
    pub traceparent: String,
    /// Id of the conversation, the same in all turns.
    pub conversation: String,
}

impl Invocation {
    /// An invocation of a run, with a trace and a conversation that `identity` makes unique in it.
    pub(crate) fn new(
        run: &str,
        prompt: &Prompt,
        place: InvocationPlace,
        identity: impl Hash,
    ) -> Self {
        let id = |salt: &str| {
            let mut hasher = DefaultHasher::new();
            (run, &identity, salt).hash(&mut hasher);
            // Trace ids must not be all zeroes.
            hasher.finish() | 1
        };
        let (high, low, span) = (id("high"), id("low"), id("span"));
        Self {
            prompt: prompt.clone(),
            change: None,
            place,
            traceparent: format!("00-{high:016x}{low:016x}-{span:016x}-01"),
            conversation: format!("{run}-{:016x}", id("conversation")),
        }
    }

    /// The headers as environment variables, for programs.
    fn variables(&self) -> [pointing::Variable; 3] {
        [
            ("SQUALL_CONVERSATION", self.conversation.clone()),
            ("SQUALL_SCOPE", self.place.scope.clone()),
            ("TRACEPARENT", self.traceparent.clone()),
        ]
    }

    /// Headers that attribute the agent's calls, for agents that propagate them.
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
    /// The agent is unreachable.
    #[error("the agent cannot be reached at {endpoint}{}: {why}", self::tries(*tries))]
    Unreachable {
        /// The endpoint.
        endpoint: String,
        /// Number of attempts.
        tries: u64,
        /// The last error.
        why: String,
    },
    /// `agent.start` did not start it.
    #[error("the agent could not be started by {program}: {why}")]
    NotStarted {
        /// The program.
        program: String,
        /// The error.
        why: String,
    },
    /// The template has a placeholder that the prompt does not define.
    #[error(
        "the template has a placeholder `{{{name}}}` and the prompt no line `{name}: …`; known are {known}"
    )]
    Placeholder {
        /// The placeholder.
        name: String,
        /// The names that the prompt defines.
        known: String,
    },
    /// The reset between two turns failed.
    #[error("the reset between two turns failed: {0}")]
    NotReset(String),
    /// The suite's settings do not give a valid request.
    #[error("the request to the agent cannot be made: {0}")]
    Request(String),
    /// The answer is a stream of events, but none has an answer at a known place.
    #[error(
        "the agent answered with a stream in which no event has an answer where one is known to stand; one is {shape}; \
         say where with `response_path`"
    )]
    SaysNothing {
        /// The shape of its first event, without the values.
        shape: String,
    },
    /// The decoded answer is longer than the limit.
    #[error("the answer is longer than 8 MiB, which is the most that is read of one")]
    TooLong,
    /// The answer has nothing at the suite's `response_path`.
    #[error("`response_path: {path}` {why}; the answer is {shape}")]
    NotThere {
        /// The path.
        path: String,
        /// What was found there instead.
        why: String,
        /// The shape of the answer, without its values.
        shape: String,
    },
}

impl AskError {
    /// Whether there is no running agent.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NotStarted { .. })
    }
}

/// The number of attempts in words, if there was more than one.
fn tries(tries: u64) -> String {
    match tries {
        0 | 1 => String::new(),
        more => format!(" ({more} tries)"),
    }
}

/// Why a reset failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResetError {
    /// There is no agent to reset, because it is unreachable or could not be started.
    #[error(transparent)]
    NotThere(AskError),
    /// The response is not a success.
    #[error("the reset at {endpoint} was answered with {status}")]
    Refused {
        /// The endpoint.
        endpoint: String,
        /// The status.
        status: u16,
    },
    /// There was no response, or none in time.
    #[error("the reset at {endpoint} was not answered: {why}")]
    Unanswered {
        /// The endpoint.
        endpoint: String,
        /// The error.
        why: String,
    },
    /// The reset program or function failed.
    #[error("the reset by {by} failed: {why}")]
    Failed {
        /// The program or the function.
        by: String,
        /// The error.
        why: String,
    },
}
