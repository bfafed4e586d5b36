//! Replay sessions: an incident with its input and the recorded responses.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::content::{Content, Data, Piece};
use super::yaml;

/// A production incident: the prompt, the responses that the agent got, and the contract that it must satisfy.
///
/// The fields are those of flakestorm's replay sessions, and those that Squall adds: `llm_responses`,
/// `exchanges`, `models`, `on_miss`, `on_exhausted`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// The turns of the prompt. Empty: there is no prompt, which only tapes allow.
    pub input: Vec<String>,
    /// A title for people.
    pub name: Option<String>,
    /// Its source, in words.
    pub source: Option<String>,
    /// When it was captured, in any format.
    pub captured_at: Option<String>,
    /// Context of the agent: objects, as in flakestorm.
    pub context: Vec<Value>,
    /// Responses of tools, by tool and in order.
    pub tool_responses: Vec<ToolResponse>,
    /// Responses of models, in order.
    pub llm_responses: Vec<RecordedExchange>,
    /// Responses to requests, in order.
    pub exchanges: Vec<RecordedExchange>,
    /// The failure, in words.
    pub expected_failure: Option<String>,
    /// Name of the contract that it must satisfy.
    pub contract: Option<String>,
    /// Where responses to model calls come from; `None`: see [`Session::has_live_models`].
    pub models: Option<ModelSource>,
    /// Action for a request that was not recorded; the player may override it.
    pub on_miss: Option<Otherwise>,
    /// Action for a request whose responses were all used; the player may override it.
    pub on_exhausted: Option<Otherwise>,
}

/// A tool's response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResponse {
    /// The tool's name.
    pub tool: String,
    /// Its status; 0 means that there was no response.
    pub status: u16,
    /// Its latency, milliseconds.
    pub latency_ms: u64,
    /// A text, or any other JSON value.
    pub response: Value,
}

/// A response, and the requests that it matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedExchange {
    /// The requests that it matches.
    pub matching: Matching,
    /// Dialect of the model call.
    pub dialect: Option<String>,
    /// Whether the agent used HTTP/2.
    pub http2: bool,
    /// The response.
    pub answer: Answer,
}

/// The requests that a response matches; an absent part matches anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matching {
    /// Method.
    pub method: Option<Method>,
    /// URL as rules see it; without body and fingerprint, `*` matches anything.
    pub url: Option<String>,
    /// The request's body.
    pub body: Option<Data>,
    /// The request's fingerprint, instead of its body.
    pub fingerprint: Option<u64>,
    /// The requested model; `*` matches anything.
    pub model: Option<String>,
}

/// A recorded response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Status; 0 means that the connection closed without a response.
    pub status: u16,
    /// Headers, without those about the connection, the body's length or its coding.
    pub headers: Vec<(String, String)>,
    /// Time from the request's head to the response's head, milliseconds.
    pub latency_ms: u64,
    /// The body, decoded.
    pub content: Content,
    /// Whether the body was longer than the stored limit: the rest is missing.
    #[serde(default)]
    pub over_limit: bool,
    /// Whether the connection was aborted before the end of the body.
    #[serde(default)]
    pub broken_off: bool,
}

squall_documents::named! {
    /// Action for a request without a response on the tape.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Otherwise {
        /// Rejects it without dialling the upstream.
        #[default]
        Error = "error",
        /// Forwards it to its upstream.
        Passthrough = "passthrough",
        /// Gives it the next unused response to the same method and URL, whatever the query and the body; rejects it if
        /// there is none. For requests without a response on the tape only.
        Nearest = "nearest",
    }
}

squall_documents::named! {
    /// Where responses to model calls come from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ModelSource {
        /// From the tape.
        Recorded = "recorded",
        /// From their upstreams.
        Live = "live",
    }
}

impl Session {
    /// The number of recorded responses.
    pub fn responses(&self) -> usize {
        self.exchanges.len() + self.tool_responses.len() + self.llm_responses.len()
    }

    /// The number of responses that a replay can play: those of models only if model calls are not live.
    pub fn playable(&self) -> usize {
        let live = self.has_live_models();
        let exchanges = self.exchanges.iter();
        let exchanges = exchanges.filter(|exchange| !live || exchange.dialect.is_none());
        let models = if live { 0 } else { self.llm_responses.len() };
        exchanges.count() + self.tool_responses.len() + models
    }

    /// Whether a replay answers from a tape. A session with input alone forwards all calls, unless it says otherwise.
    pub fn plays_tape(&self) -> bool {
        self.responses() > 0
            || self.on_miss == Some(Otherwise::Error)
            || self.models == Some(ModelSource::Recorded)
    }

    /// Whether model calls go to their upstreams when the session is replayed. Default: if it has no responses of
    /// models.
    pub fn has_live_models(&self) -> bool {
        let mut exchanges = self.exchanges.iter();
        match self.models {
            Some(source) => source == ModelSource::Live,
            None => {
                self.llm_responses.is_empty()
                    && exchanges.all(|exchange| exchange.dialect.is_none())
            }
        }
    }

    /// The session as a JSON document.
    pub fn to_value(&self) -> Value {
        let context = (!self.context.is_empty()).then_some(&self.context);
        let exchanges = |all: &[RecordedExchange]| {
            (!all.is_empty()).then(|| {
                all.iter()
                    .map(RecordedExchange::to_value)
                    .collect::<Value>()
            })
        };
        let input = match &self.input[..] {
            [] => Value::Null,
            [turn] => json!(turn),
            turns => json!(turns),
        };
        let tools = (!self.tool_responses.is_empty()).then_some(&self.tool_responses);
        document([
            ("id", json!(self.id)),
            ("name", json!(self.name)),
            ("source", json!(self.source)),
            ("captured_at", json!(self.captured_at)),
            ("input", input),
            ("context", json!(context)),
            ("tool_responses", json!(tools)),
            ("llm_responses", json!(exchanges(&self.llm_responses))),
            ("exchanges", json!(exchanges(&self.exchanges))),
            ("expected_failure", json!(self.expected_failure)),
            ("contract", json!(self.contract)),
            ("models", json!(self.models)),
            ("on_miss", json!(self.on_miss)),
            ("on_exhausted", json!(self.on_exhausted)),
        ])
    }

    /// The session as YAML.
    pub fn to_yaml(&self) -> String {
        yaml::write(&self.to_value())
    }
}

impl RecordedExchange {
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

/// A document without null members; null if no member is left.
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

/// Bytes under the first name as text, or under the second in base64 if they are not UTF-8.
fn data(names: [&'static str; 2], data: Option<&Data>) -> (&'static str, Value) {
    match data.map(|data| data.as_text().ok_or(data)) {
        Some(Err(data)) => (names[1], json!(data.to_base64())),
        Some(Ok(text)) => (names[0], json!(text)),
        None => (names[0], Value::Null),
    }
}

/// Headers by name; null if there are none. Repeated headers become a list.
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
