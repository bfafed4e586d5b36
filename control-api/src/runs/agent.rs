//! An agent that is asked over HTTP.

use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value, json};

use crate::problem::Detail;

/// Most bytes of an answer.
const MOST: usize = 1 << 20;

/// How long an answer may take unless the suite says otherwise.
const TIMEOUT: u64 = 30_000;

/// Members of `agent` that are understood.
const MEMBERS: [&str; 7] = [
    "type",
    "endpoint",
    "method",
    "headers",
    "timeout",
    "request_template",
    "response_path",
];

/// Where answers are looked for, best first, when the suite does not say.
const USUAL: [&str; 12] = [
    "output", "response", "result", "data", "content", "text", "message", "answer", "reply",
    "queries", "query", "results",
];

/// An agent that is asked over HTTP.
#[derive(Debug, Clone)]
pub(super) struct HttpAgent {
    endpoint: String,
    method: Method,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
    template: Option<String>,
    response_path: Option<String>,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    /// The answer; an error says what was there instead.
    pub(super) answer: Result<String, String>,
    /// How long that took.
    pub(super) latency: Duration,
}

impl HttpAgent {
    /// Reads a suite's `agent`, its variables expanded; all that is wrong with it, `at` its place.
    pub(super) fn read(agent: &Value, at: &str) -> Result<Self, Vec<Detail>> {
        let mut wrong = Vec::new();
        let empty = Map::new();
        let members = agent.as_object().unwrap_or(&empty);
        let kind = members
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("http");
        if kind != "http" {
            wrong.push(Detail::at(
                format!("{at}/type"),
                format!("agents of type `{kind}` cannot be asked by this version; there is http"),
            ));
        }
        for name in members
            .keys()
            .filter(|name| !MEMBERS.contains(&name.as_str()))
        {
            wrong.push(Detail::at(
                format!("{at}/{name}"),
                format!(
                    "`{name}` means nothing to this version; there are {}",
                    MEMBERS.join(", ")
                ),
            ));
        }
        let mut text = |name: &str| match members.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                wrong.push(Detail::at(
                    format!("{at}/{name}"),
                    format!("`{name}` is a text"),
                ));
                None
            }
        };
        let endpoint = text("endpoint").unwrap_or_default();
        let method = text("method").unwrap_or_else(|| "POST".to_owned());
        let template = text("request_template");
        let response_path = text("response_path");
        let method = match method.to_ascii_uppercase().as_str() {
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "PATCH" => Method::PATCH,
            other => {
                wrong.push(Detail::at(
                    format!("{at}/method"),
                    format!("an agent is asked with POST, PUT or PATCH by this version, not with `{other}`"),
                ));
                Method::POST
            }
        };
        let timeout = match members.get("timeout") {
            None | Some(Value::Null) => Some(TIMEOUT),
            Some(value) => value.as_u64().filter(|ms| (1_000..=300_000).contains(ms)),
        };
        if timeout.is_none() {
            let detail = "`timeout` is milliseconds, 1000 to 300000";
            wrong.push(Detail::at(format!("{at}/timeout"), detail));
        }
        let mut headers = Vec::new();
        for (name, value) in members
            .get("headers")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let header = name.parse::<HeaderName>().ok();
            let value = value
                .as_str()
                .and_then(|value| HeaderValue::from_str(value).ok());
            match header.zip(value) {
                Some(header) => headers.push(header),
                None => wrong.push(Detail::at(
                    format!("{at}/headers/{name}"),
                    format!("`{name}` and its value cannot be sent as a header"),
                )),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Self {
            endpoint,
            method,
            headers,
            timeout: Duration::from_millis(timeout.unwrap_or(TIMEOUT)),
            template,
            response_path,
        })
    }

    /// Asks once, with the run's scope as baggage, for the agent to pass on.
    pub(super) async fn ask(&self, http: &reqwest::Client, prompt: &str, scope: &str) -> Asked {
        let began = Instant::now();
        let asked = tokio::time::timeout(self.timeout, self.answer(http, prompt, scope));
        let answer = match asked.await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} ms", self.timeout.as_millis())),
        };
        let latency = began.elapsed();
        Asked { answer, latency }
    }

    async fn answer(
        &self,
        http: &reqwest::Client,
        prompt: &str,
        scope: &str,
    ) -> Result<String, String> {
        let mut request = http
            .request(self.method.clone(), &self.endpoint)
            .header("baggage", format!("squall.scope={scope}"));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = match self.body(prompt) {
            Ok(document) => request.json(&document),
            Err(text) => request.body(text),
        };
        let mut response = request.send().await.map_err(|error| innermost(&error))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| innermost(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() > MOST {
                return Err(format!("the answer is longer than {MOST} bytes"));
            }
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        if !status.is_success() {
            let said: String = text.chars().take(200).collect();
            return Err(format!("the agent answered {status}: {said}"));
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(document) => self.said(&document),
            Err(_) => Ok(text),
        }
    }

    /// The body to send: a document, or a text where the template is none.
    fn body(&self, prompt: &str) -> Result<Value, String> {
        let Some(template) = &self.template else {
            return Ok(json!({ "input": prompt }));
        };
        let quoted = json!(prompt).to_string();
        let escaped = template.replace("{prompt}", &quoted[1..quoted.len() - 1]);
        serde_json::from_str(&escaped).map_err(|_| template.replace("{prompt}", prompt))
    }

    /// What the agent says in a JSON answer.
    fn said(&self, document: &Value) -> Result<String, String> {
        let failed = document.get("error").filter(|error| !error.is_null());
        if let Some(error) = failed {
            return Err(format!("the agent says that it failed: {}", as_text(error)));
        }
        match &self.response_path {
            None => Ok(usual(document)),
            Some(path) => found(document, path)
                .map(as_text)
                .ok_or_else(|| format!("there is nothing at `{path}` in the agent's answer")),
        }
    }
}

/// `$.choices[0].message`, `choices.0.message`.
fn found<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    let parts = path.split(['.', '[', ']']);
    let mut parts = parts.filter(|part| !part.is_empty() && *part != "$");
    parts.try_fold(document, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

fn usual(document: &Value) -> String {
    let found = USUAL.iter().find_map(|name| document.get(name));
    match (found, document) {
        (Some(found), _) => as_text(found),
        (None, Value::Object(members)) if members.len() == 1 => {
            members.values().next().map(as_text).unwrap_or_default()
        }
        (None, other) => as_text(other),
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The last cause in an error's chain: what really happened.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(more: &Value) -> HttpAgent {
        let mut agent = json!({ "endpoint": "http://a.test/" });
        for (name, value) in more.as_object().expect("members") {
            agent[name] = value.clone();
        }
        HttpAgent::read(&agent, "/agent").expect("it can be read")
    }

    #[test]
    fn a_prompt_is_a_text_in_the_body_whatever_is_in_it() {
        let prompt = "a \"quoted\"\nline, {prompt}";
        for (template, expected) in [
            (json!({}), Ok(json!({ "input": prompt }))),
            (
                json!({ "request_template": "{\"q\": \"{prompt}\", \"n\": 1}" }),
                Ok(json!({ "q": prompt, "n": 1 })),
            ),
            (
                json!({ "request_template": "say: {prompt}" }),
                Err(format!("say: {prompt}")),
            ),
        ] {
            assert_eq!(agent(&template).body(prompt), expected, "{template}");
        }
    }

    #[test]
    fn an_answer_is_found_where_the_suite_says_or_where_answers_usually_are() {
        let path = |path: &str| json!({ "response_path": path });
        let choices = json!({ "choices": [{ "message": "hello" }] });
        for (agent_with, document, expected) in [
            (json!({}), json!({ "output": "a", "text": "b" }), Ok("a")),
            (json!({}), json!({ "only": "a" }), Ok("a")),
            (json!({}), json!("a"), Ok("a")),
            (json!({}), json!({ "result": { "x": 1 } }), Ok("{\"x\":1}")),
            (json!({}), json!({ "output": "a", "error": null }), Ok("a")),
            (
                json!({}),
                json!({ "error": "down" }),
                Err("the agent says that it failed: down"),
            ),
            (path("$.choices[0].message"), choices.clone(), Ok("hello")),
            (path("choices.0.message"), choices.clone(), Ok("hello")),
            (
                path("choices.1"),
                choices,
                Err("there is nothing at `choices.1` in the agent's answer"),
            ),
        ] {
            let said = agent(&agent_with).said(&document);
            let said = said.as_deref().map_err(String::as_str);
            assert_eq!(said, expected, "{agent_with} {document}");
        }
    }

    #[test]
    fn what_would_change_nothing_is_refused() {
        for (name, value) in [
            ("type", json!("openai")),
            ("query_params", json!({})),
            ("method", json!("GET")),
            ("timeout", json!(10)),
            ("request_template", json!(1)),
            ("headers", json!({ "a b": "c" })),
        ] {
            let mut agent = json!({ "endpoint": "http://a.test/" });
            agent[name] = value;
            let wrong = HttpAgent::read(&agent, "/suite/agent").expect_err(name);
            let pointer = wrong[0].pointer.as_deref().unwrap_or_default();
            assert!(
                pointer.starts_with(&format!("/suite/agent/{name}")),
                "{wrong:?}"
            );
        }
    }
}
