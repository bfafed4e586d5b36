//! An agent with an endpoint that Squall starts: `agent.start`.

use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;
use squall_journal::reach::Pending;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::group::{Group, Tail};
use super::pointing::ProxyVariables;
use super::turn::{client, why};
use super::{AskError, Driver, Invocation, ResetError};
use crate::answer::Answer;
use crate::suite::agent::Start;

/// How long it may take until it is ready.
const READY: Duration = Duration::from_mins(1);

/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_millis(50);

/// How long a process that has failed is looked after.
const NOTICED: Duration = Duration::from_secs(1);

/// How long it may take to end when it is asked to.
const ENDING: Duration = Duration::from_secs(5);

/// An agent that is started before it is first asked, and again when it has ended: a crash is the
/// failure of the asking in which it came, not of all that follow.
pub(super) struct Started {
    agent: Box<dyn Driver>,
    start: Start,
    variables: ProxyVariables,
    client: Client,
    /// How long it may take until it is ready.
    ready_within: Duration,
    server: Mutex<Option<Server>>,
    /// Why it was not ready in time, if it once was not: nobody waits for that again.
    never_ready: OnceLock<String>,
}

/// Why it does not run.
enum NotRunning {
    /// It was not ready in time.
    NotReady(String),
    /// It could not be started, or ended at once.
    NotStarted(String),
}

struct Server {
    child: Child,
    group: Group,
    said: Tail,
}

impl Started {
    pub(super) fn new(agent: Box<dyn Driver>, start: Start, variables: ProxyVariables) -> Self {
        Self {
            agent,
            start,
            variables,
            client: client(),
            ready_within: READY,
            server: Mutex::default(),
            never_ready: OnceLock::new(),
        }
    }

    /// Makes sure that it runs.
    async fn running(&self) -> Result<(), String> {
        let mut server = self.server.lock().await;
        if let Some(running) = server.as_mut()
            && matches!(running.child.try_wait(), Ok(None))
        {
            return Ok(());
        }
        if let Some(why) = self.never_ready.get() {
            return Err(why.clone());
        }
        // One that has ended leaves nothing behind.
        *server = None;
        match self.begun().await {
            Ok(begun) => {
                *server = Some(begun);
                Ok(())
            }
            Err(NotRunning::NotStarted(why)) => Err(why),
            Err(NotRunning::NotReady(why)) => Err(self.never_ready.get_or_init(|| why).clone()),
        }
    }

    async fn begun(&self) -> Result<Server, NotRunning> {
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
                let said = server.said.told_at_the_end().await;
                return Err(NotRunning::NotStarted(format!(
                    "it ended with {status}{said}"
                )));
            }
            if Instant::now() >= patience {
                let within = self.ready_within.as_secs();
                let said = server.said.told();
                return Err(NotRunning::NotReady(format!(
                    "`ready_url: {ready_url}` was not answered with 2xx within {within} s \
                     ({not_yet}){said}"
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// After a failure: where nobody listens any more, its end is waited for, so that the next asking does
    /// not meet a process that is just going.
    async fn notice_its_end(&self) {
        let request = self.client.get(&self.start.ready_url).timeout(NOTICED);
        match request.send().await {
            Err(error) if !error.is_timeout() => {}
            Ok(_) | Err(_) => return,
        }
        let mut server = self.server.lock().await;
        if let Some(ending) = server.as_mut()
            && tokio::time::timeout(NOTICED, ending.child.wait())
                .await
                .is_ok()
        {
            *server = None;
        }
    }

    fn spawn(&self) -> Result<Server, String> {
        let words = &self.start.command;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .envs((self.variables)(None))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Group::of_its_own(&mut command);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let group = Group::of(&child);
        let mut said = Tail::default();
        said.follow(child.stdout.take());
        said.follow(child.stderr.take());
        Ok(Server { child, group, said })
    }

    async fn is_ready(&self) -> Result<(), String> {
        let request = self.client.get(&self.start.ready_url).timeout(ENDING);
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("status {}", response.status().as_u16())),
            Err(error) => Err(why(&error)),
        }
    }

    fn not_started(&self, why: String) -> AskError {
        AskError::NotStarted {
            program: self.start.command[0].clone(),
            why,
        }
    }
}

impl Server {
    /// How it ended, if it did; what it had started ends too.
    fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten()?;
        self.group.end();
        self.group.forget();
        Some(status)
    }

    /// Asks it to end, and ends it when it does not.
    async fn stop(mut self) {
        self.group.ask_to_end();
        let _ = tokio::time::timeout(ENDING, self.child.wait()).await;
        self.group.end();
        self.group.forget();
    }
}

impl Driver for Started {
    fn ask<'a>(&'a self, invocation: &'a Invocation) -> Pending<'a, Result<Answer, AskError>> {
        Box::pin(async move {
            let running = self.running().await;
            running.map_err(|why| self.not_started(why))?;
            let told = self.agent.ask(invocation).await;
            if !matches!(&told, Ok(answer) if answer.error.is_none()) {
                self.notice_its_end().await;
            }
            told
        })
    }

    fn reset<'a>(&'a self, scope: &'a str) -> Pending<'a, Result<(), ResetError>> {
        Box::pin(async move {
            let running = self.running().await;
            running.map_err(|why| ResetError::NotThere(self.not_started(why)))?;
            self.agent.reset(scope).await
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

#[cfg(all(test, unix))]
mod tests;
