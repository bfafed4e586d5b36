//! One exchange in the journal: the shape of `GET /v1/exchanges/{id}`.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One request and its response (or failure) through the proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExchangeRecord {
    /// Unique, and sorting by start within one daemon.
    pub id: String,
    /// Scope; the default scope is `default`.
    pub scope: String,
    /// Kind.
    pub kind: Kind,
    /// Dialect, for kind `llm`.
    pub dialect: Option<String>,
    /// Tool name, if one is known.
    pub tool: Option<String>,
    /// Other tools of the same request, which is a batch of MCP calls; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_tools: Vec<String>,
    /// Request method.
    pub method: String,
    /// Upstream URL, secrets redacted.
    pub url: String,
    /// Status that the agent got; `null` if it got no response.
    pub status: Option<u16>,
    /// Status of the upstream; `null` if it was not dialled or did not respond.
    pub upstream_status: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong, in one sentence; `null` for `ok`, `open` and `injected`.
    pub error: Option<String>,
    /// Start, RFC 3339 with milliseconds, UTC.
    pub started_at: String,
    /// From the request's head to the end of the response, milliseconds; `null` while open.
    pub duration_ms: Option<f64>,
    /// Delay that faults added, milliseconds.
    pub injected_ms: f64,
    /// Time that Squall added itself, microseconds, without injected delay.
    pub overhead_us: u64,
    /// Encoded body bytes received from the agent.
    pub request_bytes: u64,
    /// Encoded body bytes sent to the agent.
    pub response_bytes: u64,
    /// Fingerprint of the request, 16 hex digits; `null` if no draw needed it.
    pub fingerprint: Option<String>,
    /// Number of the request among those of its scope with this fingerprint, from 1.
    pub attempt: Option<u64>,
    /// Seed of the activation in force.
    pub seed: u64,
    /// Eligible rules, applied ones first; at most 64.
    pub rules: Vec<RuleRecord>,
    /// Number of other eligible rules.
    pub rules_more: u64,
    /// Id of the activation in force.
    pub activation: Option<String>,
    /// Id of its run.
    pub run: Option<String>,
    /// Id of the exchange of the WebSocket that carried it; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<String>,
    /// What a WebSocket carried, if this is its upgrade; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<SocketRecord>,
    /// The call between agents, for kind `agent` and for calls of a known agent; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRecord>,
    /// Canaries that were planted in it or that it leaked.
    pub canaries: Vec<CanaryRecord>,
    /// Details of a model call.
    pub llm: Option<LlmRecord>,
}

impl ExchangeRecord {
    /// The rules that took effect.
    pub fn applied(&self) -> impl Iterator<Item = &RuleRecord> + Clone {
        let rules = self.rules.iter();
        rules.filter(|rule| rule.outcome == RuleOutcome::Applied)
    }
}

squall_documents::named! {
    /// A kind of exchanges.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// A model call in a recognised dialect.
        Llm = "llm",
        /// Any other HTTP exchange.
        #[default]
        Tool = "tool",
        /// A JSON-RPC exchange with an MCP server.
        Mcp = "mcp",
        /// A call of an agent: over A2A, or of a URL under `agents:`.
        Agent = "agent",
        /// Tunnels, upgrades, and connections without an HTTP exchange.
        Other = "other",
    }
}

squall_documents::named! {
    /// How an exchange ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Outcome {
        /// Still running.
        Open = "open",
        /// Forwarded unchanged; added delay alone is `ok` too.
        Ok = "ok",
        /// A rule changed what the agent received.
        Injected = "injected",
        /// The upstream could not be reached or aborted.
        UpstreamError = "upstream_error",
        /// The agent disconnected first.
        ClientGone = "client_gone",
        /// The agent rejected Squall's certificate.
        ClientRejectedCa = "client_rejected_ca",
        /// Squall rejected or ended it: its destination is not allowed, or its scope got a new activation.
        Denied = "denied",
    }
}

/// One eligible rule, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleRecord {
    /// The rule's profile.
    pub profile: String,
    /// The rule's id.
    pub rule: String,
    /// `network_faults`, `tool_faults`, `llm_faults`, `context_attacks`.
    pub family: String,
    /// Mode.
    pub mode: String,
    /// Its outcome.
    pub outcome: RuleOutcome,
    /// Why it was not applied.
    pub reason: Option<String>,
    /// Number of the exchange among those of its scope that the rule matches, from 1.
    pub ordinal: u64,
    /// The draw, 0 to 1; `null` if there was none.
    pub drawn: Option<f64>,
    /// The fault's parameters.
    pub parameters: Value,
    /// Of a rule with a budget: what the calls that it matches had used before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentRecord>,
    /// Of a rule that changed tools' results for a model (`at: model_input`, `indirect_injection`): the tools that
    /// the request names; at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told_of: Vec<String>,
}

/// What model calls have used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpentRecord {
    /// Calls that used anything.
    pub calls: u64,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Those of both that Squall counted because the provider did not.
    pub estimated_tokens: u64,
    /// US dollars at list prices; `null` if a model without a known price was used.
    pub usd: Option<f64>,
}

/// The outcome of an eligible rule, best first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuleOutcome {
    /// It was carried out.
    Applied,
    /// It fired but could not be carried out.
    Bypassed,
    /// Its trigger did not fire.
    NotDrawn,
}

/// A canary that was planted in an exchange, or that it leaked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CanaryRecord {
    /// `sq-` and 12 hexadecimal digits.
    pub canary: String,
    /// Whether it was planted or leaked.
    pub event: CanaryEvent,
    /// Part of the request that leaked it; `null` if it was planted.
    #[serde(rename = "where")]
    pub place: Option<Place>,
    /// How it was encoded when it leaked; `null` if it was planted.
    pub encoding: Option<Encoding>,
    /// Id of the exchange in which it was planted: this one, or an earlier one.
    pub planted_by: String,
    /// Id of the rule that planted it.
    pub rule: String,
    /// Id of its payload in the library; of several payloads of the rule the place, as in `payloads[1]`; `null` for
    /// the only one.
    pub payload: Option<String>,
    /// The category of a payload of the library; `null` for any other.
    pub category: Option<String>,
}

/// Whether a canary was planted or leaked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CanaryEvent {
    /// A rule planted it.
    Planted,
    /// The agent sent it, other than as a model's history.
    Egress,
}

squall_documents::named! {
    /// A part of a request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Place {
        /// The URL, its host included.
        Url = "url",
        /// A header's name or value.
        Header = "header",
        /// The body, or bytes of a tunnel.
        Body = "body",
    }
}

squall_documents::named! {
    /// How a canary is encoded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Encoding {
        /// As it was planted.
        Raw = "raw",
        /// In another case, or with separators.
        Normalised = "normalised",
        /// Percent-encoded, in whole or in part.
        Url = "url",
        /// Base64, in either alphabet, at any alignment.
        Base64 = "base64",
        /// Hexadecimal.
        Hex = "hex",
    }
}

/// Details of a model call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LlmRecord {
    /// Requested model.
    pub model: Option<String>,
    /// Whether a stream was requested.
    pub stream: bool,
    /// Input tokens, as the provider counts, or Squall if it does not.
    pub input_tokens: Option<u64>,
    /// Output tokens, as the provider counts, or Squall if it does not.
    pub output_tokens: Option<u64>,
    /// Whether Squall counted any of them.
    #[serde(default)]
    pub estimated: bool,
    /// How Squall counted: `o200k_base`, `cl100k_base` or `estimate`; absent if the provider counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by: Option<String>,
    /// Finish reason, in neutral terms.
    pub finish: Option<String>,
    /// Names of the tools that the model called.
    pub tool_calls: Vec<String>,
}

/// A call of an agent, or by a known one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRecord {
    /// Name of the calling agent; `null` if it is unknown.
    pub from: Option<String>,
    /// Method of A2A, such as `message/send`; `null` for other protocols.
    pub method: Option<String>,
}

impl AgentRecord {
    /// Whether it may have sent a message: other methods of A2A only read or cancel tasks.
    pub fn sends_message(&self) -> bool {
        let method = self.method.as_deref();
        method.is_none_or(squall_dialects::a2a::is_message)
    }
}

/// What a WebSocket carried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketRecord {
    /// From the agent.
    pub agent: MessageCounts,
    /// To the agent.
    pub upstream: MessageCounts,
    /// The first Close frame; `null` if there was none.
    pub close: Option<CloseRecord>,
}

/// Whole messages of a side of a WebSocket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageCounts {
    /// Whole messages, without pings, pongs and Close frames.
    pub messages: u64,
    /// Bytes of their payloads, compressed or not.
    pub bytes: u64,
}

/// A Close frame of a WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloseRecord {
    /// Who sent it; `upstream` also for a rule.
    pub by: SocketSide,
    /// Its code; `null` if it has none.
    pub code: Option<u16>,
    /// Its reason, secrets redacted.
    pub reason: String,
}

squall_documents::named! {
    /// A side of a WebSocket.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum SocketSide {
        /// The agent.
        Agent = "agent",
        /// The upstream.
        Upstream = "upstream",
    }
}

/// A rule in force that failed to match an exchange on exactly one condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NearMissRecord {
    /// The rule's profile.
    pub profile: String,
    /// The rule's id.
    pub rule: String,
    /// Its family.
    pub family: String,
    /// Mode.
    pub mode: String,
    /// The condition, and what the exchange had.
    pub why: String,
}

/// One exchange with why each rule did or did not fire: `GET /v1/exchanges/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExplainedRecord {
    /// The exchange, eligible rules included.
    #[serde(flatten)]
    pub exchange: ExchangeRecord,
    /// Rules that nearly matched; `null` if the rules of its time are no longer in force.
    pub nearest_misses: Option<Vec<NearMissRecord>>,
}

/// By hand: with arbitrary precision, serde reads no float of a flattened struct.
impl<'de> Deserialize<'de> for ExplainedRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut document = Value::deserialize(deserializer)?;
        let misses = document
            .get_mut("nearest_misses")
            .map(Value::take)
            .unwrap_or_default();
        Ok(Self {
            nearest_misses: serde_json::from_value(misses).map_err(D::Error::custom)?,
            exchange: serde_json::from_value(document).map_err(D::Error::custom)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_explained_exchange_reads_back_with_its_numbers() {
        let sent = json!({
            "id": "7-1", "scope": "default", "kind": "llm", "dialect": "openai-chat", "tool": null,
            "method": "POST", "url": "http://model.test/", "status": 429, "upstream_status": null,
            "outcome": "injected", "error": null, "started_at": "2026-11-21T23:01:40.120Z",
            "duration_ms": 12.5, "injected_ms": 0.25, "overhead_us": 71, "request_bytes": 10,
            "response_bytes": 20, "fingerprint": null, "attempt": 1, "seed": u64::MAX,
            "rules": [{
                "profile": "p", "rule": "r", "family": "llm_faults", "mode": "rate_limit",
                "outcome": "applied", "reason": null, "ordinal": 3, "drawn": 0.125,
                "parameters": { "retry_after": 0.5, "n": 7 },
            }],
            "rules_more": 0, "activation": "a1-1", "run": null, "canaries": [{
                "canary": "sq-0123456789ab", "event": "egress", "where": "url",
                "encoding": "base64", "planted_by": "6-1", "rule": "r",
                "payload": "role-two-voices", "category": "role_play",
            }],
            "llm": { "model": "m", "stream": true, "input_tokens": 3, "output_tokens": null,
                     "estimated": false, "finish": null, "tool_calls": [] },
            "nearest_misses": [{ "profile": "p", "rule": "s", "family": "llm_faults",
                                 "mode": "timeout", "why": "the method is POST" }],
        });
        let text = sent.to_string();
        let read: ExplainedRecord = serde_json::from_str(&text).expect("reads back");
        assert_eq!(read.exchange.duration_ms, Some(12.5));
        assert_eq!(read.exchange.rules[0].drawn, Some(0.125));
        assert_eq!(read.exchange.seed, u64::MAX);
        assert_eq!(read.nearest_misses.as_ref().map(Vec::len), Some(1));
        assert_eq!(serde_json::to_value(&read).expect("JSON"), sent);
        let unknown = ExplainedRecord {
            nearest_misses: None,
            ..read
        };
        let text = serde_json::to_string(&unknown).expect("JSON");
        assert_eq!(
            serde_json::from_str::<ExplainedRecord>(&text).ok(),
            Some(unknown)
        );
        assert!(serde_json::from_str::<ExplainedRecord>("{}").is_err());
    }
}
