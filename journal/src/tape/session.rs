//! Replay sessions: an incident with its input and the answers that were recorded.

use http::Method;
use serde_json::{Map, Value, json};

use super::content::{Content, Data, Piece};
use super::recorded::Recorded;
use super::yaml;

/// A production incident: what the agent was asked, what it was answered on the way, and the
/// contract that it must now meet.
///
/// The fields are those of flakestorm's replay sessions, and those that Squall adds: `llm_responses`,
/// `exchanges`, `on_miss`, `on_exhausted`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// What the agent is asked; a tape needs none.
    pub input: Option<String>,
    /// A title for people.
    pub name: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
    /// When it was captured, as whoever captured it writes it.
    pub captured_at: Option<String>,
    /// What the agent knew, as flakestorm has it: objects.
    pub context: Vec<Value>,
    /// Answers of tools, by tool and in order.
    pub tool_responses: Vec<ToolResponse>,
    /// Answers of models, in order.
    pub llm_responses: Vec<Exchange>,
    /// Answers to requests, each key's in order.
    pub exchanges: Vec<Exchange>,
    /// What went wrong, in words.
    pub expected_failure: Option<String>,
    /// Name of the contract that it must meet.
    pub contract: Option<String>,
    /// What becomes of a request that nothing was recorded of; absent: as whoever plays it says.
    pub on_miss: Option<Otherwise>,
    /// What becomes of a request all of whose answers were given; absent: as whoever plays it says.
    pub on_exhausted: Option<Otherwise>,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResponse {
    /// The tool's name.
    pub tool: String,
    /// What it answered: a text as it is, anything else as JSON.
    pub response: Value,
    /// Status of the answer; 0: there was none.
    pub status: u16,
    /// How long it took.
    pub latency_ms: u64,
}

/// An answer, and which request it is the answer to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchange {
    /// Which request.
    pub matching: Matching,
    /// Dialect of the model call.
    pub dialect: Option<String>,
    /// The agent was spoken to in HTTP/2.
    pub http2: bool,
    /// The answer.
    pub answer: Answer,
}

/// Which request an answer belongs to; what is absent may be anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matching {
    /// Method.
    pub method: Option<Method>,
    /// URL as rules see it; `*` stands for anything where neither body nor fingerprint is given.
    pub url: Option<String>,
    /// The request's body.
    pub body: Option<Data>,
    /// The request's fingerprint; stands for the body where both are given.
    pub fingerprint: Option<u64>,
    /// The model asked for; `*` stands for anything.
    pub model: Option<String>,
}

/// An answer as it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Answer {
    /// Status; 0: there was no answer, the connection broke.
    pub status: u16,
    /// Headers, without those of the connection, the length and the coding.
    pub headers: Vec<(String, String)>,
    /// From the request's head to the answer's.
    pub latency_ms: u64,
    /// The body, decoded.
    pub content: Content,
    /// The body was longer than what is kept of one: the rest is missing.
    #[serde(default)]
    pub over_limit: bool,
    /// The connection broke before the body's end.
    #[serde(default)]
    pub broken_off: bool,
}

/// What becomes of a request that the tape has no answer for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Otherwise {
    /// It is refused, and nothing is dialled.
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
    /// A recording as a session, its exchanges in the order in which they began. Exchanges without
    /// an answer to give again are left out.
    pub fn of_recording(id: &str, name: Option<&str>, recorded: &[Recorded]) -> Self {
        let exchanges = recorded.iter().filter_map(Recorded::to_exchange);
        Self {
            id: id.to_owned(),
            name: name.map(str::to_owned),
            input: recorded.iter().find_map(|one| one.input.clone()),
            source: Some("recording".to_owned()),
            captured_at: recorded
                .first()
                .map(|first| crate::timestamp::rfc3339(first.started_ms)),
            exchanges: exchanges.collect(),
            ..Self::default()
        }
    }

    /// The session as a JSON document.
    pub fn to_value(&self) -> Value {
        let mut document = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                document.insert(name.to_owned(), value);
            }
        };
        let list = |items: Vec<Value>| {
            if items.is_empty() {
                Value::Null
            } else {
                Value::Array(items)
            }
        };
        put("id", json!(self.id));
        put("name", json!(self.name));
        put("source", json!(self.source));
        put("captured_at", json!(self.captured_at));
        put("input", json!(self.input));
        put("context", list(self.context.clone()));
        let tools = self.tool_responses.iter().map(ToolResponse::to_value);
        put("tool_responses", list(tools.collect()));
        let models = self.llm_responses.iter().map(Exchange::to_value);
        put("llm_responses", list(models.collect()));
        let exchanges = self.exchanges.iter().map(Exchange::to_value);
        put("exchanges", list(exchanges.collect()));
        put("expected_failure", json!(self.expected_failure));
        put("contract", json!(self.contract));
        put("on_miss", json!(self.on_miss.map(Otherwise::as_str)));
        put(
            "on_exhausted",
            json!(self.on_exhausted.map(Otherwise::as_str)),
        );
        Value::Object(document)
    }

    /// The session as YAML.
    pub fn to_yaml(&self) -> String {
        yaml::write(&self.to_value())
    }
}

impl ToolResponse {
    fn to_value(&self) -> Value {
        json!({
            "tool": self.tool,
            "status": self.status,
            "latency_ms": self.latency_ms,
            "response": self.response,
        })
    }
}

impl Exchange {
    fn to_value(&self) -> Value {
        let mut document = Map::new();
        let matching = self.matching.to_value();
        if !matching.is_empty() {
            document.insert("match".to_owned(), Value::Object(matching));
        }
        if let Some(dialect) = &self.dialect {
            document.insert("dialect".to_owned(), json!(dialect));
        }
        if self.http2 {
            document.insert("http".to_owned(), json!(2));
        }
        self.answer.write_into(&mut document);
        Value::Object(document)
    }
}

impl Matching {
    fn to_value(&self) -> Map<String, Value> {
        let mut document = Map::new();
        if let Some(method) = &self.method {
            document.insert("method".to_owned(), json!(method.as_str()));
        }
        if let Some(url) = &self.url {
            document.insert("url".to_owned(), json!(url));
        }
        if let Some(model) = &self.model {
            document.insert("model".to_owned(), json!(model));
        }
        if let Some(fingerprint) = self.fingerprint {
            document.insert(
                "fingerprint".to_owned(),
                json!(format!("{fingerprint:016x}")),
            );
        }
        if let Some(body) = &self.body {
            put_data(&mut document, "body", body);
        }
        document
    }
}

impl Answer {
    fn write_into(&self, document: &mut Map<String, Value>) {
        document.insert("status".to_owned(), json!(self.status));
        document.insert("latency_ms".to_owned(), json!(self.latency_ms));
        if !self.headers.is_empty() {
            document.insert("headers".to_owned(), headers(&self.headers));
        }
        match &self.content {
            Content::Body(body) if body.0.is_empty() => {}
            Content::Body(body) => put_data(document, "body", body),
            Content::Stream(pieces) => {
                let pieces = pieces.iter().map(Piece::to_value).collect();
                document.insert("stream".to_owned(), Value::Array(pieces));
            }
        }
        if self.over_limit {
            document.insert("over_limit".to_owned(), json!(true));
        }
        if self.broken_off {
            document.insert("broken_off".to_owned(), json!(true));
        }
    }
}

impl Piece {
    fn to_value(&self) -> Value {
        let mut document = Map::new();
        document.insert("at_ms".to_owned(), json!(self.at_ms));
        put_data(&mut document, "data", &self.data);
        Value::Object(document)
    }
}

/// Bytes under `name`, or under `name_base64` where they are no text.
fn put_data(document: &mut Map<String, Value>, name: &str, data: &Data) {
    match data.as_text() {
        Some(text) => document.insert(name.to_owned(), json!(text)),
        None => document.insert(format!("{name}_base64"), json!(data.to_base64())),
    };
}

/// Headers by name; the values of one that comes several times are a list.
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
    Value::Object(document)
}
