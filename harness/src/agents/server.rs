//! An agent with an endpoint that Squall starts itself: `agent.start`.

use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Client;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::group::{Group, Tail};
use super::pointing::ProxyVariables;
use super::settings::Start;
use super::{AskError, Driver, Invocation, InvocationPlace, PromptTurn, ResetError, Surroundings};
use crate::answer::AgentAnswer;
use crate::dial::{Dialler, innermost};
use crate::reach::Pending;

/// Default time until the agent must be ready.
const READY: Duration = Duration::from_mins(1);

/// Interval of readiness checks.
const LOOK: Duration = Duration::from_millis(50);

/// How long Squall waits for the end of a process that is unreachable or broke its answer off.
const NOTICED: Duration = Duration::from_secs(1);

/// How long the process may take to end after SIGTERM.
const ENDING: Duration = Duration::from_secs(5);

/// Most restarts for one request, if the process had ended before it accepted the connection. It may have ended
/// after its previous answer or because of another invocation.
const ANEW: u64 = 5;

/// An agent that is started before the first invocation, and restarted after it has ended. A crash fails only the
/// invocation in which it happened.
pub(super) struct Started {
    agent: Box<dyn Driver>,
    launcher: Launcher,
    server: Mutex<Option<Server>>,
    /// Why the agent was not ready in time, if that happened: later invocations do not wait again.
    never_ready: OnceLock<String>,
}

/// Starts a server, and checks whether it is ready.
pub(crate) struct Launcher {
    pub(crate) start: Start,
    variables: ProxyVariables,
    /// The scope of its calls; `None`: that of each invocation.
    scope: Option<&'static str>,
    client: Client,
    /// Time until the server must be ready.
    ready_within: Duration,
    /// Number of starts.
    starts: AtomicU64,
}

/// Why a server is not running.
pub(crate) enum NotRunning {
    /// It was not ready in time.
    NotReady(String),
    /// It could not be started, or ended at once.
    NotStarted(String),
}

impl NotRunning {
    /// Why.
    pub(crate) fn into_why(self) -> String {
        let (Self::NotReady(why) | Self::NotStarted(why)) = self;
        why
    }
}

/// A server that was started. Dropping it kills it and its descendants.
pub(crate) struct Server {
    /// The number of this start.
    number: u64,
    child: Child,
    group: Group,
    output: Tail,
}

impl Started {
    pub(super) fn new(agent: Box<dyn Driver>, start: Start, surroundings: &Surroundings) -> Self {
        let (variables, dialler) = (surroundings.variables.clone(), &surroundings.dialler);
        Self {
            agent,
            launcher: Launcher::new(start, variables, None, dialler),
            server: Mutex::default(),
            never_ready: OnceLock::new(),
        }
    }

    /// Starts the agent if it is not running; returns the number of the start.
    async fn running(&self) -> Result<u64, String> {
        let mut server = self.server.lock().await;
        if let Some(running) = server.as_mut()
            && matches!(running.child.try_wait(), Ok(None))
        {
            return Ok(running.number);
        }
        if let Some(why) = self.never_ready.get() {
            return Err(why.clone());
        }
        // Dropping an ended server kills its remaining descendants.
        *server = None;
        match self.launcher.begun().await {
            Ok(begun) => {
                let number = begun.number;
                *server = Some(begun);
                Ok(number)
            }
            Err(NotRunning::NotStarted(why)) => Err(why),
            Err(NotRunning::NotReady(why)) => Err(self.never_ready.get_or_init(|| why).clone()),
        }
    }

    /// Whether the process with this number has ended. It may be about to end if it is unreachable.
    async fn has_ended(&self, number: u64) -> bool {
        let mut server = self.server.lock().await;
        let Some(asked) = server.as_mut().filter(|server| server.number == number) else {
            return true;
        };
        let ended = tokio::time::timeout(NOTICED, asked.child.wait()).await;
        if ended.is_ok() {
            *server = None;
        }
        ended.is_ok()
    }

    fn not_started(&self, why: String) -> AskError {
        AskError::NotStarted {
            program: self.launcher.start.command[0].clone(),
            why,
        }
    }
}

impl Launcher {
    pub(crate) fn new(
        start: Start,
        variables: ProxyVariables,
        scope: Option<&'static str>,
        dialler: &Dialler,
    ) -> Self {
        Self {
            client: dialler.client(&start.ready_url),
            start,
            variables,
            scope,
            ready_within: READY,
            starts: AtomicU64::new(0),
        }
    }

    /// Starts the server, and waits until it is ready. It must not be running already.
    pub(crate) async fn begun(&self) -> Result<Server, NotRunning> {
        let ready_url = &self.start.ready_url;
        if self.is_ready().await.is_ok() {
            return Err(NotRunning::NotStarted(format!(
                "something answers at `ready_url: {ready_url}` before the agent was started; end it, \
                 or remove `start` from the suite"
            )));
        }
        let mut server = self.spawn().map_err(NotRunning::NotStarted)?;
        let patience = Instant::now() + self.ready_within;
        loop {
            let not_yet = match self.is_ready().await {
                Ok(()) => return Ok(server),
                Err(not_yet) => not_yet,
            };
            if let Some(status) = server.ended() {
                let output = server.output.last_lines_at_the_end().await;
                return Err(NotRunning::NotStarted(format!(
                    "it ended with {status}{output}"
                )));
            }
            if Instant::now() >= patience {
                let within = self.ready_within.as_secs();
                let output = server.output.last_lines();
                return Err(NotRunning::NotReady(format!(
                    "`ready_url: {ready_url}` was not answered with 2xx within {within} s \
                     ({not_yet}){output}"
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn spawn(&self) -> Result<Server, String> {
        let words = &self.start.command;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .envs((self.variables)(self.scope))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut child, group) = Group::spawn(&mut command).map_err(|error| error.to_string())?;
        let mut output = Tail::default();
        output.follow(child.stdout.take());
        output.follow(child.stderr.take());
        Ok(Server {
            number: self.starts.fetch_add(1, Ordering::Relaxed),
            child,
            group,
            output,
        })
    }

    /// Whether `ready_url` responds with 2xx, or why not.
    pub(crate) async fn is_ready(&self) -> Result<(), String> {
        let request = self.client.get(&self.start.ready_url).timeout(ENDING);
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("status {}", response.status().as_u16())),
            Err(error) => Err(innermost(&error)),
        }
    }
}

impl Server {
    /// The exit status if it has ended; then its descendants are killed too.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten()?;
        self.group.end();
        Some(status)
    }

    /// Its output that is kept.
    pub(crate) fn output(&self) -> String {
        self.output.text()
    }

    /// Sends SIGTERM, and kills the group after a time-out.
    pub(crate) async fn stop(mut self) {
        self.group.ask_to_end();
        let _ = tokio::time::timeout(ENDING, self.child.wait()).await;
        self.group.end();
    }
}

impl Driver for Started {
    fn turn<'a>(
        &'a self,
        invocation: &'a Invocation,
        turn: PromptTurn<'a>,
    ) -> Pending<'a, Result<AgentAnswer, AskError>> {
        Box::pin(async move {
            let mut left = ANEW;
            loop {
                let running = self.running().await;
                let number = running.map_err(|why| self.not_started(why))?;
                let told = self.agent.turn(invocation, turn).await;
                let is_gone = matches!(told, Err(AskError::Unreachable { .. }));
                // The next invocation must not reach a process that is ending.
                let may_end = is_gone || matches!(&told, Ok(answer) if answer.broke_off);
                let has_ended = may_end && self.has_ended(number).await;
                if !is_gone || left == 0 || !has_ended {
                    return told;
                }
                left -= 1;
            }
        })
    }

    fn reset<'a>(&'a self, place: &'a InvocationPlace) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(async move {
            let mut left = ANEW;
            loop {
                let running = self.running().await;
                let number = running.map_err(|why| ResetError::NotThere(self.not_started(why)))?;
                let reset = self.agent.reset(place).await;
                let is_gone = matches!(reset, Err(ResetError::NotThere(_)));
                if !is_gone || left == 0 || !self.has_ended(number).await {
                    return reset;
                }
                left -= 1;
            }
        })
    }

    fn stop(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            let server = self.server.lock().await.take();
            if let Some(server) = server {
                server.stop().await;
            }
            self.agent.stop().await;
        })
    }
}

#[cfg(test)]
mod tests;
