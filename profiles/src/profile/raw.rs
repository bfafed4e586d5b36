//! Profile files as they are written: flat structs that mirror the YAML.
//!
//! Every field is optional and keeps its place; what belongs together and what values mean is the
//! second step's to say, so that one reading reports every such error at once. The field docs are
//! also the descriptions of the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::located::{At, OneOrMany, Pairs, Tree};

/// A named set of rules. The families of faults stand under `chaos`, or beside `name`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Squall profile")]
pub(crate) struct RawProfile {
    /// `[a-z0-9_-]`, at most 64 characters; default: the file's name without extension.
    pub(crate) name: Option<At<String>>,
    /// What the profile is for, in a sentence.
    pub(crate) description: Option<At<String>>,
    /// Profiles whose rules come after this one's own: one name or a list.
    pub(crate) extends: Option<At<OneOrMany>>,
    /// The rules, by family.
    pub(crate) chaos: Option<At<RawChaos>>,
    /// Faults of the transport, for any exchange.
    pub(crate) network_faults: Option<Vec<At<RawRule>>>,
    /// Faults of tools.
    pub(crate) tool_faults: Option<Vec<At<RawRule>>>,
    /// Faults of model calls.
    pub(crate) llm_faults: Option<Vec<At<RawRule>>>,
    /// Attacks on what the model reads.
    pub(crate) context_attacks: Option<At<Tree>>,
}

/// Rules by family; also the inline form of an activation.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Chaos")]
pub(crate) struct RawChaos {
    /// Faults of the transport, for any exchange.
    pub(crate) network_faults: Option<Vec<At<RawRule>>>,
    /// Faults of tools.
    pub(crate) tool_faults: Option<Vec<At<RawRule>>>,
    /// Faults of model calls.
    pub(crate) llm_faults: Option<Vec<At<RawRule>>>,
    /// Attacks on what the model reads.
    pub(crate) context_attacks: Option<At<Tree>>,
}

macro_rules! raw_rule {
    ($($(#[$doc:meta])* $field:ident: $kind:ty,)*) => {
        /// A rule: what it matches, when it fires, how it fails.
        #[derive(Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = "Rule")]
        pub(crate) struct RawRule {
            $($(#[$doc])* pub(crate) $field: Option<At<$kind>>,)*
        }

        impl RawRule {
            /// Every field that was written, with its place.
            pub(crate) fn written(&self) -> Vec<(&'static str, crate::error::Position)> {
                let mut written = Vec::new();
                $(if let Some(at) = &self.$field {
                    written.push((stringify!($field), at.position));
                })*
                written
            }

            /// Expands the variables of every field.
            pub(crate) fn expand_fields(
                &mut self,
                position: crate::error::Position,
                expansion: &mut super::expansion::Expansion<'_>,
            ) {
                $(super::expansion::Strings::expand(&mut self.$field, position, expansion);)*
            }
        }
    };
}

raw_rule! {
    /// Unique in the profile, `[a-z0-9_-]`, at most 64 characters; default: mode and a hash of match
    /// and fault.
    id: String,
    /// How it fails; which parameters it takes depends on it.
    mode: String,

    /// Glob, or list of globs, over the whole upstream URL; `*` and `{a,b}` are special.
    match_url: OneOrMany,
    /// Name or glob: a name from `tools:` or the name of an MCP tool; `*` is every tool.
    tool: String,
    /// Request methods; absent: any.
    methods: OneOrMany,
    /// Request headers: name to glob over the value.
    headers: Pairs<String>,
    /// Regular expression that the request's body contains; with mode `error`: the answer's body.
    body: Value,
    /// Regular expression that the request's body contains, in any mode.
    match_body: String,
    /// `JSONPath` (RFC 9535) in the request's body to the value that must stand there.
    json: Pairs<Value>,
    /// The provider's wire format, for model calls.
    dialect: String,
    /// Glob over the model asked for.
    model: String,
    /// Whether a stream was asked for.
    stream: bool,
    /// Status of the upstream's answer: a number, a class such as `5xx`, or a list of them.
    status: OneOrMany,

    /// Share of the matching calls it fires on, 0 to 1; default 1.
    probability: f64,
    /// The first so many matching calls of the scope pass; default 0.
    after_calls: f64,
    /// Fires on every so-many-th matching call only.
    every: f64,
    /// Fires at most so many times.
    limit: f64,
    /// Fires on exactly these matching calls, counted from 1.
    calls: Vec<At<f64>>,
    /// Fires only in this span of time.
    window: RawWindow,
    /// The probability changes linearly with time; instead of `probability`.
    ramp: RawRamp,
    /// Fires only after this has happened in the scope.
    armed_by: RawArmedBy,

    /// Milliseconds to wait, or to hold before closing.
    delay_ms: f64,
    /// Greatest extra wait in milliseconds; default 0.
    jitter_ms: f64,
    /// Shape of the extra wait: `uniform` (default), `normal`, `pareto` or `spike`.
    distribution: String,
    /// Where the wait is: `request` (default: before forwarding) or `response` (after the answer's
    /// head has come).
    at: String,
    /// Kilobits per second, 1000 bits each.
    rate_kbps: f64,
    /// `bandwidth`: `down` (to the agent, default), `up` or `both`; `response_drift`: `expand` or
    /// `compress`.
    direction: String,
    /// Mean size of a piece in bytes.
    average_size: f64,
    /// Greatest difference from `average_size` in bytes; default 0.
    size_variation: f64,
    /// Microseconds between pieces; default 0.
    delay_us: f64,
    /// Body bytes that still reach the agent.
    after_bytes: f64,
    /// Body bytes that are kept.
    bytes: f64,
    /// How the handshake fails: `expired`, `wrong_host`, `untrusted` or `handshake` (default).
    kind: String,
    /// Status of the answer.
    error_code: f64,
    /// What the error says.
    message: String,
    /// Headers of the answer.
    response_headers: Pairs<String>,
    /// Seconds that `Retry-After` announces.
    retry_after: f64,
    /// What is answered: text, or any JSON value.
    payload: Value,
    /// Share of the body that is kept, 0 to 1.
    ratio: f64,
    /// What drifts: with `schema_drift` a field is subject to `rename`, `drop`, `null` or `retype`.
    #[serde(default, deserialize_with = "super::located::word_or_null")]
    drift: String,
    /// The field that drifts; default: any, by the draw.
    field: String,
    /// Reset the connection instead of answering.
    reset: bool,
    /// Tokens the answer keeps.
    max_tokens: f64,
    /// Requests per minute.
    rpm: f64,
    /// Tokens per minute.
    tpm: f64,
    /// Kind of drift in a model's answer.
    drift_type: String,
    /// How much it drifts.
    severity: String,
    /// By what factor the answer grows or shrinks.
    factor: f64,
    /// Tokens that still arrive.
    after_tokens: f64,
    /// US dollars that may be spent.
    after_usd: f64,
    /// Milliseconds before the first token.
    ttft_ms: f64,
    /// Pace of the tokens after the first.
    tokens_per_second: f64,
}

/// A span of time, counted from the activation.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Window")]
pub(crate) struct RawWindow {
    /// When it opens, as `500ms`, `30s`, `5m` or `1h`; default: at once.
    pub(crate) after: Option<At<String>>,
    /// How long it stays open; default: to the end.
    #[serde(rename = "for")]
    pub(crate) open_for: Option<At<String>>,
}

/// A probability that changes linearly, and then stays.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ramp")]
pub(crate) struct RawRamp {
    /// Probability at the activation; default 0.
    pub(crate) from: Option<At<f64>>,
    /// Probability at the end; default 1.
    pub(crate) to: Option<At<f64>>,
    /// How long it takes, as `500ms`, `30s`, `5m` or `1h`.
    pub(crate) over: Option<At<String>>,
}

/// What must have happened in the scope: a rule fired, or an exchange took place.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ArmedBy")]
pub(crate) struct RawArmedBy {
    /// Id of the rule that must have fired.
    pub(crate) rule: Option<At<String>>,
    /// Name or glob of the tool that must have been called.
    pub(crate) tool: Option<At<String>>,
    /// Glob, or list of globs, over the exchange's URL.
    pub(crate) match_url: Option<At<OneOrMany>>,
    /// Methods of the exchange.
    pub(crate) methods: Option<At<OneOrMany>>,
    /// Status of the upstream's answer: a number, a class such as `2xx`, or a list of them.
    pub(crate) status: Option<At<OneOrMany>>,
}
