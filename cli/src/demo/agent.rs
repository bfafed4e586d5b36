//! The demo's agent: a typical loop of model and tools.
//!
//! It is an ordinary program without knowledge of Squall; its traffic uses `HTTP_PROXY`. It has common good and
//! bad habits:
//!
//! - good: it respects `Retry-After`, backs off, gives up after three attempts, and reports a failed tool to the
//!   model;
//! - bad: it retries a POST with an unknown outcome, accepts a truncated stream as complete, and trusts any tool
//!   result with status 200.

use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use squall_harness::dial::innermost;

use super::{BOOKING, MODEL, SEARCH};
use crate::args::DemoAgentArgs;
use crate::client::client_builder;
use crate::failure::Failure;
use crate::render::output;

/// Attempts per call, the first included.
const ATTEMPTS: u32 = 3;

/// First pause of the back-off; doubles with each attempt.
const BACK_OFF: Duration = Duration::from_millis(100);

/// How long the agent waits for a response's head, and between two pieces of its body.
const PATIENCE: Duration = Duration::from_secs(2);

/// Most turns of the conversation.
const TURNS: usize = 6;

/// Runs the agent: its answer is written to stdout, an error to stderr.
pub(crate) async fn run(arguments: DemoAgentArgs) -> Result<(), Failure> {
    let http = client_builder()
        .connect_timeout(PATIENCE)
        .read_timeout(PATIENCE)
        .build()
        .map_err(|error| Failure::could_not("the HTTP client", error))?;
    let task = match arguments.task.as_deref() {
        None => super::TASK.to_owned(),
        Some("-") => std::io::read_to_string(std::io::stdin())
            .map_err(|error| Failure::could_not("the task on stdin", error))?,
        Some(task) => task.to_owned(),
    };
    let answer = DemoAgent { http }
        .work(&task)
        .await
        .map_err(Failure::CouldNotRun)?;
    output::document(&format!("{answer}\n"))
}

struct DemoAgent {
    http: reqwest::Client,
}

impl DemoAgent {
    /// Calls the model and the tools that it requests, until it answers.
    async fn work(&self, task: &str) -> Result<String, String> {
        let mut messages = vec![
            json!({ "role": "system", "content": "You book flights. Use the tools." }),
            json!({ "role": "user", "content": task }),
        ];
        for _ in 0..TURNS {
            let message = self.ask(&messages).await?;
            let Some(call) = message["tool_calls"].get(0).cloned() else {
                return Ok(message["content"].as_str().unwrap_or_default().to_owned());
            };
            messages.push(message);
            let name = call["function"]["name"].as_str().unwrap_or_default();
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            let result = self.call(name, &arguments).await;
            messages.push(json!({
                "role": "tool", "tool_call_id": call["id"], "name": name, "content": result,
            }));
        }
        Err(format!("no answer after {TURNS} turns"))
    }

    /// One turn of the model. The turn after a booking is streamed, because the user reads it while it is
    /// written.
    async fn ask(&self, messages: &[Value]) -> Result<Value, String> {
        let stream = messages
            .last()
            .is_some_and(|message| message["name"] == "book_flight");
        let url = format!("http://{MODEL}/v1/chat/completions");
        let call = json!({
            "model": "squall-demo-1", "messages": messages, "tools": tools(), "stream": stream,
        });
        let response = self
            .send(Method::POST, &url, Some(&call))
            .await
            .map_err(|error| format!("the model: {error}"))?;
        if stream {
            return Ok(json!({ "role": "assistant", "content": read_stream(response).await }));
        }
        let body = response.bytes().await.map_err(|error| innermost(&error))?;
        let answer: Value = serde_json::from_slice(&body)
            .map_err(|_| "the model's answer is not JSON".to_owned())?;
        match answer["choices"][0]["message"].clone() {
            Value::Null => Err("the model's answer has no message".to_owned()),
            message => Ok(message),
        }
    }

    /// A tool's result for the model: the body of a 2xx response, else the error.
    async fn call(&self, name: &str, arguments: &Value) -> String {
        let outcome = match name {
            "search_flights" => {
                let text = |field: &str| arguments[field].as_str().unwrap_or_default().to_owned();
                let url = format!(
                    "http://{}/search?from={}&to={}&day={}",
                    SEARCH.1,
                    text("from"),
                    text("to"),
                    text("day")
                );
                self.send(Method::GET, &url, None).await
            }
            "book_flight" => {
                let url = format!("http://{}/bookings", BOOKING.1);
                self.send(Method::POST, &url, Some(arguments)).await
            }
            other => Err(format!("there is no tool `{other}`")),
        };
        let text = match outcome {
            Ok(response) => response.text().await.map_err(|error| innermost(&error)),
            Err(error) => Err(error),
        };
        text.unwrap_or_else(|error| json!({ "error": error }).to_string())
    }

    /// Sends a request until the response is a 2xx. Bad habit: a POST is retried like a GET.
    async fn send(
        &self,
        method: Method,
        url: &str,
        body: Option<&Value>,
    ) -> Result<Response, String> {
        let mut pause = BACK_OFF;
        let mut attempt = 1;
        loop {
            let mut request = self.http.request(method.clone(), url);
            if let Some(body) = body {
                request = request.json(body);
            }
            let (failure, wait) = match request.send().await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) if is_transient(response.status()) => (
                    format!("HTTP {}", response.status().as_u16()),
                    retry_after(&response),
                ),
                Ok(response) => return Err(format!("HTTP {}", response.status().as_u16())),
                Err(error) if error.is_timeout() => ("no answer in time".to_owned(), None),
                Err(error) => (innermost(&error), None),
            };
            if attempt == ATTEMPTS {
                return Err(format!("{failure}, {ATTEMPTS} times"));
            }
            tokio::time::sleep(wait.unwrap_or(pause)).await;
            pause *= 2;
            attempt += 1;
        }
    }
}

/// Whether another attempt may succeed.
fn is_transient(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// `Retry-After` in whole seconds.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response
        .headers()
        .get("retry-after")?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

/// The text of a streamed response. Bad habit: it checks neither the end marker nor errors, so a truncated stream
/// looks like a short answer.
async fn read_stream(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8_lossy(&bytes)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .filter_map(|event| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}

/// The tools' descriptions for the model.
fn tools() -> Value {
    let tool = |name: &str, description: &str, parameters: &[&str]| {
        let properties: serde_json::Map<_, _> = parameters
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
            .collect();
        json!({ "type": "function", "function": {
            "name": name,
            "description": description,
            "parameters": { "type": "object", "properties": properties, "required": parameters },
        }})
    };
    json!([
        tool("search_flights", "Flights of a day", &["from", "to", "day"]),
        tool("book_flight", "Books a flight", &["flight"]),
    ])
}
