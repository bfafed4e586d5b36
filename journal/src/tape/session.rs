//! Replay sessions: an incident with its input and the recorded responses.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::content::{Content, Data, Piece};
use super::yaml;

/// A production incident: the prompt, the responses that the agent got, and the contract that it must meet.
///
/// The fields are those of flakestorm's replay sessions, and those that Squall adds: `llm_responses`,
/// `exchanges`, `on_miss`, `on_exhausted`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// The prompt; a tape needs none.
    pub input: Option<String>,
    /// A title for people.
    pub name: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
    /// When it was captured, in any format.
    pub captured_at: Option<String>,
    /// What the agent knew: objects, as in flakestorm.
    pub context: Vec<Value>,
    /// Responses of tools, by tool and in order.
    pub tool_responses: Vec<ToolResponse>,
    /// Responses of models, in order.
    pub llm_responses: Vec<Exchange>,
    /// Responses to requests, in order.
    pub exchanges: Vec<Exchange>,
    /// What went wrong, in words.
    pub expected_failure: Option<String>,
    /// Name of the contract that it must meet.
    pub contract: Option<String>,
    /// What is done with a request that was not recorded; the player may override it.
    pub on_miss: Option<Otherwise>,
    /// What is done with a request whose responses were all used; the player may override it.
    pub on_exhausted: Option<Otherwise>,
}

/// A tool's response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResponse {
    /// The tool's name.
    pub tool: String,
    /// Its status; 0: there was no response.
    pub status: u16,
    /// How long it took.
    pub latency_ms: u64,
    /// A text as it is, anything else as JSON.
    pub response: Value,
}

/// A response, and the requests that it is for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchange {
    /// The requests.
    pub matching: Matching,
    /// Dialect of the model call.
    pub dialect: Option<String>,
    /// Whether the agent spoke HTTP/2.
    pub http2: bool,
    /// The response.
    pub answer: Answer,
}

/// Which requests a response is for; what is absent may be anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matching {
    /// Method.
    pub method: Option<Method>,
    /// URL as rules see it; without body and fingerprint, `*` matches anything.
    pub url: Option<String>,
    /// The request's body.
    pub body: Option<Data>,
    /// The request's fingerprint; it replaces the body.
    pub fingerprint: Option<u64>,
    /// The requested model; `*` matches anything.
    pub model: Option<String>,
}

/// A recorded response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Status; 0: there was no response, the connection closed.
    pub status: u16,
    /// Headers, without those of the connection, the length and the coding.
    pub headers: Vec<(String, String)>,
    /// From the request's head to the response's.
    pub latency_ms: u64,
    /// The body, decoded.
    pub content: Content,
    /// The body was longer than what is stored of one: the rest is missing.
    #[serde(default)]
    pub over_limit: bool,
    /// The connection was aborted before the body's end.
    #[serde(default)]
    pub broken_off: bool,
}

/// What is done with a request that the tape has no response for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Otherwise {
    /// It is rejected, and nothing is dialled.
    #[default]
    Error,
    /// It goes to its upstream.
    Passthrough,
}

impl Otherwise {
    /// The word in files and in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Passthrough => "passthrough",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Error, Self::Passthrough]
            .into_iter()
            .find(|one| one.as_str() == word)
    }
}

impl Session {
    /// The session as a JSON document.
    pub fn to_value(&self) -> Value {
        let context = (!self.context.is_empty()).then_some(&self.context);
        let exchanges = |all: &[Exchange]| {
            (!all.is_empty()).then(|| all.iter().map(Exchange::to_value).collect::<Value>())
        };
        let tools = (!self.tool_responses.is_empty()).then_some(&self.tool_responses);
        document([
            ("id", json!(self.id)),
            ("name", json!(self.name)),
            ("source", json!(self.source)),
            ("captured_at", json!(self.captured_at)),
            ("input", json!(self.input)),
            ("context", json!(context)),
            ("tool_responses", json!(tools)),
            ("llm_responses", json!(exchanges(&self.llm_responses))),
            ("exchanges", json!(exchanges(&self.exchanges))),
            ("expected_failure", json!(self.expected_failure)),
            ("contract", json!(self.contract)),
            ("on_miss", json!(self.on_miss)),
            ("on_exhausted", json!(self.on_exhausted)),
        ])
    }

    /// The session as YAML.
    pub fn to_yaml(&self) -> String {
        yaml::write(&self.to_value())
    }
}

impl Exchange {
    fn to_value(&self) -> Value {
        let (matching, answer) = (&self.matching, &self.answer);
        let fingerprint = matching.fingerprint.map(|it| format!("{it:016x}"));
        let asked = document([
            (
                "method",
                json!(matching.method.as_ref().map(Method::as_str)),
            ),
            ("url", json!(matching.url)),
            ("model", json!(matching.model)),
            ("fingerprint", json!(fingerprint)),
            data(["body", "body_base64"], matching.body.as_ref()),
        ]);
        let content = match &answer.content {
            Content::Body(body) => data(
                ["body", "body_base64"],
                Some(body).filter(|it| !it.0.is_empty()),
            ),
            Content::Stream(pieces) => {
                let piece = |piece: &Piece| {
                    let data = data(["data", "data_base64"], Some(&piece.data));
                    document([("at_ms", json!(piece.at_ms)), data])
                };
                ("stream", pieces.iter().map(piece).collect())
            }
        };
        document([
            ("match", asked),
            ("dialect", json!(self.dialect)),
            ("http", json!(self.http2.then_some(2))),
            ("status", json!(answer.status)),
            ("latency_ms", json!(answer.latency_ms)),
            ("headers", headers(&answer.headers)),
            content,
            ("over_limit", json!(answer.over_limit.then_some(true))),
            ("broken_off", json!(answer.broken_off.then_some(true))),
        ])
    }
}

/// A document without the members that are null; without any, null.
fn document<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    let members: Map<_, _> = members
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    if members.is_empty() {
        Value::Null
    } else {
        members.into()
    }
}

/// Bytes under the first name, or under the second in base64 if they are not a text.
fn data(names: [&'static str; 2], data: Option<&Data>) -> (&'static str, Value) {
    match data.map(|data| data.as_text().ok_or(data)) {
        Some(Err(data)) => (names[1], json!(data.to_base64())),
        Some(Ok(text)) => (names[0], json!(text)),
        None => (names[0], Value::Null),
    }
}

/// Headers by name, null if there are none; the values of one that is repeated are a list.
fn headers(headers: &[(String, String)]) -> Value {
    let mut document = Map::new();
    for (name, value) in headers {
        match document.get_mut(name) {
            None => {
                document.insert(name.clone(), json!(value));
            }
            Some(Value::Array(values)) => values.push(json!(value)),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
    if document.is_empty() {
        Value::Null
    } else {
        document.into()
    }
}

/// The first header with this name.
pub(super) fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    let found = headers.iter().find(|(header, _)| header == name);
    found.map(|(_, value)| value.as_str())
}
