//! Traces of OpenTelemetry: OTLP in JSON, JSON Lines and protobuf, with attributes of OpenTelemetry GenAI, OpenInference
//! and Traceloop. One session for each trace.

use std::collections::BTreeMap;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;
use serde_json::{Map, Value, json};
use squall_dialects::codec::{Coding, Decoder};
use squall_journal::timestamp;

use super::message::{TracedCall, user_text};
use super::trace::{CallKind, Trace, elapsed_ms};
use super::{Imported, words};

/// Longest request to a collector, decoded, bytes.
const LONGEST_REQUEST: usize = 16 << 20;

/// Most parts in the name of an attribute that is a part of a message.
const DEEPEST: usize = 16;

/// A span with its attributes by name.
#[derive(Debug, Clone)]
pub struct Span {
    /// Its trace, 32 hexadecimal digits.
    pub trace: String,
    /// 16 hexadecimal digits.
    pub id: String,
    parent: String,
    name: String,
    start: u64,
    end: u64,
    attributes: Map<String, Value>,
    events: Vec<(String, Map<String, Value>)>,
    error: Option<String>,
    /// Bytes of its attributes, about.
    weight: usize,
}

/// The format of a request to a collector and of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpFormat {
    /// `application/json`
    Json,
    /// `application/x-protobuf`
    Protobuf,
}

impl OtlpFormat {
    /// The format with this media type.
    pub fn of(media_type: &str) -> Option<Self> {
        match media_type.split(';').next().unwrap_or_default().trim() {
            "application/json" => Some(Self::Json),
            "application/x-protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }

    /// The spans of a request to a collector, and the number of invalid ones. `is_gzip`: its body is compressed.
    pub fn spans(self, body: &[u8], is_gzip: bool) -> Result<(Vec<Span>, usize), String> {
        let body = if is_gzip {
            unpacked(body)?
        } else {
            Bytes::copy_from_slice(body)
        };
        match self {
            Self::Json => spans(&super::json(&body)?),
            Self::Protobuf => spans(&json_of(&body)?),
        }
    }

    /// The response of a collector that rejected this number of spans.
    pub fn response(self, rejected: usize, why: &str) -> Vec<u8> {
        match (self, rejected) {
            (Self::Json, 0) => b"{}".to_vec(),
            (Self::Protobuf, 0) => Vec::new(),
            (Self::Json, _) => {
                let partial = json!({ "rejectedSpans": rejected.to_string(), "errorMessage": why });
                json!({ "partialSuccess": partial })
                    .to_string()
                    .into_bytes()
            }
            (Self::Protobuf, _) => {
                let partial = ExportTracePartialSuccess {
                    rejected_spans: i64::try_from(rejected).unwrap_or(i64::MAX),
                    error_message: why.to_owned(),
                };
                let partial_success = Some(partial);
                ExportTraceServiceResponse { partial_success }.encode_to_vec()
            }
        }
    }
}

/// A request in protobuf, as the JSON that OTLP defines for it.
fn json_of(body: &[u8]) -> Result<Value, String> {
    let request = ExportTraceServiceRequest::decode(body);
    let request = request.map_err(|_| "it is neither JSON nor protobuf of OTLP")?;
    serde_json::to_value(request).map_err(|error| error.to_string())
}

fn unpacked(body: &[u8]) -> Result<Bytes, String> {
    let mut whole = Vec::new();
    let mut decoder = Decoder::new(Coding::Gzip).map_err(|error| error.to_string())?;
    let mut add = |piece: &[u8]| whole.extend_from_slice(piece);
    let pushed = decoder.push(body, LONGEST_REQUEST + 1, &mut add);
    if pushed.map_err(|error| error.to_string())? > LONGEST_REQUEST {
        return Err(format!(
            "the decoded body has more than {LONGEST_REQUEST} bytes"
        ));
    }
    Ok(whole.into())
}

/// Spans in a request of OTLP/HTTP, or in a line of a file; and the number of spans that were rejected.
fn spans(document: &Value) -> Result<(Vec<Span>, usize), String> {
    let none = Vec::new();
    let resources = match &document["resourceSpans"] {
        Value::Array(resources) => resources,
        // In JSON of Protocol Buffers an empty list may be left out.
        Value::Null if document.is_object() => &none,
        _ => return Err("it is not OTLP: it has no list `resourceSpans`".to_owned()),
    };
    let list = |value: &'_ Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let scopes = resources.iter().flat_map(|one| list(one, "scopeSpans"));
    let (mut spans, mut rejected) = (Vec::new(), 0);
    for one in scopes.flat_map(|scope| list(&scope, "spans")) {
        match span(&one) {
            Some(span) => spans.push(span),
            None => rejected += 1,
        }
    }
    Ok((spans, rejected))
}

fn span(span: &Value) -> Option<Span> {
    let id = |name: &str, digits: usize| {
        let id = span[name].as_str()?.to_ascii_lowercase();
        let is_hex = id.bytes().all(|byte| byte.is_ascii_hexdigit());
        (id.len() == digits && is_hex && id.bytes().any(|byte| byte != b'0')).then_some(id)
    };
    let failed =
        matches!(&span["status"]["code"], code if *code == 2 || *code == "STATUS_CODE_ERROR");
    let message = words(&span["status"], "message").unwrap_or("failed");
    let events = span["events"].as_array().into_iter().flatten();
    let events = events.map(|event| {
        (
            words(event, "name").unwrap_or_default().to_owned(),
            attributes(event),
        )
    });
    Some(Span {
        weight: span.to_string().len(),
        trace: id("traceId", 32)?,
        id: id("spanId", 16)?,
        parent: id("parentSpanId", 16).unwrap_or_default(),
        name: words(span, "name").unwrap_or("?").to_owned(),
        start: number(&span["startTimeUnixNano"]),
        end: number(&span["endTimeUnixNano"]),
        attributes: attributes(span),
        events: events.collect(),
        error: failed.then(|| message.to_owned()),
    })
}

/// A whole number, written as one or as a text.
fn number(value: &Value) -> u64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    value.as_u64().or(text).unwrap_or(0)
}

fn attributes(of: &Value) -> Map<String, Value> {
    let pairs = of["attributes"].as_array().into_iter().flatten();
    let pair = |pair: &Value| Some((pair["key"].as_str()?.to_owned(), any(&pair["value"])));
    pairs.filter_map(pair).collect()
}

/// An `AnyValue` as JSON.
fn any(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|it| it.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "intValue" => inner
            .as_i64()
            .or_else(|| inner.as_str()?.parse().ok())
            .into(),
        "arrayValue" => inner["values"]
            .as_array()
            .into_iter()
            .flatten()
            .map(any)
            .collect(),
        "kvlistValue" => attributes(&json!({ "attributes": inner["values"] })).into(),
        _ => inner.clone(),
    }
}

/// A file: one document, or one a line.
pub(super) fn read(bytes: &[u8]) -> Result<Imported, String> {
    let text = super::text(bytes).ok();
    let Some(text) = text.filter(|text| text.trim_start().starts_with('{')) else {
        return Ok(sessions(spans(&json_of(bytes)?)?));
    };
    let (mut all, mut rejected) = (Vec::new(), 0);
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    for document in documents {
        let document = document.map_err(|error| format!("it is not JSON: {error}"))?;
        if document.get("resourceSpans").is_none() {
            return Err("it is not OTLP: it has no `resourceSpans`".to_owned());
        }
        let (spans, bad) = spans(&document)?;
        all.extend(spans);
        rejected += bad;
    }
    Ok(sessions((all, rejected)))
}

/// The sessions of spans, one for each trace.
pub(super) fn sessions((spans, rejected): (Vec<Span>, usize)) -> Imported {
    let mut imported = Imported::default();
    if rejected > 0 {
        imported.leave_out(
            format!("spans: {rejected}"),
            "their trace id or span id is invalid",
        );
    }
    let mut traces: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for span in spans {
        traces.entry(span.trace.clone()).or_default().push(span);
    }
    for (id, mut spans) in traces {
        spans.sort_by_key(|span| span.start);
        trace(id, &spans).add_to(&mut imported);
    }
    imported
}

impl Span {
    /// Its size in memory, bytes, about.
    pub fn weight(&self) -> usize {
        self.weight
    }

    fn text(&self, names: &[&str]) -> Option<&str> {
        let mut found = names
            .iter()
            .filter_map(|name| self.attributes.get(*name)?.as_str());
        found.find(|text| !text.is_empty())
    }

    fn kind(&self) -> CallKind {
        let kinds = [
            "openinference.span.kind",
            "traceloop.span.kind",
            "gen_ai.operation.name",
            "llm.request.type",
        ];
        let kind = self.text(&kinds).unwrap_or_default().to_ascii_lowercase();
        match kind.as_str() {
            "tool" | "execute_tool" => CallKind::Tool,
            "llm" | "chat" | "generate_content" | "text_completion" | "completion" => {
                CallKind::Model
            }
            "embeddings" | "embedding" | "retrieval" | "retriever" | "reranker" => CallKind::Search,
            "" if self.attributes.contains_key("gen_ai.tool.name") => CallKind::Tool,
            "" if self
                .text(&["gen_ai.request.model", "llm.model_name"])
                .is_some() =>
            {
                CallKind::Model
            }
            _ if self.text(&["http.request.method", "http.method"]).is_some() => CallKind::Http,
            _ => CallKind::Other,
        }
    }

    /// The first of these attributes, of the span or of its events.
    fn value(&self, names: &[&str]) -> Option<Value> {
        let events = self.events.iter().map(|(_, attributes)| attributes);
        let mut all = std::iter::once(&self.attributes).chain(events);
        let found = all.find_map(|attributes| names.iter().find_map(|name| attributes.get(*name)));
        let value = found.filter(|value| !value.is_null())?;
        Some(written_out(value))
    }

    /// Messages whose fields are attributes: `llm.output_messages.0.message.content`.
    fn messages(&self, prefix: &str) -> Option<Value> {
        let mut messages = Value::Null;
        for (name, value) in &self.attributes {
            if let Some(path) = name
                .strip_prefix(prefix)
                .and_then(|it| it.strip_prefix('.'))
            {
                let path: Vec<&str> = path.split('.').take(DEEPEST + 1).collect();
                if path.len() <= DEEPEST {
                    put(&mut messages, &path, value);
                }
            }
        }
        (!messages.is_null()).then(|| listed(messages))
    }

    /// Messages in events, one for each: `gen_ai.choice`, `gen_ai.user.message`.
    fn event(&self, name: &str) -> Option<Value> {
        let (_, attributes) = self.events.iter().rev().find(|(event, _)| event == name)?;
        let attributes = attributes.iter();
        let parsed = attributes.map(|(name, value)| (name.clone(), written_out(value)));
        Some(parsed.collect())
    }

    fn input(&self) -> Option<String> {
        let own = self.value(&["gen_ai.input.messages", "gen_ai.prompt"]);
        let own = own
            .or_else(|| self.messages("llm.input_messages"))
            .or_else(|| self.messages("gen_ai.prompt"));
        let own = own.or_else(|| self.value(&["input.value", "traceloop.entity.input"]));
        let own = own.or_else(|| self.event("gen_ai.user.message"));
        user_text(&own?)
    }

    fn output(&self) -> Option<Value> {
        // OpenInference has the provider's own response here.
        let raw = self.value(&["output.value"]).filter(Value::is_object);
        let found = raw.or_else(|| self.value(&["gen_ai.output.messages", "gen_ai.completion"]));
        let found = found.or_else(|| self.messages("llm.output_messages"));
        let found = found.or_else(|| self.messages("gen_ai.completion"));
        found.or_else(|| self.event("gen_ai.choice"))
    }
}

/// A value; of a text that is JSON of an object or a list, that.
fn written_out(value: &Value) -> Value {
    let inner = value
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let inner = inner.filter(|it: &Value| it.is_object() || it.is_array());
    inner.unwrap_or_else(|| value.clone())
}

/// Sets a value in nested maps. A list is a map from number to item until it is [`listed`].
fn put(at: &mut Value, path: &[&str], value: &Value) {
    let Some((first, rest)) = path.split_first() else {
        at.clone_from(value);
        return;
    };
    if !at.is_object() {
        *at = json!({});
    }
    if let Some(members) = at.as_object_mut() {
        put(members.entry(*first).or_insert(Value::Null), rest, value);
    }
}

/// Maps whose names are all numbers, as lists in the order of the numbers.
fn listed(value: Value) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let members = members
        .into_iter()
        .map(|(name, inner)| (name, listed(inner)));
    let members: Map<String, Value> = members.collect();
    let numbers: Option<Vec<usize>> = members.keys().map(|name| name.parse().ok()).collect();
    match numbers {
        Some(numbers) if !numbers.is_empty() => {
            let items: BTreeMap<_, _> = numbers.into_iter().zip(members).collect();
            items.into_values().map(|(_, item)| item).collect()
        }
        Some(_) | None => members.into(),
    }
}

fn trace(id: String, spans: &[Span]) -> Trace {
    let by_id: BTreeMap<&str, &Span> = spans.iter().map(|span| (&*span.id, span)).collect();
    let root = spans
        .iter()
        .find(|span| !by_id.contains_key(&*span.parent))
        .or(spans.first());
    let mut trace = Trace {
        id,
        name: root.map(|root| root.name.clone()),
        source: "OpenTelemetry".to_owned(),
        captured_at: root.map(|root| timestamp::rfc3339(root.start / 1_000_000)),
        input: root.and_then(Span::input),
        failure: spans.iter().find_map(|span| span.error.clone()),
        ..Trace::default()
    };
    for span in spans {
        let kind = span.kind();
        if kind == CallKind::Http && is_below_a_call(span, &by_id) {
            continue;
        }
        let (mut name, mut output) = (None, None);
        if kind == CallKind::Tool {
            name = span.text(&["gen_ai.tool.name", "tool.name", "traceloop.entity.name"]);
            output = span.value(&[
                "gen_ai.tool.call.result",
                "output.value",
                "traceloop.entity.output",
            ]);
        } else if kind == CallKind::Model {
            output = span.output();
        }
        let provider = [
            "gen_ai.provider.name",
            "gen_ai.system",
            "llm.provider",
            "llm.system",
        ];
        let model = [
            "gen_ai.response.model",
            "gen_ai.request.model",
            "llm.model_name",
        ];
        let call = TracedCall {
            name: name.unwrap_or(&span.name).to_owned(),
            output,
            error: span.error.clone(),
            latency_ms: elapsed_ms(span.start, span.end),
            provider: span.text(&provider).map(str::to_owned),
            model: span.text(&model).map(str::to_owned),
        };
        trace.add(kind, call, || span.input());
    }
    trace
}

/// Whether a span belongs to a call of a tool or of a model, which has its content.
fn is_below_a_call(span: &Span, by_id: &BTreeMap<&str, &Span>) -> bool {
    let parents = std::iter::successors(Some(span), |span| by_id.get(&*span.parent).copied());
    // Spans may name each other as parents.
    let mut parents = parents.skip(1).take(by_id.len());
    parents.any(|span| matches!(span.kind(), CallKind::Tool | CallKind::Model))
}
