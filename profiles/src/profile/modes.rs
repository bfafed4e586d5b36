//! The words for ways to fail, each with the parameters it takes.

use crate::rule::Family;

/// One mode of a family.
#[derive(Debug)]
pub(crate) struct Mode {
    /// The family it belongs to.
    pub(crate) family: Family,
    /// The word in files.
    pub(crate) name: &'static str,
    /// The parameters it takes, beside match and trigger.
    pub(crate) parameters: &'static [&'static str],
}

const fn mode(family: Family, name: &'static str, parameters: &'static [&'static str]) -> Mode {
    Mode {
        family,
        name,
        parameters,
    }
}

const NETWORK: Family = Family::Network;
const TOOL: Family = Family::Tool;
const LLM: Family = Family::Llm;
const CONTEXT: Family = Family::Context;

/// The parameters of a delay that may stand on either side of the upstream.
const DELAY: &[&str] = &["delay_ms", "jitter_ms", "distribution", "at"];
/// The parameters of a hold.
const HOLD: &[&str] = &["delay_ms", "jitter_ms", "distribution"];

/// Every mode, by family.
pub(crate) const MODES: &[Mode] = &[
    mode(NETWORK, "latency", DELAY),
    mode(NETWORK, "bandwidth", &["rate_kbps", "direction"]),
    mode(
        NETWORK,
        "slicer",
        &["average_size", "size_variation", "delay_us"],
    ),
    mode(NETWORK, "slow_close", HOLD),
    mode(NETWORK, "timeout", HOLD),
    mode(NETWORK, "reset_peer", &["after_bytes"]),
    mode(NETWORK, "limit_data", &["bytes"]),
    mode(NETWORK, "refuse", &[]),
    mode(NETWORK, "dns_failure", &[]),
    mode(NETWORK, "tls_failure", &["kind"]),
    mode(TOOL, "timeout", HOLD),
    mode(
        TOOL,
        "error",
        &[
            "error_code",
            "message",
            "body",
            "response_headers",
            "retry_after",
        ],
    ),
    mode(TOOL, "malformed", &[]),
    mode(TOOL, "slow", DELAY),
    mode(TOOL, "malicious_response", &["payload"]),
    mode(TOOL, "empty", &[]),
    mode(TOOL, "truncated", &["bytes", "ratio"]),
    mode(TOOL, "html_error", &[]),
    mode(TOOL, "schema_drift", &["drift", "field"]),
    mode(TOOL, "stale", &[]),
    mode(TOOL, "swapped", &[]),
    mode(TOOL, "redirect_loop", &[]),
    mode(TOOL, "commit_then_fail", &["error_code", "reset"]),
    mode(TOOL, "silent_noop", &["error_code", "payload"]),
    mode(TOOL, "session_expired", &[]),
    mode(TOOL, "wrong_id", &[]),
    mode(TOOL, "list_drift", &["drift"]),
    mode(TOOL, "endless_progress", &["delay_ms"]),
    mode(LLM, "timeout", HOLD),
    mode(LLM, "truncated_response", &["max_tokens"]),
    mode(LLM, "rate_limit", &["retry_after", "rpm", "tpm"]),
    mode(LLM, "empty", &[]),
    mode(LLM, "garbage", &[]),
    mode(
        LLM,
        "response_drift",
        &["drift_type", "severity", "direction", "factor"],
    ),
    mode(LLM, "overloaded", &[]),
    mode(LLM, "server_error", &["error_code"]),
    mode(LLM, "quota_exhausted", &["after_tokens", "after_usd"]),
    mode(LLM, "context_length_exceeded", &[]),
    mode(LLM, "auth_error", &[]),
    mode(LLM, "model_not_found", &[]),
    mode(LLM, "content_filter", &[]),
    mode(LLM, "refusal", &[]),
    mode(LLM, "malformed_tool_call", &[]),
    mode(LLM, "unknown_tool_call", &[]),
    mode(LLM, "wrong_tool_arguments", &[]),
    mode(LLM, "slow_stream", &["ttft_ms", "tokens_per_second"]),
    mode(LLM, "stream_stall", &["after_tokens", "delay_ms"]),
    mode(LLM, "stream_cut", &["after_tokens"]),
    mode(LLM, "stream_error", &["after_tokens"]),
    mode(LLM, "duplicate_chunk", &[]),
    mode(LLM, "missing_terminator", &[]),
    mode(LLM, "json_for_stream", &[]),
    mode(
        CONTEXT,
        "indirect_injection",
        &["payload", "payloads", "categories", "placement"],
    ),
    mode(
        CONTEXT,
        "memory_poisoning",
        &["payload", "payloads", "categories", "strategy", "inject_at"],
    ),
    mode(CONTEXT, "overflow", &["inject_tokens", "position"]),
    mode(
        CONTEXT,
        "conflicting_context",
        &["payload", "payloads", "categories"],
    ),
    mode(
        CONTEXT,
        "injection_via_context",
        &["payload", "payloads", "categories"],
    ),
];

/// The tool modes that can change a tool's result where the model reads it (`at: model_input`).
pub(crate) const IN_MODEL_INPUT: &[&str] = &[
    "timeout",
    "error",
    "malformed",
    "malicious_response",
    "empty",
    "truncated",
    "html_error",
    "schema_drift",
    "stale",
    "swapped",
];

/// The model modes that make a call in the model's answer wrong: there `tool` is that call's name.
const OF_CALLS: &[&str] = &[
    "malformed_tool_call",
    "unknown_tool_call",
    "wrong_tool_arguments",
];

/// Parameters of those that only an answer on the wire has.
pub(crate) const ON_THE_WIRE: &[&str] = &[
    "response_headers",
    "retry_after",
    "jitter_ms",
    "distribution",
];

/// The fields of an attack that other rules do not have.
const OF_EVERY_ATTACK: &[&str] = &["type", "enabled", "trigger_probability"];

/// The fields of a rule that are no parameter of a mode: who it is, its match and its trigger.
const OF_EVERY_MODE: &[&str] = &[
    "id",
    "mode",
    "match_url",
    "tool",
    "methods",
    "headers",
    "body",
    "match_body",
    "json",
    "dialect",
    "model",
    "stream",
    "status",
    "probability",
    "after_calls",
    "every",
    "limit",
    "calls",
    "window",
    "ramp",
    "armed_by",
];

/// Whether only attacks have that field.
pub(crate) fn is_of_attacks(field: &str) -> bool {
    OF_EVERY_ATTACK.contains(&field)
}

/// Whether `tool` names calls in a model's answer.
pub(crate) fn is_of_calls(mode: &Mode) -> bool {
    mode.family == Family::Llm && OF_CALLS.contains(&mode.name)
}

/// The mode of that name in a family.
pub(crate) fn find(family: Family, name: &str) -> Option<&'static Mode> {
    of_family(family).find(|mode| mode.name == name)
}

/// The modes of a family, in the order of the reference.
pub(crate) fn of_family(family: Family) -> impl Iterator<Item = &'static Mode> + Clone {
    MODES.iter().filter(move |mode| mode.family == family)
}

/// The families that have a mode of that name.
pub(crate) fn families_of(name: &str) -> Vec<Family> {
    MODES
        .iter()
        .filter(|mode| mode.name == name)
        .map(|mode| mode.family)
        .collect()
}

impl Mode {
    /// Whether a rule of this mode may have that field.
    pub(crate) fn takes(&self, field: &str) -> bool {
        OF_EVERY_MODE.contains(&field)
            || self.parameters.contains(&field)
            || (self.family == Family::Context && OF_EVERY_ATTACK.contains(&field))
    }

    /// The modes that use a parameter: those of the family if there are any, else of all.
    pub(crate) fn users_of(family: Family, parameter: &str) -> Vec<&'static str> {
        let uses = |mode: &&Mode| mode.parameters.contains(&parameter);
        let mut names: Vec<_> = of_family(family)
            .filter(uses)
            .map(|mode| mode.name)
            .collect();
        if names.is_empty() {
            names = MODES.iter().filter(uses).map(|mode| mode.name).collect();
            names.dedup();
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::super::raw::RawRule;
    use super::*;

    #[test]
    fn every_parameter_is_a_field_of_a_rule_and_the_reverse() {
        let schema = serde_json::to_value(schemars::schema_for!(RawRule)).unwrap();
        let fields: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        let used: Vec<_> = MODES.iter().flat_map(|mode| mode.parameters).collect();
        let of_every = || OF_EVERY_MODE.iter().chain(OF_EVERY_ATTACK);
        for parameter in used.iter().copied().chain(of_every()) {
            assert!(
                fields.iter().any(|field| field == parameter),
                "{parameter} is no field"
            );
        }
        for field in fields {
            assert!(
                of_every().any(|of_every| of_every == field) || used.contains(&&field.as_str()),
                "no mode uses {field}"
            );
        }
    }
}
