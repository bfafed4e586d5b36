//! Synthetic traffic for tests.

use std::time::Duration;

use serde_json::json;
use squall_journal::record::{
    AgentRecord, CanaryEvent, CanaryRecord, ExchangeRecord, Kind, LlmRecord, Outcome, Place,
    RuleOutcome, RuleRecord,
};
use squall_journal::tape::Detected;

use super::Trace;
use crate::reach::{NearestMiss, Seen, SeenBody, SeenExchange, SeenMessage};

/// Builds an exchange. By default it has a response with status 200 after 10 ms.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) record: ExchangeRecord,
    at: Option<u64>,
    took: u64,
    request: SeenMessage,
    response: SeenMessage,
    nearest_miss: Option<NearestMiss>,
}

impl Sent {
    fn new(kind: Kind, method: &str, url: &str) -> Self {
        let record = json!({
            "id": "x", "scope": "s", "kind": kind.as_str(), "dialect": null, "tool": null,
            "method": method, "url": url, "status": 200, "upstream_status": 200, "outcome": "ok",
            "error": null, "started_at": "2026-11-22T12:00:00.000Z", "duration_ms": 10.0,
            "injected_ms": 0.0, "overhead_us": 0, "request_bytes": 0, "response_bytes": 0,
            "fingerprint": null, "attempt": null, "seed": 42, "rules": [], "rules_more": 0,
            "activation": "a1", "run": "r1", "canaries": [], "llm": null,
        });
        let body = SeenBody {
            bytes: Vec::new(),
            whole: true,
        };
        let message = SeenMessage {
            headers: Vec::new(),
            body: Some(body),
            detected: Some(Vec::new()),
            credentials: Some(0),
        };
        Self {
            record: serde_json::from_value(record).expect("a record"),
            at: None,
            took: 10,
            request: message.clone(),
            response: message,
            nearest_miss: None,
        }
    }

    pub(crate) fn get(url: &str) -> Self {
        Self::new(Kind::Tool, "GET", url)
    }

    pub(crate) fn post(url: &str, body: &str) -> Self {
        Self::new(Kind::Tool, "POST", url).body(body)
    }

    /// A call of an MCP tool.
    pub(crate) fn mcp(tool: &str, arguments: &str, id: u32) -> Self {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        Self::new(Kind::Mcp, "POST", "https://mcp.test/mcp")
            .body(&body)
            .tool(tool)
    }

    /// A message to an agent.
    pub(crate) fn agent(to: &str, from: Option<&str>) -> Self {
        let body = r#"{"jsonrpc":"2.0","id":"1","method":"message/send","params":{"message":{}}}"#;
        let mut sent = Self::new(Kind::Agent, "POST", &format!("http://{to}.test/"));
        sent.record.agent = Some(AgentRecord {
            from: from.map(str::to_owned),
            method: Some("message/send".into()),
        });
        sent.body(body).tool(to)
    }

    /// A call of a model with these messages.
    pub(crate) fn model(messages: &str) -> Self {
        let body = format!(r#"{{"model":"gpt-4o","messages":{messages}}}"#);
        let mut sent = Self::new(
            Kind::Llm,
            "POST",
            "https://api.openai.test/v1/chat/completions",
        );
        sent.record.dialect = Some("openai-chat".into());
        sent.record.llm = Some(LlmRecord {
            model: Some("gpt-4o".into()),
            finish: Some("stop".into()),
            ..LlmRecord::default()
        });
        sent.body(&body)
    }

    /// A call of OpenAI's Responses with these fields; its answer has this id and output.
    pub(crate) fn responses(fields: &str, id: &str, output: &str) -> Self {
        let mut sent = Self::new(Kind::Llm, "POST", "https://api.openai.test/v1/responses");
        sent.record.dialect = Some("openai-responses".into());
        sent.record.llm = Some(LlmRecord::default());
        sent.body(&format!(r#"{{"model":"gpt-5",{fields}}}"#))
            .answer_header("content-type", "application/json")
            .answer_body(&format!(
                r#"{{"id":"{id}","object":"response","status":"completed","output":[{output}]}}"#
            ))
    }

    pub(crate) fn tool(mut self, tool: &str) -> Self {
        self.record.tool = Some(tool.into());
        self
    }

    /// Start of the exchange in milliseconds; by default 100 ms after the start of the previous one.
    pub(crate) fn at(mut self, ms: u64) -> Self {
        self.at = Some(ms);
        self
    }

    pub(crate) fn took(mut self, ms: u64) -> Self {
        self.took = ms;
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.record.request_bytes = body.len() as u64;
        self.request.body = Some(SeenBody {
            bytes: body.into(),
            whole: true,
        });
        self
    }

    /// The request's body was not read.
    pub(crate) fn unread(mut self) -> Self {
        self.record.request_bytes = 9;
        self.request.body = None;
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.request.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.record.status = Some(status);
        self
    }

    /// The connection was reset before a response.
    pub(crate) fn reset(mut self) -> Self {
        self.record.status = None;
        self.record.outcome = Outcome::Injected;
        self
    }

    /// The response was truncated.
    pub(crate) fn cut(mut self) -> Self {
        if let Some(llm) = &mut self.record.llm {
            llm.stream = true;
            llm.finish = None;
        }
        self.injected("stream_cut", json!({}))
    }

    pub(crate) fn injected(mut self, mode: &str, parameters: serde_json::Value) -> Self {
        self.record.outcome = Outcome::Injected;
        self.record.rules.push(RuleRecord {
            profile: "p".into(),
            rule: mode.into(),
            family: "llm_faults".into(),
            mode: mode.into(),
            outcome: RuleOutcome::Applied,
            reason: None,
            ordinal: 1,
            drawn: None,
            parameters,
            spent: None,
            told_of: Vec::new(),
        });
        self
    }

    pub(crate) fn answer_header(mut self, name: &str, value: &str) -> Self {
        self.response.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn answer_body(mut self, body: &str) -> Self {
        self.response.body = Some(SeenBody {
            bytes: body.into(),
            whole: true,
        });
        self
    }

    /// The answer is a stream of these events.
    pub(crate) fn streamed(mut self, events: &str) -> Self {
        self.response.headers.clear();
        self.answer_header("content-type", "text/event-stream")
            .answer_body(events)
    }

    pub(crate) fn used(mut self, model: &str, input: u64, output: u64) -> Self {
        self.record.llm = Some(LlmRecord {
            model: Some(model.into()),
            input_tokens: Some(input),
            output_tokens: Some(output),
            finish: Some("stop".into()),
            ..LlmRecord::default()
        });
        self
    }

    pub(crate) fn canary(mut self, event: CanaryEvent) -> Self {
        self.record.canaries.push(CanaryRecord {
            canary: "sq-0123456789ab".into(),
            event,
            place: (event == CanaryEvent::Egress).then_some(Place::Url),
            encoding: None,
            planted_by: "x".into(),
            rule: "r".into(),
            payload: None,
            category: None,
        });
        self
    }

    pub(crate) fn detected(mut self, detector: &str, personal: bool, place: Place) -> Self {
        self.request
            .detected
            .get_or_insert_default()
            .push(Detected {
                detector: detector.into(),
                personal,
                place,
            });
        self
    }

    /// The redacted credentials of the request.
    pub(crate) fn shows(mut self, credentials: Option<u64>) -> Self {
        self.request.credentials = credentials;
        self
    }

    /// An MCP request that calls no tool.
    pub(crate) fn no_tool(mut self) -> Self {
        self.record.tool = None;
        self
    }

    /// No rule matched it; this one was the nearest miss.
    pub(crate) fn missed_by(mut self, closeness: u16, rule: &str) -> Self {
        self.nearest_miss = Some(NearestMiss {
            closeness,
            rule: rule.into(),
            why: "its `tool` is `serch`".into(),
        });
        self
    }

    /// Detectors for secrets did not run.
    pub(crate) fn not_looked_at(mut self) -> Self {
        self.request.detected = None;
        self
    }
}

/// The exchange with this number.
pub(crate) fn exchange(number: usize, sent: &Sent) -> SeenExchange {
    let at = Duration::from_millis(sent.at.unwrap_or(100 * number as u64));
    SeenExchange {
        record: ExchangeRecord {
            id: format!("x{}", number + 1),
            ..sent.record.clone()
        },
        began: at,
        ended: Some(at + Duration::from_millis(sent.took)),
        request: Some(sent.request.clone()),
        response: sent.record.status.map(|_| sent.response.clone()),
        nearest_miss: sent.nearest_miss.clone(),
    }
}

pub(crate) fn trace(sent: &[Sent]) -> Trace {
    let exchanges = sent.iter().enumerate();
    Trace::of(Seen {
        exchanges: exchanges
            .map(|(number, sent)| exchange(number, sent))
            .collect(),
        lost: 0,
        elsewhere: 0,
        tape: None,
    })
}

/// A trace with an exchange in no scope of the run.
pub(crate) fn trace_beside_others(sent: &[Sent]) -> Trace {
    let mut trace = trace(sent);
    trace.seen.elsewhere = 1;
    trace
}

/// A trace with a lost exchange.
pub(crate) fn trace_with_gaps(sent: &[Sent]) -> Trace {
    let mut trace = trace(sent);
    trace.seen.lost = 1;
    trace
}
