//! Turns of a conversation with an agent over HTTP: sends one, retries if the agent was not reached, and reads the
//! answer.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Request, RequestBuilder, Response, StatusCode, Version};
use serde_json::Value;
use squall_profiles::json_tree;

use super::body::{self, Unread};
use super::change::{self, RequestChange, UnsentChange};
use super::settings::Pairs;
use super::{AskError, Invocation, PromptTurn, extract, stream};
use crate::answer::AgentAnswer;
use crate::dial::{Dialler, innermost};

/// Calls one agent over HTTP.
#[derive(Debug)]
pub(super) struct HttpCaller {
    pub(super) client: Client,
    /// Opens the connections of changed requests that the client cannot send.
    pub(super) dialler: Dialler,
    pub(super) endpoint: String,
    /// The suite's headers, which override all others.
    pub(super) headers: Pairs,
    /// Path of the answer; absent: it is detected.
    pub(super) path: Option<String>,
    /// Alternative path if the value at `path` is `null`.
    pub(super) instead: Option<&'static str>,
    /// Time-out of a whole invocation.
    pub(super) timeout: Duration,
    /// Retries of an invocation that did not reach the agent.
    pub(super) retries: u64,
}

impl HttpCaller {
    /// Sends a turn. `request` builds its request.
    pub(super) async fn turn(
        &self,
        invocation: &Invocation,
        turn: PromptTurn<'_>,
        request: impl Fn() -> Result<RequestBuilder, AskError>,
    ) -> Result<AgentAnswer, AskError> {
        let began = Instant::now();
        let left = self.timeout.saturating_sub(turn.elapsed);
        let answer = match self.sent(invocation, left, request).await {
            // An agent that answered an earlier turn has failed, it is not unreachable.
            Err(gone @ AskError::Unreachable { .. }) if !turn.before.is_empty() => AgentAnswer {
                broke_off: true,
                ..AgentAnswer::failed(String::new(), gone.to_string())
            },
            came => came?,
        };
        Ok(AgentAnswer {
            latency: began.elapsed(),
            ..answer
        })
    }

    async fn sent(
        &self,
        invocation: &Invocation,
        left: Duration,
        request: impl Fn() -> Result<RequestBuilder, AskError>,
    ) -> Result<AgentAnswer, AskError> {
        let headers = self.headers(invocation)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let request = request()?.headers(headers.clone()).timeout(left).build();
            let request = request.map_err(|error| AskError::Request(innermost(&error)))?;
            if let Some(change) = &invocation.change {
                return self.changed(change, request, left).await;
            }
            match self.client.execute(request).await {
                Ok(response) => return self.read(response).await,
                // No retry after a connection time-out: the agent had enough time.
                Err(error)
                    if error.is_connect() && !error.is_timeout() && tries <= self.retries => {}
                Err(error) if error.is_connect() => {
                    return Err(self.unreachable(&error, tries));
                }
                Err(error) => return Ok(self.broken(&error, String::new())),
            }
        }
    }

    /// Sends a request with a change and reads the answer.
    async fn changed(
        &self,
        change: &RequestChange,
        request: Request,
        left: Duration,
    ) -> Result<AgentAnswer, AskError> {
        let requests = change.requests(request).map_err(AskError::Request)?;
        let answers = requests.into_iter().map(|request| async {
            let answer = tokio::time::timeout(left, self.changed_once(change, request)).await;
            answer.unwrap_or_else(|_| Ok(self.incomplete(true, "", String::new())))
        });
        let answers = join_all(answers).await.into_iter();
        // The first that failed, else the first that could not be read, else the first accepted one.
        let worst = answers.min_by_key(|answer| match answer {
            Ok(answer) if answer.rejected => 3,
            Ok(answer) if answer.error.is_some() => 0,
            Err(_) => 1,
            Ok(_) => 2,
        });
        worst.unwrap_or_else(|| Err(AskError::Request("there is no request".to_owned())))
    }

    async fn changed_once(
        &self,
        change: &RequestChange,
        request: Request,
    ) -> Result<AgentAnswer, AskError> {
        let response = match change::send(change, request, &self.client, &self.dialler).await {
            Ok(response) => response,
            Err(UnsentChange::Client(error)) if error.is_connect() => {
                return Err(self.unreachable(&error, 1));
            }
            Err(UnsentChange::Client(error)) => return Ok(self.broken(&error, String::new())),
            Err(UnsentChange::Broken(why)) => {
                return Ok(self.incomplete(false, &why, String::new()));
            }
            Err(UnsentChange::Request(why)) => return Err(AskError::Request(why)),
            Err(UnsentChange::Unreachable(why)) => {
                return Err(AskError::Unreachable {
                    endpoint: self.endpoint.clone(),
                    tries: 1,
                    why,
                });
            }
        };
        let status = response.status();
        let is_refusal = [
            StatusCode::NOT_IMPLEMENTED,
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        ]
        .contains(&status);
        if response.version() == Version::HTTP_09 {
            let text = body::read(response).await.unwrap_or_default();
            let why = "the agent answered without a status line of HTTP/1".to_owned();
            return Ok(AgentAnswer {
                rejected: true,
                ..AgentAnswer::failed(text, why)
            });
        }
        let answer = self.read(response).await?;
        Ok(AgentAnswer {
            rejected: status.is_client_error() || is_refusal,
            ..answer
        })
    }

    fn unreachable(&self, error: &reqwest::Error, tries: u64) -> AskError {
        AskError::Unreachable {
            endpoint: self.endpoint.clone(),
            tries,
            why: if error.is_timeout() {
                "the connection was not accepted in time".to_owned()
            } else {
                innermost(error)
            },
        }
    }

    fn headers(&self, invocation: &Invocation) -> Result<HeaderMap, AskError> {
        let mut headers = HeaderMap::new();
        let of_the_run = invocation
            .headers()
            .map(|(name, value)| (name.to_owned(), value));
        for (name, value) in of_the_run.iter().chain(&self.headers.0) {
            let name: HeaderName = name
                .parse()
                .map_err(|_| AskError::Request(format!("`{name}` is no name for a header")))?;
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| AskError::Request(format!("the value of `{name}` cannot be sent")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    /// An answer that ended early, after this text.
    fn broken(&self, error: &reqwest::Error, text: String) -> AgentAnswer {
        self.incomplete(error.is_timeout(), &innermost(error), text)
    }

    fn incomplete(&self, timed_out: bool, why: &str, text: String) -> AgentAnswer {
        let why = if timed_out {
            format!("there was no answer within {} ms", self.timeout.as_millis())
        } else {
            format!("the answer broke off: {why}")
        };
        AgentAnswer {
            timed_out,
            broke_off: !timed_out,
            ..AgentAnswer::failed(text, why)
        }
    }

    async fn read(&self, response: Response) -> Result<AgentAnswer, AskError> {
        let status = response.status();
        let media_type = body::media_type(response.headers());
        let path = self.path.as_deref();
        let so_far = |text: &str| stream::so_far(&media_type, text, path);
        let text = match body::read(response).await {
            Err(Unread::Broken { error, text }) => return Ok(self.broken(&error, so_far(&text))),
            Err(Unread::Coded(coding)) => {
                let why = format!(
                    "the answer has `content-encoding: {coding}`, which the request did not ask for"
                );
                return Ok(AgentAnswer::failed(String::new(), why));
            }
            Ok(text) => text,
            Err(Unread::TooLong) => return Err(AskError::TooLong),
        };
        if !status.is_success() {
            let why = format!("the agent answered with status {}", status.as_u16());
            return Ok(AgentAnswer::failed(text, why));
        }
        if let Some(answer) = stream::answer(&media_type, &text, path) {
            return answer;
        }
        match (json_tree::read(text.as_bytes()), path) {
            (Ok(tree), _) => self.read_document(&tree.value, text),
            // A path cannot be applied to a text that is not JSON.
            (Err(shape), Some(path)) => Err(AskError::NotThere {
                path: path.to_owned(),
                why: "leads nowhere".to_owned(),
                shape: shape.to_string(),
            }),
            (Err(_), None) => Ok(AgentAnswer::of(text)),
        }
    }

    fn read_document(&self, document: &Value, text: String) -> Result<AgentAnswer, AskError> {
        if let Some(why) = extract::reported_failure(document) {
            return Ok(AgentAnswer::failed(text, why));
        }
        let path = self.path.as_deref();
        if let Some(instead) = self.instead
            && extract::is_null(document, path)
        {
            let text = document.pointer(instead).and_then(Value::as_str);
            return Ok(AgentAnswer::of(text.unwrap_or_default()));
        }
        extract::answer(document, path).map(AgentAnswer::of)
    }
}
