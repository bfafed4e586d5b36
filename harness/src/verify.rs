//! Checks whether a run is possible: invokes the agent once without chaos, and checks all requirements.
//!
//! ```text
//! reset ── begin in two scopes ── invoke ──▶ agent, answer ──▶ seen ──▶ proxy, scopes, upstreams, models, tools
//! warnings about the suite ──▶ suite          a short model request ──▶ model
//! ```
//!
//! Each check reports what it found. A failed one also reports what to change, and where in the suite.

mod checks;
mod traffic;

use std::time::Duration;

use squall_journal::trace_id::TraceId;

use self::checks::Checks;
use crate::agents::settings::{Reset, Way};
use crate::agents::{AskError, Driver, Invocation, InvocationPlace, ResetError};
use crate::answer::AgentAnswer;
use crate::dial::Dialler;
use crate::model::{ModelCallError, ModelClient, ModelPrompt};
use crate::prompt::Prompt;
use crate::reach::{Reach, ReachError, RequestedChaos, Rules, Seen};
use crate::run::{CheckRecord, CheckState};
use crate::suite::Suite;

/// How long Squall waits for the last exchanges of the invocation to end after the agent has answered.
const SETTLE: Duration = Duration::from_secs(2);

/// The inputs of a verification.
pub struct Verifying<'v> {
    /// The suite.
    pub suite: &'v Suite,
    /// Invokes the agent.
    pub driver: &'v dyn Driver,
    /// The proxy.
    pub reach: &'v dyn Reach,
    /// Opens connections for the suite.
    pub dialler: &'v Dialler,
    /// Id of the run.
    pub run: &'v str,
    /// Slot and scope of the invocation.
    pub place: &'v InvocationPlace,
    /// The scope of calls that carry none.
    pub shared: &'v str,
}

/// Returns the checks in order. Invokes the agent once with its first golden prompt, if the suite has one. Ends all
/// activations that it began.
///
/// # Errors
///
/// A request to the proxy failed.
pub async fn verify(of: &Verifying<'_>) -> Result<Vec<CheckRecord>, ReachError> {
    let checked = checked(of).await;
    let ended = of.reach.end_run(of.run).await;
    let checked = checked?;
    ended?;
    Ok(checked)
}

/// Whether a run is possible.
pub fn holds(checks: &[CheckRecord]) -> bool {
    checks.iter().all(|check| check.state != CheckState::Failed)
}

async fn checked(of: &Verifying<'_>) -> Result<Vec<CheckRecord>, ReachError> {
    let mut checks = Checks::of(of.suite);
    doubts(of.suite, &mut checks);
    reset(of, &mut checks).await;
    match of.suite.golden_prompts.first() {
        Some(prompt) => {
            let asked = ask(of, prompt).await?;
            let is_there = agent(of.suite, &asked.answer, &mut checks);
            answer(&of.suite.agent.way, &asked.answer, &mut checks);
            let unknown = if !is_there {
                Some("the agent was not reached")
            } else if asked.failed_unseen() {
                Some("the agent failed before a call of it was seen")
            } else {
                None
            };
            match unknown {
                None => traffic::look(of, &asked, &mut checks),
                Some(why) => {
                    for name in ["proxy", "scopes", "upstreams", "models", "tools"] {
                        checks.skipped(name, why);
                    }
                }
            }
        }
        None => checks.failed(
            "agent",
            "/golden_prompts",
            "the suite has no golden prompt, and runs ask nothing else".to_owned(),
            "write what the agent is asked: `golden_prompts: [What is the weather in Kiel?]`",
        ),
    }
    model(of.suite, of.dialler, &mut checks).await;
    Ok(checks.all)
}

/// Reports settings in the suite that are probably mistakes, including rules that can never match.
fn doubts(suite: &Suite, checks: &mut Checks<'_>) {
    if suite.notes.is_empty() {
        return checks.passed("suite", "valid");
    }
    for note in &suite.notes {
        let advice = "change this line, or leave it out";
        checks.warned("suite", &note.pointer, note.message.clone(), advice);
    }
}

/// The results of the one invocation.
struct ProbeResult {
    invocation: Invocation,
    answer: Result<AgentAnswer, AskError>,
    /// Exchanges in the scope that the agent was given.
    own: Seen,
    /// Exchanges without a scope.
    shared: Seen,
}

impl ProbeResult {
    /// Whether the agent failed and none of its calls was seen.
    fn failed_unseen(&self) -> bool {
        let answered = matches!(&self.answer, Ok(answer) if answer.error.is_none());
        !answered && self.own.exchanges.is_empty() && self.shared.exchanges.is_empty()
    }
}

async fn ask(of: &Verifying<'_>, prompt: &Prompt) -> Result<ProbeResult, ReachError> {
    let invocation = Invocation::new(of.run, prompt, of.place.clone(), "verify");
    let wanted = |trace, slot| RequestedChaos {
        run: of.run.to_owned(),
        rules: Rules::Nothing,
        seed: 0,
        key: "verify".to_owned(),
        trace,
        slot,
        after: None,
        connects_anew: false,
        tools: of.suite.tools.names.clone(),
        tape: None,
    };
    let trace = TraceId::of_traceparent(&invocation.traceparent);
    let slot = Some(of.place.slot.clone());
    let own = of.reach.begin(&of.place.scope, wanted(trace, slot)).await?;
    let shared = of.reach.begin(of.shared, wanted(None, None)).await?;
    let told = of.driver.ask(&invocation).await;
    let own = of
        .reach
        .seen(own.activation.as_deref().unwrap_or_default(), SETTLE);
    let own = own.await?;
    let shared = shared.activation.unwrap_or_default();
    let shared = of.reach.seen(&shared, SETTLE).await?;
    Ok(ProbeResult {
        invocation,
        answer: told,
        own,
        shared,
    })
}

async fn reset(of: &Verifying<'_>, checks: &mut Checks<'_>) {
    if of.suite.agent.reset.is_none() {
        return checks.skipped("reset", "the suite names no way to reset the agent");
    }
    match of.driver.reset(of.place).await {
        Ok(()) => checks.passed("reset", "the agent was reset"),
        Err(ResetError::NotThere(_)) => checks.skipped("reset", "the agent was not started"),
        Err(error) => checks.failed(
            "reset",
            match &of.suite.agent.reset {
                Some(Reset::Function(_)) => "/agent/reset_function",
                Some(Reset::Command(_)) => "/agent/reset_command",
                Some(Reset::Endpoint(_)) | None => "/agent/reset_endpoint",
            },
            error.to_string(),
            "a reset answers with 2xx, ends with code 0 or returns without an exception, within 5 s",
        ),
    }
}

/// Whether the agent is reachable.
fn agent(suite: &Suite, told: &Result<AgentAnswer, AskError>, checks: &mut Checks<'_>) -> bool {
    let Some(error) = told.as_ref().err().filter(|error| error.is_absence()) else {
        checks.passed(
            "agent",
            format!(
                "the agent of type `{}` can be reached",
                suite.agent.way.as_str()
            ),
        );
        return true;
    };
    let (pointer, advice) = match (&suite.agent.way, &suite.agent.start) {
        (_, Some(_)) => (
            "/agent/start",
            "see that the program starts by itself, and that `ready_url` answers with 2xx once it is ready",
        ),
        (Way::Http(_) | Way::OpenAi(_), None) => (
            "/agent/endpoint",
            "start the agent, correct its address, or let Squall start it: `start: {command: [python, \
             server.py], ready_url: http://127.0.0.1:8000/health}`",
        ),
        (Way::Command(_), None) => (
            "/agent/command",
            "name a program that is on the PATH, or by its path from where the command runs",
        ),
        (Way::Python { .. }, None) => (
            "/agent/endpoint",
            "name `module:attribute` of a module beside the suite, or of one that the interpreter has; \
             SQUALL_PYTHON names another interpreter",
        ),
    };
    checks.failed("agent", pointer, error.to_string(), advice);
    false
}

/// Whether the answer has the form that the suite describes.
fn answer(way: &Way, told: &Result<AgentAnswer, AskError>, checks: &mut Checks<'_>) {
    let failed = match told {
        Err(AskError::Unreachable { .. } | AskError::NotStarted { .. }) => {
            return checks.skipped("answer", "the agent was not reached");
        }
        Err(error @ (AskError::NotThere { .. } | AskError::SaysNothing { .. })) => (
            "/agent/response_path",
            error.to_string(),
            "write the path to the answer, `choices.0.message.content` or a JSONPath, or leave it out",
        ),
        Err(error @ AskError::Placeholder { .. }) => (
            "/agent/request_template",
            error.to_string(),
            "write a placeholder that the golden prompts have, or `{prompt}`",
        ),
        Err(error @ AskError::TooLong) => {
            ("/agent", error.to_string(), "make the agent answer in less")
        }
        Err(error @ (AskError::Request(_) | AskError::NotReset(_))) => (
            "/agent",
            error.to_string(),
            "correct `endpoint`, `headers` or `request_template`",
        ),
        Ok(answer) => match &answer.error {
            Some(why) if answer.timed_out => (
                "/agent/timeout",
                why.clone(),
                "raise `timeout`, up to 300000, or make the agent faster: nothing was injected",
            ),
            Some(why) => (
                "/agent",
                why.clone(),
                match way {
                    Way::Command(_) => {
                        "the agent fails without chaos: run the command by hand with a prompt on stdin"
                    }
                    Way::Python { .. } => {
                        "the agent fails without chaos: call it by hand with a prompt"
                    }
                    Way::Http(_) | Way::OpenAi(_) => {
                        "the agent fails without chaos: see its log, and check `headers` and `request_template`"
                    }
                },
            ),
            None if answer.text.trim().is_empty() => (
                "/agent/response_path",
                "the answer is empty".to_owned(),
                "name the place of the answer: `response_path: choices.0.message.content`",
            ),
            None => {
                let (length, took) = (answer.text.chars().count(), answer.latency.as_millis());
                let found = format!(
                    "the first golden prompt was answered in {took} ms, {length} characters"
                );
                return checks.passed("answer", found);
            }
        },
    };
    let (pointer, found, advice) = failed;
    checks.failed("answer", pointer, found, advice);
}

/// Whether the suite's model is reachable, if an invariant needs it.
async fn model(suite: &Suite, dialler: &Dialler, checks: &mut Checks<'_>) {
    let Some(model) = &suite.model else {
        return checks.skipped("model", "the suite names no model of its own");
    };
    if !suite.is_judged_by_model() {
        let why = "no invariant is judged by the suite's model; it is for mutations only";
        return checks.skipped("model", why);
    }
    let request = ModelPrompt {
        system: "You are asked whether you are there.",
        prompt: "Answer with the word yes.",
        temperature: 0.0,
        most_tokens: 16,
        json: false,
    };
    match ModelClient::new(model, dialler).ask(&request).await {
        Ok(_) => checks.passed("model", format!("`{}` answers", model.name)),
        Err(error) => {
            let (pointer, advice) = match &error {
                ModelCallError::Refused {
                    status: 401 | 403, ..
                } => (
                    "/model/api_key",
                    "set the variable that `api_key` names to a key that is valid",
                ),
                ModelCallError::Refused { status: 404, .. } => (
                    "/model/name",
                    "name a model that the provider serves; of Ollama, pull it first",
                ),
                ModelCallError::Unreachable { .. } => (
                    "/model/base_url",
                    "start the provider, or correct `base_url`",
                ),
                ModelCallError::Refused { .. } | ModelCallError::Unread { .. } => (
                    "/model",
                    "correct `provider`, `base_url` and `name`: they do not fit each other",
                ),
            };
            checks.failed("model", pointer, error.to_string(), advice);
        }
    }
}

#[cfg(test)]
mod tests;
