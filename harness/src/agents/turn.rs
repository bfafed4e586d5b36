//! One turn with an agent that is asked over HTTP: sent, tried again where nobody was there, read.

use std::ops::ControlFlow;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use squall_profiles::json_tree;

use super::body::{self, Unread};
use super::{AskError, Invocation, extract, stream};
use crate::answer::Answer;
use crate::suite::agent::Pairs;

/// What came of one turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Answered(String),
    /// The agent's own failure, and what it said all the same.
    Failed {
        text: String,
        why: String,
    },
    /// The connection ended before the answer, behind this.
    BrokenOff {
        text: String,
        why: String,
    },
    /// Its time was over, behind this.
    TimedOut {
        text: String,
        why: String,
    },
}

impl Turn {
    /// Makes the answer what came of this turn. No other turn follows one that failed.
    pub(super) fn put_into(self, answer: &mut Answer) -> ControlFlow<()> {
        match self {
            Self::Answered(text) => {
                answer.text = text;
                ControlFlow::Continue(())
            }
            Self::Failed { text, why } => {
                answer.text = text;
                answer.error = Some(why);
                ControlFlow::Break(())
            }
            Self::BrokenOff { text, why } => {
                answer.text = text;
                answer.error = Some(why);
                answer.broke_off = true;
                ControlFlow::Break(())
            }
            Self::TimedOut { text, why } => {
                answer.text = text;
                answer.error = Some(why);
                answer.timed_out = true;
                ControlFlow::Break(())
            }
        }
    }
}

/// Of one that had answered a turn before: gone since, it has failed itself.
pub(super) fn of_a_later_turn(came: Result<Turn, AskError>) -> Result<Turn, AskError> {
    match came {
        Err(gone @ AskError::Unreachable { .. }) => Ok(Turn::BrokenOff {
            text: String::new(),
            why: gone.to_string(),
        }),
        other => other,
    }
}

/// Has turns with one agent.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) endpoint: String,
    /// The suite's own: they win over all others.
    pub(super) headers: Pairs,
    /// Where the answer stands; absent: it is found.
    pub(super) path: Option<String>,
    /// Where it stands if it is `null` there.
    pub(super) instead: Option<&'static str>,
    /// Of a whole invocation.
    pub(super) timeout: Duration,
    /// How often an invocation is tried again that reached nobody.
    pub(super) retries: u64,
}

impl Caller {
    /// Sends what `request` makes, within `left`.
    pub(super) async fn turn(
        &self,
        invocation: &Invocation,
        left: Duration,
        request: impl Fn() -> Result<RequestBuilder, AskError>,
    ) -> Result<Turn, AskError> {
        let headers = self.headers(invocation)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let request = request()?.headers(headers.clone()).timeout(left);
            match request.send().await {
                Ok(response) => return self.read(response).await,
                Err(error) if error.is_builder() => {
                    return Err(AskError::Request(why(&error)));
                }
                // Who lets a connection hang was given enough time.
                Err(error)
                    if error.is_connect() && !error.is_timeout() && tries <= self.retries => {}
                Err(error) if error.is_connect() => {
                    return Err(AskError::Unreachable {
                        endpoint: self.endpoint.clone(),
                        tries,
                        why: unreached(&error),
                    });
                }
                Err(error) => return Ok(self.broken(&error, String::new())),
            }
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

    fn broken(&self, error: &reqwest::Error, text: String) -> Turn {
        let why = self.why_broken(error);
        if error.is_timeout() {
            return Turn::TimedOut { text, why };
        }
        Turn::BrokenOff { text, why }
    }

    fn why_broken(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return format!("there was no answer within {} ms", self.timeout.as_millis());
        }
        format!("the answer broke off: {}", why(error))
    }

    async fn read(&self, response: Response) -> Result<Turn, AskError> {
        let status = response.status();
        let media_type = body::media_type(response.headers());
        let so_far = |text: &str| stream::so_far(&media_type, text, self.path.as_deref());
        let text = match body::read(response).await {
            Err(Unread::Broken { error, text }) => return Ok(self.broken(&error, so_far(&text))),
            Err(Unread::Undecodable { why, text }) if status.is_success() => {
                let why = format!("the answer cannot be read: {why}");
                let text = so_far(&text);
                return Ok(Turn::Failed { text, why });
            }
            Ok(text) | Err(Unread::Undecodable { text, .. }) => text,
            Err(Unread::TooLong) => return Err(AskError::TooLong),
            Err(Unread::DecodesTooLong) => return Err(AskError::DecodesTooLong),
        };
        if !status.is_success() {
            let why = format!("the agent answered with status {}", status.as_u16());
            return Ok(Turn::Failed { text, why });
        }
        if let Some(turn) = stream::turn(&media_type, &text, self.path.as_deref()) {
            return turn;
        }
        match json_tree::read(text.as_bytes()) {
            Ok(tree) => self.read_document(&tree.value, text),
            // What is no JSON has no parts to choose from.
            Err(shape) => match &self.path {
                Some(path) => Err(AskError::NotThere {
                    path: path.clone(),
                    why: "leads nowhere".to_owned(),
                    shape: shape.to_string(),
                }),
                None => Ok(Turn::Answered(text)),
            },
        }
    }

    fn read_document(&self, document: &Value, text: String) -> Result<Turn, AskError> {
        if let Some(why) = extract::reported_failure(document) {
            return Ok(Turn::Failed { text, why });
        }
        let path = self.path.as_deref();
        if let Some(instead) = self.instead
            && extract::is_null(document, path)
        {
            let said = document.pointer(instead).and_then(Value::as_str);
            return Ok(Turn::Answered(said.unwrap_or_default().to_owned()));
        }
        extract::answer(document, path).map(Turn::Answered)
    }
}

/// Why nobody took a connection.
fn unreached(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "nobody took the connection in time".to_owned();
    }
    why(error)
}

/// The innermost reason. The outermost one names the URL, which may hold a secret.
pub(crate) fn why(error: &reqwest::Error) -> String {
    let mut source = std::error::Error::source(error);
    let mut told = None;
    while let Some(inner) = source {
        told = Some(inner.to_string());
        source = inner.source();
    }
    told.unwrap_or_else(|| "the request failed".to_owned())
}
