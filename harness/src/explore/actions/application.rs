//! The application: starts it, resets it, sends it actions, and observes it.
//!
//! Actions pass through the proxy, so that chaos may be in force. Resets, states and logs do not.

use std::time::Instant;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;
use squall_journal::redact::Redactor;

use super::observation::{FoundAnomaly, NO_STATE, Observation};
use super::settings::{ActionChoice, ActionRequest, Exploration};
use super::signature::signature;
use crate::agents::body::{self, Unread};
use crate::agents::pointing::ProxyVariables;
use crate::agents::server::{Launcher, Server};
use crate::dial::{Dialler, innermost};

/// The scope of actions, and of the calls of an application that is started here.
pub const SCOPE: &str = "explore";

/// Lines in an excerpt of the log.
const LINES: usize = 10;

/// Longest line in an excerpt of the log, in bytes.
const LONGEST_LINE: usize = 500;

/// Longest response that is kept as JSON; of longer ones only the beginning is kept, as text.
const LONGEST: usize = 64 << 10;

/// An application with state.
pub struct Application<'a> {
    settings: &'a Exploration,
    /// Sends actions through the proxy.
    proxied: Client,
    /// Sends everything else.
    direct: Client,
    launcher: Option<Launcher>,
    server: Option<Server>,
}

/// Why an application cannot be explored.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// It could not be started.
    #[error("the application could not be started by {program}: {why}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        why: String,
    },
    /// A request that every episode needs failed.
    #[error("the application's {what} at {url} failed: {why}; check `explore.{what}`")]
    Failed {
        /// `reset` or `state`.
        what: &'static str,
        /// Its URL.
        url: String,
        /// Why.
        why: String,
    },
    /// The proxy cannot be used.
    #[error("actions cannot be sent through the proxy: {0}")]
    NoProxy(String),
    /// A file contains an action that the suite does not declare.
    #[error("the suite declares no action `{0}` with these values; only declared actions are sent")]
    Undeclared(ActionChoice),
}

impl<'a> Application<'a> {
    /// Starts the application if it is not running and the suite declares how.
    pub async fn open(
        settings: &'a Exploration,
        variables: ProxyVariables,
        dialler: &Dialler,
    ) -> Result<Self, ExploreError> {
        let pointed = variables(Some(SCOPE));
        let find = |name| {
            let mut found = pointed.iter().filter(|(known, _)| *known == name);
            found.next().map_or("", |(_, value)| value)
        };
        let proxied = Dialler::client_through(find("HTTP_PROXY"), find("SSL_CERT_FILE"));
        let launcher = settings.start.clone();
        let launcher = launcher.map(|start| Launcher::new(start, variables, Some(SCOPE), dialler));
        let mut application = Self {
            settings,
            proxied: proxied.map_err(ExploreError::NoProxy)?,
            direct: dialler.client(&settings.base_url),
            launcher,
            server: None,
        };
        application.start().await?;
        Ok(application)
    }

    /// Ends the application if it was started here. Dropping it kills it.
    pub async fn close(self) {
        if let Some(server) = self.server {
            server.stop().await;
        }
    }

    async fn start(&mut self) -> Result<(), ExploreError> {
        let Some(launcher) = &self.launcher else {
            return Ok(());
        };
        if launcher.is_ready().await.is_ok() {
            return Ok(());
        }
        // Dropping an ended server kills its remaining descendants.
        self.server = None;
        let begun = launcher.begun().await;
        let server = begun.map_err(|reason| ExploreError::NotStarted {
            program: launcher.start.command[0].clone(),
            why: reason.into_why(),
        })?;
        self.server = Some(server);
        Ok(())
    }

    /// Resets the application, and observes it. Restarts it if it has ended.
    pub async fn reset(&mut self) -> Result<Observation, ExploreError> {
        if self
            .server
            .as_mut()
            .is_some_and(|server| server.ended().is_some())
        {
            self.start().await?;
        }
        let reset = &self.settings.reset;
        let failed = |what, url: &str, why| ExploreError::Failed {
            what,
            url: url.to_owned(),
            why,
        };
        let (status, _) = self
            .send(&self.direct, reset)
            .await
            .map_err(|why| failed("reset", &reset.url, why))?;
        if !status.is_success() {
            return Err(failed(
                "reset",
                &reset.url,
                format!("status {}", status.as_u16()),
            ));
        }
        let mut seen = Observation::default();
        self.observe(&mut seen)
            .await
            .map_err(|why| failed("state", &self.settings.state, why))?;
        Ok(seen)
    }

    /// Sends an action, and observes the application after it.
    pub async fn act(&self, choice: &ActionChoice) -> Result<Observation, ExploreError> {
        let request = self.settings.request(choice);
        let request = request.ok_or_else(|| ExploreError::Undeclared(choice.clone()))?;
        let mut seen = Observation::default();
        let began = Instant::now();
        let sent = self.answered(&request).await;
        let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        seen.latency_ms = elapsed;
        match sent {
            Ok((status, latency, text)) => {
                seen.status = Some(status.as_u16());
                seen.latency_ms = latency.unwrap_or(elapsed);
                seen.response = document(text);
            }
            Err(why) => seen.error = Some(why),
        }
        if let Err(why) = self.observe(&mut seen).await {
            seen.signature = signature(&Value::Null);
            let anomaly = NO_STATE.to_owned();
            seen.anomalies.push(FoundAnomaly {
                anomaly,
                found: why,
            });
        }
        Ok(seen)
    }

    /// The response to an action, with the latency in the header that the suite names.
    async fn answered(
        &self,
        request: &ActionRequest,
    ) -> Result<(StatusCode, Option<u64>, String), String> {
        let response = self.build(&self.proxied, request).send().await;
        let response = response.map_err(|error| innermost(&error))?;
        let header = self.settings.latency_header.as_ref();
        let latency = header.and_then(|name| response.headers().get(name));
        let latency = latency.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        Ok((response.status(), latency, read(response).await?))
    }

    async fn send(
        &self,
        client: &Client,
        request: &ActionRequest,
    ) -> Result<(StatusCode, String), String> {
        let response = self.build(client, request).send().await;
        let response = response.map_err(|error| innermost(&error))?;
        Ok((response.status(), read(response).await?))
    }

    fn build(&self, client: &Client, request: &ActionRequest) -> RequestBuilder {
        let mut builder = client
            .request(request.method.clone(), &request.url)
            .timeout(self.settings.timeout);
        for (name, value) in &self.settings.headers.0 {
            builder = builder.header(name, value);
        }
        match &request.body {
            Some(body) => builder
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string()),
            None => builder,
        }
    }

    async fn get(&self, url: &str) -> Result<String, String> {
        let request = ActionRequest {
            method: reqwest::Method::GET,
            url: url.to_owned(),
            body: None,
        };
        match self.send(&self.direct, &request).await? {
            (status, text) if status.is_success() => Ok(text),
            (status, _) => Err(format!("status {}", status.as_u16())),
        }
    }

    /// Adds state, log and anomalies.
    async fn observe(&self, seen: &mut Observation) -> Result<(), String> {
        let log = match (&self.settings.logs, &self.server) {
            (Some(url), _) => self.get(url).await.unwrap_or_default(),
            (None, Some(server)) => server.output(),
            (None, None) => String::new(),
        };
        seen.log = excerpt(&log);
        let state = self.get(&self.settings.state).await?;
        seen.state = serde_json::from_str(&state).map_err(|error| format!("no JSON: {error}"))?;
        seen.signature = signature(&seen.state);
        let anomalies = self.settings.anomalies.iter();
        seen.anomalies = anomalies.filter_map(|anomaly| anomaly.find(seen)).collect();
        Ok(())
    }
}

async fn read(response: reqwest::Response) -> Result<String, String> {
    let text = body::read(response).await;
    text.map_err(|unread| match unread {
        Unread::Broken { error, .. } => innermost(&error),
        Unread::Coded(coding) => format!("the body has the content coding {coding}"),
        Unread::TooLong => "the body is longer than 8 MiB".to_owned(),
    })
}

fn document(mut text: String) -> Value {
    if text.len() <= LONGEST
        && let Ok(document) = serde_json::from_str(&text)
    {
        return document;
    }
    text.truncate(text.floor_char_boundary(LONGEST));
    Value::String(text)
}

/// The last lines of a log, secrets removed.
fn excerpt(log: &str) -> Vec<String> {
    let lines = log.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<_> = lines.rev().take(LINES).collect();
    let without_secrets = |line: &&str| {
        let mut line = (*line).to_owned();
        Redactor::default().text(&mut line, LONGEST_LINE);
        line
    };
    lines.iter().rev().map(without_secrets).collect()
}
