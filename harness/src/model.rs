//! Calls the suite's own model, for judging and for other texts that Squall needs.
//!
//! Calls are direct and never use a proxy, because chaos is for the agent's calls. `base_url` applies to every
//! provider.

pub(crate) mod embeddings;
pub(crate) mod settings;

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use squall_journal::redact::Redactor;

pub use self::embeddings::Embeddings;
pub use self::settings::{Model, ModelProvider};
use crate::dial::{Dialler, innermost};

/// Time-out of one attempt.
const PATIENCE: Duration = Duration::from_mins(2);

/// Number of retries if the provider is unreachable or busy.
const RETRIES: u32 = 2;

/// Delay before the first retry; it doubles each time. A delay requested by the provider replaces it, up to
/// [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(500);

const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Longest response that is read, in bytes.
const LONGEST: usize = 8 << 20;

/// Longest part of a provider's error that is reported, in bytes.
const TOLD: usize = 200;

/// The version of Anthropic's API.
const ANTHROPIC: &str = "2023-06-01";

/// A request to the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrompt<'a> {
    /// The instructions.
    pub system: &'a str,
    /// The text that the instructions apply to.
    pub prompt: &'a str,
    /// 0 to 2.
    pub temperature: f64,
    /// Maximum tokens of the answer, for providers that require a limit.
    pub most_tokens: u32,
    /// Whether to request JSON from providers that support it.
    pub json: bool,
}

/// Why the model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelCallError {
    /// No connection, or the response was aborted.
    #[error("the model at {endpoint} was not reached in {tries} tries: {why}")]
    Unreachable {
        /// The endpoint.
        endpoint: String,
        /// Number of attempts.
        tries: u32,
        /// The last error.
        why: String,
    },
    /// The provider responded with an error.
    #[error("the model at {endpoint} answered with status {status}: {said}")]
    Refused {
        /// The endpoint.
        endpoint: String,
        /// The status.
        status: u16,
        /// The provider's error message, shortened.
        said: String,
    },
    /// The response does not have the form that the provider's API defines.
    #[error("the answer of the model at {endpoint} has no {missing}")]
    Unread {
        /// The endpoint.
        endpoint: String,
        /// What is missing.
        missing: &'static str,
    },
}

/// A client for a model.
#[derive(Debug, Clone)]
pub struct ModelClient {
    model: Model,
    client: Client,
}

impl ModelClient {
    /// A client for a suite's model.
    pub fn new(model: &Model, dialler: &Dialler) -> Self {
        Self {
            model: model.clone(),
            client: dialler.client(model.base_url()),
        }
    }

    /// The model's answer.
    pub async fn ask(&self, request: &ModelPrompt<'_>) -> Result<String, ModelCallError> {
        let (endpoint, headers, body) = self.request(request);
        let endpoint = Endpoint::new(&self.client, endpoint, headers);
        let answer = endpoint.post(&body).await?;
        self.said(&answer).ok_or_else(|| ModelCallError::Unread {
            endpoint: endpoint.shown(),
            missing: "text",
        })
    }

    fn request(&self, request: &ModelPrompt<'_>) -> (String, Vec<(&'static str, String)>, Value) {
        let Model { name, api_key, .. } = &self.model;
        let key = api_key.clone().unwrap_or_default();
        let ModelPrompt {
            system,
            prompt,
            temperature,
            most_tokens,
            ..
        } = *request;
        let user = json!({ "role": "user", "content": prompt });
        let both = json!([{ "role": "system", "content": system }, user]);
        match self.model.provider {
            ModelProvider::Ollama => {
                let options = json!({ "temperature": temperature, "num_predict": most_tokens });
                let mut body =
                    json!({ "model": name, "stream": false, "messages": both, "options": options });
                if request.json {
                    body["format"] = "json".into();
                }
                let headers = api_key
                    .iter()
                    .map(|key| ("authorization", format!("Bearer {key}")));
                (self.at("/api/chat", &[]), headers.collect(), body)
            }
            ModelProvider::OpenAi => {
                let body = json!({ "model": name, "messages": both, "temperature": temperature });
                let headers = vec![("authorization", format!("Bearer {key}"))];
                (self.at("/chat/completions", &[]), headers, body)
            }
            ModelProvider::Anthropic => {
                let body = json!({
                    "model": name, "system": system, "messages": [user], "max_tokens": most_tokens,
                    "temperature": temperature.min(1.0),
                });
                let version = ("anthropic-version", ANTHROPIC.to_owned());
                let headers = vec![("x-api-key", key), version];
                (self.at("/v1/messages", &["/v1"]), headers, body)
            }
            ModelProvider::Google => {
                let mut generation =
                    json!({ "temperature": temperature, "maxOutputTokens": most_tokens });
                if request.json {
                    generation["responseMimeType"] = "application/json".into();
                }
                let body = json!({
                    "systemInstruction": { "parts": [{ "text": system }] },
                    "contents": [{ "role": "user", "parts": [{ "text": prompt }] }],
                    "generationConfig": generation,
                });
                let path = format!("/v1beta/models/{name}:generateContent");
                let headers = vec![("x-goog-api-key", key)];
                (self.at(&path, &["/v1beta"]), headers, body)
            }
        }
    }

    /// The URL of a path; a part that `base_url` already ends with is not repeated.
    fn at(&self, path: &str, may_be_said: &[&str]) -> String {
        let base = self.model.base_url().trim_end_matches('/');
        let said = may_be_said.iter().find(|said| base.ends_with(**said));
        let path = said.map_or(path, |said| &path[said.len()..]);
        format!("{base}{path}")
    }

    fn said(&self, answer: &Value) -> Option<String> {
        match self.model.provider {
            ModelProvider::Ollama => answer["message"]["content"].as_str().map(str::to_owned),
            ModelProvider::OpenAi => answer["choices"][0]["message"]["content"]
                .as_str()
                .map(str::to_owned),
            ModelProvider::Anthropic => texts(&answer["content"]),
            ModelProvider::Google => texts(&answer["candidates"][0]["content"]["parts"]),
        }
    }
}

/// Concatenates the texts of a list of parts; `None`: it has none.
fn texts(parts: &Value) -> Option<String> {
    let texts: Vec<&str> = parts
        .as_array()?
        .iter()
        .filter(|part| part["thought"] != true)
        .filter_map(|part| part["text"].as_str())
        .collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// A JSON endpoint. Requests are retried if it is unreachable or busy.
pub(crate) struct Endpoint<'c> {
    client: &'c Client,
    url: String,
    headers: Vec<(&'static str, String)>,
}

impl<'c> Endpoint<'c> {
    pub(crate) fn new(
        client: &'c Client,
        url: String,
        headers: Vec<(&'static str, String)>,
    ) -> Self {
        Self {
            client,
            url,
            headers,
        }
    }

    /// Sends a document and returns the response document.
    pub(crate) async fn post(&self, body: &Value) -> Result<Value, ModelCallError> {
        let body = body.to_string();
        let mut tries = 0;
        loop {
            tries += 1;
            let (error, announced) = match self.once(&body).await {
                Ok(document) => return Ok(document),
                Err(Failed::ForGood(error)) => return Err(error),
                Err(Failed::Unsent(why)) => {
                    let endpoint = self.shown();
                    let error = ModelCallError::Unreachable {
                        endpoint,
                        tries,
                        why,
                    };
                    (error, None)
                }
                Err(Failed::Busy(error, announced)) => (error, announced),
            };
            if tries > RETRIES {
                return Err(error);
            }
            let own = FIRST_WAIT * 2_u32.pow(tries - 1);
            tokio::time::sleep(announced.unwrap_or(own).min(LONGEST_WAIT)).await;
        }
    }

    async fn once(&self, body: &str) -> Result<Value, Failed> {
        let request = self.request(body);
        let unsent = |error: reqwest::Error| {
            Failed::Unsent(if error.is_timeout() {
                format!("there was no answer within {} s", PATIENCE.as_secs())
            } else {
                innermost(&error)
            })
        };
        let mut response = request.send().await.map_err(unsent)?;
        let (status, wait) = (response.status(), announced(response.headers()));
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unsent)? {
            if bytes.len() + chunk.len() > LONGEST {
                return Err(self.unread("end within 8 MiB"));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return serde_json::from_slice(&bytes).map_err(|_| self.unread("JSON in it"));
        }
        let mut said = String::from_utf8_lossy(&bytes)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        Redactor::default().text(&mut said, TOLD);
        let error = ModelCallError::Refused {
            endpoint: self.shown(),
            status: status.as_u16(),
            said,
        };
        let has_no_time = status.is_server_error()
            || matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
            );
        Err(if has_no_time {
            Failed::Busy(error, wait)
        } else {
            Failed::ForGood(error)
        })
    }

    fn request(&self, body: &str) -> RequestBuilder {
        let request = self.client.post(&self.url).timeout(PATIENCE);
        let request = request.header("content-type", "application/json");
        let headers = self.headers.iter();
        headers
            .fold(request, |request, (name, value)| {
                request.header(*name, value)
            })
            .body(body.to_owned())
    }

    fn unread(&self, missing: &'static str) -> Failed {
        Failed::ForGood(ModelCallError::Unread {
            endpoint: self.shown(),
            missing,
        })
    }

    /// The URL without secrets.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.url.clone();
        Redactor::default().url(&mut url, TOLD);
        url
    }
}

enum Failed {
    ForGood(ModelCallError),
    Unsent(String),
    Busy(ModelCallError, Option<Duration>),
}

fn announced(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::testing::{Reply, Server, json as answers};

    fn model(provider: ModelProvider, base_url: String) -> Model {
        Model {
            provider,
            name: "judge-1".into(),
            api_key: Some("the-key".into()),
            base_url: Some(base_url),
            temperature: 0.8,
        }
    }

    const REQUEST: ModelPrompt<'static> = ModelPrompt {
        system: "Be short.",
        prompt: "Hi",
        temperature: 0.0,
        most_tokens: 300,
        json: true,
    };

    #[tokio::test]
    async fn every_provider_is_asked_in_its_own_words_where_base_url_says() {
        let says = |answer: Value| answers(&answer.to_string());
        for (provider, path, suffix, key, reply) in [
            (
                ModelProvider::Ollama,
                "/api/chat",
                "",
                ("authorization", "Bearer the-key"),
                says(json!({ "message": { "content": "hello" } })),
            ),
            (
                ModelProvider::OpenAi,
                "/v1/chat/completions",
                "/v1",
                ("authorization", "Bearer the-key"),
                says(json!({ "choices": [{ "message": { "content": "hello" } }] })),
            ),
            (
                ModelProvider::Anthropic,
                "/v1/messages",
                "/v1/",
                ("x-api-key", "the-key"),
                says(json!({ "content": [{ "type": "text", "text": "hello" }] })),
            ),
            (
                ModelProvider::Google,
                "/v1beta/models/judge-1:generateContent",
                "",
                ("x-goog-api-key", "the-key"),
                says(json!({ "candidates": [{ "content": { "parts": [
                    { "thought": true, "text": "hm" }, { "text": "hel" }, { "text": "lo" },
                ] } }] })),
            ),
        ] {
            let server = Server::start(vec![reply]).await;
            let base = format!("{}{suffix}", server.url);
            let asked = ModelClient::new(&model(provider, base), &Dialler::default())
                .ask(&REQUEST)
                .await;
            assert_eq!(asked.as_deref(), Ok("hello"), "{provider:?}");
            let request = &server.requests()[0];
            assert_eq!(request.line, format!("POST {path} HTTP/1.1"));
            assert_eq!(request.header(key.0), Some(key.1), "{provider:?}");
            let sent: Value = serde_json::from_str(&request.body).expect("JSON");
            let temperature = sent
                .get("temperature")
                .or_else(|| sent.pointer("/options/temperature"))
                .or_else(|| sent.pointer("/generationConfig/temperature"));
            assert_eq!(temperature, Some(&json!(0.0)), "{provider:?}: {sent}");
            assert!(request.body.contains("Be short.") && request.body.contains("Hi"));
        }
    }

    #[tokio::test]
    async fn who_has_no_time_is_asked_again_and_who_refuses_is_not() {
        let busy = |status| Reply::With(status, "application/json", "{}".into());
        let fine = answers(r#"{"message":{"content":"hello"}}"#);
        for (replies, expected, requests) in [
            (vec![busy(503), Reply::Half, fine.clone()], Ok("hello"), 3),
            (vec![busy(429)], Err(429), 3),
            (vec![busy(401), fine], Err(401), 1),
        ] {
            let server = Server::start(replies).await;
            let client = ModelClient::new(
                &model(ModelProvider::Ollama, server.url.clone()),
                &Dialler::default(),
            );
            let asked = client.ask(&REQUEST).await;
            let found = asked.as_deref().map_err(|error| match error {
                ModelCallError::Refused { status, .. } => *status,
                _ => 0,
            });
            assert_eq!(found, expected);
            assert_eq!(server.requests().len(), requests);
        }
    }

    #[tokio::test]
    async fn an_error_names_the_place_and_no_key() {
        let said = r#"{"error":"Incorrect API key provided: sk-abcdefgh12345678"}"#;
        let server = Server::start(vec![Reply::With(401, "application/json", said.into())]).await;
        let client = ModelClient::new(
            &model(ModelProvider::OpenAi, server.url.clone()),
            &Dialler::default(),
        );
        let error = client.ask(&REQUEST).await.expect_err("refused").to_string();
        assert!(
            error.contains("status 401") && error.contains("/chat/completions"),
            "{error}"
        );
        assert!(
            !error.contains("sk-abc") && !error.contains("the-key"),
            "{error}"
        );
    }
}
