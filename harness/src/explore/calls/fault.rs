//! The faults of each kind of calls.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use squall_documents::DocumentError;
use squall_profiles::family::Family;
use squall_profiles::profile::{self, Profile};

use crate::run::{ExploredCall, PointFault};

/// What decides which faults a call has.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct CallTraits {
    pub(super) is_model: bool,
    /// Whether it calls a tool.
    pub(super) is_tool: bool,
    pub(super) is_mcp: bool,
    /// Whether it requests an MCP server's tools.
    pub(super) is_list: bool,
    pub(super) is_stream: bool,
    /// Whether the model calls a tool in its response.
    pub(super) calls_tools: bool,
    /// Whether an earlier call matches the same conditions.
    pub(super) is_repeated: bool,
}

/// A fault that exploration injects.
struct CallFault {
    family: Family,
    mode: &'static str,
    /// Its parameters, as JSON; others have their defaults.
    parameters: &'static str,
    /// Whether a call with these traits has it.
    applies: fn(&CallTraits) -> bool,
}

const ANY: fn(&CallTraits) -> bool = |_| true;
const NO_MODEL: fn(&CallTraits) -> bool = |call| !call.is_model;
const TOOL: fn(&CallTraits) -> bool = |call| call.is_tool;
/// The fault returns an earlier response of the same call.
const REPEATED: fn(&CallTraits) -> bool = |call| call.is_tool && call.is_repeated;
const MCP_TOOL: fn(&CallTraits) -> bool = |call| call.is_tool && call.is_mcp;
const LIST: fn(&CallTraits) -> bool = |call| call.is_list;
const MODEL: fn(&CallTraits) -> bool = |call| call.is_model;
const STREAM: fn(&CallTraits) -> bool = |call| call.is_stream;
const TOOL_CALL: fn(&CallTraits) -> bool = |call| call.calls_tools;

/// In the order in which they are tried: errors first, then wrong content.
#[rustfmt::skip]
const FAULTS: &[CallFault] = &[
    fault(Family::Tool, "error", "{}", NO_MODEL),
    fault(Family::Llm, "server_error", "{}", MODEL),
    fault(Family::Network, "reset_peer", "{}", ANY),
    fault(Family::Tool, "timeout", r#"{"delay_ms": 1000}"#, TOOL),
    fault(Family::Llm, "timeout", r#"{"delay_ms": 1000}"#, MODEL),
    fault(Family::Llm, "rate_limit", "{}", MODEL),
    fault(Family::Tool, "empty", "{}", TOOL),
    fault(Family::Llm, "empty", "{}", MODEL),
    fault(Family::Tool, "malformed", "{}", TOOL),
    fault(Family::Tool, "html_error", "{}", TOOL),
    fault(Family::Tool, "truncated", "{}", TOOL),
    fault(Family::Tool, "schema_drift", "{}", TOOL),
    fault(Family::Tool, "commit_then_fail", "{}", TOOL),
    fault(Family::Tool, "silent_noop", "{}", TOOL),
    fault(Family::Tool, "malicious_response", "{}", TOOL),
    fault(Family::Tool, "redirect_loop", "{}", TOOL),
    fault(Family::Tool, "stale", "{}", REPEATED),
    fault(Family::Tool, "swapped", "{}", REPEATED),
    fault(Family::Tool, "session_expired", "{}", MCP_TOOL),
    fault(Family::Tool, "wrong_id", "{}", MCP_TOOL),
    fault(Family::Tool, "list_drift", "{}", LIST),
    fault(Family::Llm, "malformed_tool_call", "{}", TOOL_CALL),
    fault(Family::Llm, "unknown_tool_call", "{}", TOOL_CALL),
    fault(Family::Llm, "wrong_tool_arguments", "{}", TOOL_CALL),
    fault(Family::Llm, "truncated_response", "{}", MODEL),
    fault(Family::Llm, "garbage", "{}", MODEL),
    fault(Family::Llm, "response_drift", r#"{"drift_type": "format_change"}"#, MODEL),
    fault(Family::Llm, "refusal", "{}", MODEL),
    fault(Family::Llm, "content_filter", "{}", MODEL),
    fault(Family::Llm, "overloaded", "{}", MODEL),
    fault(Family::Llm, "quota_exhausted", "{}", MODEL),
    fault(Family::Llm, "context_length_exceeded", "{}", MODEL),
    fault(Family::Llm, "auth_error", "{}", MODEL),
    fault(Family::Llm, "model_not_found", "{}", MODEL),
    fault(Family::Llm, "stream_cut", "{}", STREAM),
    fault(Family::Llm, "stream_error", "{}", STREAM),
    fault(Family::Llm, "duplicate_chunk", "{}", STREAM),
    fault(Family::Llm, "missing_terminator", "{}", STREAM),
    fault(Family::Llm, "json_for_stream", "{}", STREAM),
    fault(Family::Network, "limit_data", r#"{"bytes": 1}"#, ANY),
];

/// The modes that it does not inject, and why.
#[cfg(test)]
pub(super) const LEFT_OUT: &[(&str, &[(Family, &str)])] = &[
    (
        "a delay breaks an agent only beyond the agent's own time-out, which is unknown; `timeout` ends instead",
        &[
            (Family::Network, "latency"),
            (Family::Network, "bandwidth"),
            (Family::Network, "slicer"),
            (Family::Network, "slow_close"),
            (Family::Network, "timeout"),
            (Family::Tool, "slow"),
            (Family::Tool, "endless_progress"),
            (Family::Llm, "slow_stream"),
            (Family::Llm, "stream_stall"),
        ],
    ),
    (
        "it is decided for a connection or a WebSocket, before the call is known",
        &[
            (Family::Network, "refuse"),
            (Family::Network, "dns_failure"),
            (Family::Network, "tls_failure"),
            (Family::Network, "half_open"),
            (Family::Network, "websocket_close"),
            (Family::Llm, "connection_limit"),
        ],
    ),
    (
        "most requests have no previous response, and the fault has no effect on them",
        &[(Family::Llm, "previous_response_not_found")],
    ),
    (
        "it attacks what the model reads, not one call; the payload library and `mutations` do that",
        &[
            (Family::Context, "indirect_injection"),
            (Family::Context, "memory_poisoning"),
            (Family::Context, "overflow"),
            (Family::Context, "conflicting_context"),
            (Family::Context, "injection_via_context"),
        ],
    ),
];

const fn fault(
    family: Family,
    mode: &'static str,
    parameters: &'static str,
    applies: fn(&CallTraits) -> bool,
) -> CallFault {
    CallFault {
        family,
        mode,
        parameters,
        applies,
    }
}

/// The modes that a call with these conditions has; none if no rule can have the conditions.
pub(super) fn of(conditions: &Map<String, Value>, traits: &CallTraits) -> Vec<String> {
    let faults = FAULTS.iter().filter(|fault| (fault.applies)(traits));
    let readable = faults.filter(|fault| {
        let rules = [(fault.family, fault.rule("x", conditions))];
        document(&rules).is_ok()
    });
    readable.map(|fault| fault.mode.to_owned()).collect()
}

/// The place of a mode in the order in which faults are tried.
pub(super) fn rank(mode: &str) -> usize {
    let place = FAULTS.iter().position(|fault| fault.mode == mode);
    place.unwrap_or(FAULTS.len())
}

/// Rules, each with the number of one of the calls that it matches.
type Firings = Vec<(String, u64)>;

/// A profile whose rules inject these faults, and its firings: the rule of each fault, and the number of its call
/// among those that the rule matches.
pub(crate) fn profile(
    calls: &[ExploredCall],
    faults: &[PointFault],
) -> Result<(Arc<Profile>, Firings), Vec<DocumentError>> {
    let (mut rules, mut firings) = (Vec::new(), Vec::new());
    for (number, one) in faults.iter().enumerate() {
        let (id, call) = (format!("fault-{}", number + 1), &calls[one.call]);
        let is_model = call.conditions.contains_key("dialect");
        let families = if is_model { Family::Llm } else { Family::Tool };
        let mut known = FAULTS.iter();
        let known = known.find(|fault| {
            fault.mode == one.fault && [families, Family::Network].contains(&fault.family)
        });
        if let Some(fault) = known {
            rules.push((fault.family, fault.rule(&id, &call.conditions)));
            firings.push((id, call.ordinal));
        }
    }
    Ok((Arc::new(document(&rules)?), firings))
}

impl CallFault {
    fn rule(&self, id: &str, conditions: &Map<String, Value>) -> Value {
        let mut rule = conditions.clone();
        let parameters: Map<String, Value> =
            serde_json::from_str(self.parameters).unwrap_or_default();
        rule.extend(parameters);
        rule.insert("id".to_owned(), id.into());
        rule.insert("mode".to_owned(), self.mode.into());
        rule.into()
    }
}

fn document(rules: &[(Family, Value)]) -> Result<Profile, Vec<DocumentError>> {
    let mut families: Map<String, Value> = Map::new();
    for (family, rule) in rules {
        let of_family = families.entry(family.as_str()).or_insert_with(|| json!([]));
        of_family
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.push(rule.clone()));
    }
    profile::parse("explore", &json!({ "chaos": families }).to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use squall_profiles::faults::modes;

    use super::*;

    #[test]
    fn every_mode_is_injected_or_left_out_with_a_reason() {
        let injected = FAULTS.iter().map(|fault| (fault.family, fault.mode));
        let left_out = LEFT_OUT.iter().flat_map(|(_, modes)| modes.iter().copied());
        let listed: Vec<_> = injected.chain(left_out).collect();
        let unique: BTreeSet<_> = listed.iter().copied().collect();
        let all = Family::ALL.into_iter().flat_map(|family| {
            let modes = modes(family).iter();
            modes.map(move |mode| (family, mode.name))
        });
        assert_eq!(unique, all.collect());
        assert_eq!(unique.len(), listed.len());
    }

    #[test]
    fn every_fault_is_a_valid_rule() {
        let tool = json!({ "tool": "search" });
        let url = json!({ "match_url": ["http://h/x", "http://h/x?*"], "methods": ["GET"] });
        let model = json!({ "dialect": "openai-chat", "model": "gpt-4o" });
        for fault in FAULTS {
            for conditions in [&tool, &url, &model] {
                let is_model = conditions.get("dialect").is_some();
                if (fault.family == Family::Llm) != is_model && fault.family != Family::Network {
                    continue;
                }
                let conditions = conditions.as_object().expect("a map");
                let read = document(&[(fault.family, fault.rule("x", conditions))]);
                assert!(read.is_ok(), "{} {conditions:?}: {read:?}", fault.mode);
            }
        }
    }

    #[test]
    fn a_name_that_is_no_condition_has_no_faults() {
        let traits = CallTraits {
            is_tool: true,
            ..CallTraits::default()
        };
        for (tool, has_faults) in [("search", true), ("${HOME}", false)] {
            let conditions = json!({ "tool": tool });
            let faults = of(conditions.as_object().expect("a map"), &traits);
            assert_eq!(!faults.is_empty(), has_faults, "{tool}");
        }
    }
}
