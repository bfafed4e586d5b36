//! One turn with an agent that is asked over HTTP: sent, tried again where nobody was there, read.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};
use serde_json::Value;

use super::{AskError, Invocation, extract, stream};
use crate::suite::agent::Pairs;

/// Greatest answer that is read, bytes; a longer one is an error of the agent's.
const LONGEST: usize = 8 << 20;

/// What came of one turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Answered(String),
    /// The agent's own failure, and what it said all the same.
    Failed {
        text: String,
        why: String,
    },
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
    /// Of a whole invocation.
    pub(super) timeout: Duration,
    /// How often an asking is tried again that reached nobody.
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
                        why: why(&error),
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
        let why = if error.is_timeout() {
            format!("there was no answer within {} ms", self.timeout.as_millis())
        } else {
            format!("the answer broke off: {}", why(error))
        };
        Turn::Failed { text, why }
    }

    async fn read(&self, response: Response) -> Result<Turn, AskError> {
        let status = response.status();
        let media_type = media_type(&response);
        let text = match body(response).await {
            Ok(text) => text,
            Err(Unread::Broken { error, text }) => {
                let text = stream::so_far(&media_type, &text, self.path.as_deref());
                return Ok(self.broken(&error, text));
            }
            Err(Unread::TooLong) => return Err(AskError::TooLong),
        };
        if !status.is_success() {
            let why = format!("the agent answered with status {}", status.as_u16());
            return Ok(Turn::Failed { text, why });
        }
        if let Some(turn) = stream::turn(&media_type, &text, self.path.as_deref()) {
            return turn;
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(document) => self.read_document(&document, text),
            // What is no JSON has no parts to choose from.
            Err(_) => match &self.path {
                Some(path) => Err(AskError::NotThere {
                    path: path.clone(),
                    why: "leads nowhere".to_owned(),
                    shape: "no JSON".to_owned(),
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
        extract::answer(document, path).map(Turn::Answered)
    }
}

fn media_type(response: &Response) -> String {
    if response.headers().contains_key(stream::DATA_STREAM) {
        return stream::DATA_STREAM.to_owned();
    }
    let value = response.headers().get(CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

enum Unread {
    /// It broke off behind this.
    Broken {
        error: reqwest::Error,
        text: String,
    },
    TooLong,
}

async fn body(mut response: Response) -> Result<String, Unread> {
    let mut bytes = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(text(&bytes)),
            Ok(Some(chunk)) if bytes.len() + chunk.len() > LONGEST => return Err(Unread::TooLong),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Err(error) => {
                let text = text(&bytes);
                return Err(Unread::Broken { error, text });
            }
        }
    }
}

/// Longest that a connection to an agent may take.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);

/// One for an agent that has so long to answer. Whoever is not there by three quarters of that is away, and not
/// slow.
pub(super) fn client_of_agent(timeout: Duration) -> Client {
    built(Client::builder().connect_timeout(CONNECTS_WITHIN.min(timeout / 4 * 3)))
}

/// No proxy, whatever the environment says, and no redirects: an agent answers itself.
pub(crate) fn client() -> Client {
    built(Client::builder())
}

fn built(builder: ClientBuilder) -> Client {
    // Only the first call in a process counts, and all install the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = builder.no_proxy().redirect(Policy::none());
    builder
        .build()
        .expect("nothing in it can fail but the roots, which are read later")
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
