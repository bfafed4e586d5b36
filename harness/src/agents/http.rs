//! An agent with an HTTP endpoint.
//!
//! It is asked directly and never through the proxy: chaos lands on the agent's own calls. What is sent
//! is made by [`template`](super::template), the answer is read by [`extract`](super::extract).

use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Request, RequestBuilder, Response, Url};
use serde_json::{Value, json};
use squall_journal::reach::Pending;

use super::template::{self, Payload, Values};
use super::{AskError, Driver, Invocation, ResetError, client, extract, reset, stream, why};
use crate::answer::Answer;
use crate::suite::Agent;
use crate::suite::agent::{HttpAgent, Method, Reset};

/// Greatest answer that is read, bytes; a longer one is an error of the agent's.
const LONGEST: usize = 8 << 20;

/// Asks an agent by HTTP.
#[derive(Debug)]
pub struct HttpDriver {
    agent: HttpAgent,
    reset: Option<Reset>,
    timeout: Duration,
    /// How often an asking is tried again that reached nobody.
    retries: u64,
    client: Client,
}

/// What came of one turn.
enum Turn {
    Answered(String),
    Failed { text: String, why: String },
}

impl HttpDriver {
    /// For the agent of a suite, with the suite's `advanced.retries`. `None`: the agent is not asked in
    /// this way.
    pub fn new(agent: &Agent, retries: u64) -> Option<Self> {
        let crate::suite::agent::Way::Http(http) = &agent.way else {
            return None;
        };
        Some(Self {
            agent: (**http).clone(),
            reset: agent.reset.clone(),
            timeout: agent.timeout,
            retries,
            client: client(),
        })
    }

    async fn invoke(&self, invocation: &Invocation) -> Result<Answer, AskError> {
        let began = Instant::now();
        let mut answer = Answer::default();
        for turn in invocation.prompt.turns() {
            let left = self.timeout.saturating_sub(began.elapsed());
            match self.turn(turn, invocation, left).await? {
                Turn::Answered(text) => answer.text = text,
                Turn::Failed { text, why } => {
                    answer.text = text;
                    answer.error = Some(why);
                    break;
                }
            }
        }
        answer.latency = began.elapsed();
        Ok(answer)
    }

    async fn turn(
        &self,
        turn: &str,
        invocation: &Invocation,
        left: Duration,
    ) -> Result<Turn, AskError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let request = self.request(turn, invocation, left)?;
            match self.client.execute(request).await {
                Ok(response) => return self.read(response).await,
                Err(error) if error.is_connect() && tries <= self.retries => {}
                Err(error) if error.is_connect() => {
                    return Err(AskError::Unreachable {
                        endpoint: self.agent.endpoint.clone(),
                        tries,
                        why: why(&error),
                    });
                }
                Err(error) => return Ok(self.broken(&error)),
            }
        }
    }

    fn broken(&self, error: &reqwest::Error) -> Turn {
        let why = if error.is_timeout() {
            format!("there was no answer within {} ms", self.timeout.as_millis())
        } else {
            format!("the answer broke off: {}", why(error))
        };
        Turn::Failed {
            text: String::new(),
            why,
        }
    }

    fn request(
        &self,
        turn: &str,
        invocation: &Invocation,
        left: Duration,
    ) -> Result<Request, AskError> {
        let bad = |why: &dyn std::fmt::Display| AskError::Request(why.to_string());
        let values = Values::of(
            turn,
            &invocation.conversation,
            self.agent.parse_structured_input,
        );
        let mut url: Url = self.agent.endpoint.parse().map_err(|error| bad(&error))?;
        let mut parameters = self.agent.query_params.0.clone();
        let in_url = matches!(self.agent.method, Method::Get | Method::Delete);
        let payload = self.payload(turn, invocation, &values, in_url)?;
        if in_url {
            for (name, value) in in_query(payload) {
                parameters.retain(|(known, _)| *known != name);
                parameters.push((name, value));
            }
            append(&mut url, &parameters);
            return self.finish(self.builder(url, left), invocation);
        }
        append(&mut url, &parameters);
        let builder = self.builder(url, left);
        let (media_type, body) = match payload {
            In::Body(Payload::Json(document)) => ("application/json", document.to_string()),
            In::Body(Payload::Text(text)) => ("text/plain; charset=utf-8", text),
            In::Query(_) => ("text/plain; charset=utf-8", String::new()),
        };
        self.finish(
            builder.header(CONTENT_TYPE, media_type).body(body),
            invocation,
        )
    }

    fn payload(
        &self,
        turn: &str,
        invocation: &Invocation,
        values: &Values,
        in_url: bool,
    ) -> Result<In, AskError> {
        let Some(template) = &self.agent.request_template else {
            let mut document = json!({ "input": turn });
            if invocation.prompt.turns().len() > 1 {
                document["conversation_id"] = json!(invocation.conversation);
            }
            return Ok(In::Body(Payload::Json(document)));
        };
        if in_url && let Some(pairs) = template::fill_query(template, values)? {
            return Ok(In::Query(pairs));
        }
        template::fill(template, values).map(In::Body)
    }

    fn builder(&self, url: Url, left: Duration) -> RequestBuilder {
        let method = match self.agent.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        self.client.request(method, url).timeout(left)
    }

    /// The suite's own headers win over all others.
    fn finish(
        &self,
        builder: RequestBuilder,
        invocation: &Invocation,
    ) -> Result<Request, AskError> {
        let mut headers = HeaderMap::new();
        let of_the_run = invocation
            .headers()
            .map(|(name, value)| (name.to_owned(), value));
        for (name, value) in of_the_run.iter().chain(&self.agent.headers.0) {
            let name: HeaderName = name
                .parse()
                .map_err(|_| AskError::Request(format!("`{name}` is no name for a header")))?;
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| AskError::Request(format!("the value of `{name}` cannot be sent")))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let built = builder.headers(headers).build();
        built.map_err(|error| AskError::Request(error.to_string()))
    }

    async fn read(&self, response: Response) -> Result<Turn, AskError> {
        let status = response.status();
        let media_type = media_type(&response);
        let text = match body(response).await {
            Ok(text) => text,
            Err(Unread::Broken(error)) => return Ok(self.broken(&error)),
            Err(Unread::TooLong) => {
                let why = format!("the answer is longer than {LONGEST} bytes");
                return Ok(Turn::Failed {
                    text: String::new(),
                    why,
                });
            }
        };
        if !status.is_success() {
            let why = format!("the agent answered with status {}", status.as_u16());
            return Ok(Turn::Failed { text, why });
        }
        if let Some(text) = stream::text(&media_type, &text) {
            return Ok(Turn::Answered(text));
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(document) => self.read_document(&document, text),
            // What is no JSON has no parts to choose from.
            Err(_) => match &self.agent.response_path {
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
        let path = self.agent.response_path.as_deref();
        extract::answer(document, path).map(Turn::Answered)
    }
}

impl Driver for HttpDriver {
    fn ask<'a>(&'a self, invocation: &'a Invocation) -> Pending<'a, Result<Answer, AskError>> {
        Box::pin(self.invoke(invocation))
    }

    fn reset(&self) -> Pending<'_, Result<(), ResetError>> {
        Box::pin(reset::reset(self.reset.as_ref(), &self.client))
    }
}

/// Where a payload goes.
enum In {
    Body(Payload),
    Query(Vec<(String, String)>),
}

/// A JSON object's members are parameters; anything else is one, `q`.
fn in_query(payload: In) -> Vec<(String, String)> {
    match payload {
        In::Query(pairs) => pairs,
        In::Body(Payload::Json(Value::Object(members))) => members
            .into_iter()
            .map(|(name, value)| (name, extract::text_of(&value)))
            .collect(),
        In::Body(Payload::Json(other)) => vec![("q".to_owned(), extract::text_of(&other))],
        In::Body(Payload::Text(text)) => vec![("q".to_owned(), text)],
    }
}

/// Adds parameters behind those that the URL has.
fn append(url: &mut Url, parameters: &[(String, String)]) {
    if !parameters.is_empty() {
        url.query_pairs_mut().extend_pairs(parameters);
    }
}

fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

enum Unread {
    Broken(reqwest::Error),
    TooLong,
}

async fn body(mut response: Response) -> Result<String, Unread> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Unread::Broken)? {
        if bytes.len() + chunk.len() > LONGEST {
            return Err(Unread::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
