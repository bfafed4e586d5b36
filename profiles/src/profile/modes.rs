//! Reads the mode of a rule, and checks which other fields it accepts.

use serde_json::json;
use squall_documents::{Fields, allowed, words};

use crate::family::Family;
use crate::fault::FaultMode;
use crate::faults;

/// The parameters of flakestorm's tool faults, and its modes. flakestorm accepts every parameter
/// with every mode.
const TOOLS_OF_FLAKESTORM: (&[&str], &[&str]) = (
    &["delay_ms", "error_code", "message", "payload"],
    &[
        "timeout",
        "slow",
        "error",
        "malformed",
        "malicious_response",
    ],
);

/// The parameters and modes of flakestorm's model faults.
const MODELS_OF_FLAKESTORM: (&[&str], &[&str]) = (
    &[
        "max_tokens",
        "delay_ms",
        "drift_type",
        "severity",
        "direction",
        "factor",
    ],
    &[
        "timeout",
        "truncated_response",
        "rate_limit",
        "empty",
        "garbage",
        "response_drift",
    ],
);

/// The parameters and modes of flakestorm's context attacks.
const ATTACKS_OF_FLAKESTORM: (&[&str], &[&str]) = (
    &[
        "inject_tokens",
        "payloads",
        "inject_at",
        "payload",
        "strategy",
    ],
    &[
        "memory_poisoning",
        "indirect_injection",
        "overflow",
        "conflicting_context",
        "injection_via_context",
    ],
);

/// The parameters that flakestorm accepts with `mode`; empty for a mode that flakestorm does not
/// have.
pub(super) fn that_stand_beside(mode: &FaultMode) -> &'static [&'static str] {
    let (fields, modes) = match mode.family {
        Family::Tool => TOOLS_OF_FLAKESTORM,
        Family::Llm => MODELS_OF_FLAKESTORM,
        Family::Context => ATTACKS_OF_FLAKESTORM,
        Family::Network => return &[],
    };
    if modes.contains(&mode.name) {
        fields
    } else {
        &[]
    }
}

/// Parameters that only some forms of the mode use; the other forms accept and ignore them.
pub(super) fn of_some_forms(mode: &FaultMode) -> &'static [&'static str] {
    match (mode.family, mode.name) {
        (Family::Llm, "response_drift") => &["direction", "factor"],
        _ => &[],
    }
}

/// The error for a field that the mode does not use; `None` if flakestorm accepts it.
pub(super) fn foreign(mode: &FaultMode, field: &str) -> Option<String> {
    let instead = match field {
        _ if that_stand_beside(mode).contains(&field) => return None,
        "mode" => return Some("attacks have a `type`; leave `mode` out".to_owned()),
        "type" => "other rules have a `mode`",
        "trigger_probability" => "other rules have a `probability`",
        "enabled" => "take the rule out to switch it off",
        "websocket" => {
            let why = "`websocket` belongs to `network_faults`; faults of other families apply to each model call on \
                       a WebSocket without it";
            return Some(why.to_owned());
        }
        _ => {
            let users = users_of(mode, field);
            let plural = if users.len() > 1 { "s" } else { "" };
            let (users, name) = (words(users), mode.name);
            return Some(format!(
                "`{field}` belongs to mode{plural} {users}; mode `{name}` does not use it"
            ));
        }
    };
    Some(format!("`{field}` belongs to `context_attacks`; {instead}"))
}

fn names(family: Family) -> impl Iterator<Item = &'static str> + Clone {
    faults::modes(family).iter().map(|mode| mode.name)
}

/// Reads the mode of a rule: its `mode`, the `type` of an attack, or `key`, the attack's key in a
/// map.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    family: Family,
    key: Option<&'static FaultMode>,
) -> Option<&'static FaultMode> {
    let (word, here) = (family.word(), family.as_str());
    let about = "How it fails; its other parameters depend on it.";
    let mode = fields.field(word, about, |value| {
        let schema = || json!({ "enum": names(family).collect::<Vec<_>>() });
        value.with_schema(schema, |value| {
            value.parsed(|name| faults::mode(family, name).ok_or_else(|| unknown(family, name)))
        })
    });
    if fields.reader.is_describing() {
        // An attack in a map has its type as the key.
        if family != Family::Context {
            fields.require(word, "");
        }
    } else if key.is_some() {
        if fields.has(word) {
            let message = format!("the key names the attack already; leave `{word}` out");
            fields.error(word, message);
        }
        return key;
    } else if !fields.has(word) {
        let names = words(names(family));
        let message = format!("a rule of `{here}` needs `{word}`, one of {names}");
        fields.reader.error(fields.position, message);
    }
    mode
}

fn unknown(family: Family, name: &str) -> String {
    let mut others = Family::ALL.into_iter();
    match others.find(|other| faults::mode(*other, name).is_some()) {
        Some(other) => format!(
            "`{name}` is a mode of `{}`, not of `{}`",
            other.as_str(),
            family.as_str()
        ),
        None => format!(
            "unknown fault mode `{name}`{}",
            allowed(name, names(family))
        ),
    }
}

/// The other modes that use a parameter: those of the family if any, else of all families.
fn users_of(mode: &FaultMode, parameter: &str) -> Vec<&'static str> {
    let uses =
        |other: &&FaultMode| other.name != mode.name && other.parameters().contains(&parameter);
    let of_family = |family| faults::modes(family).iter().filter(uses);
    let mut names: Vec<_> = of_family(mode.family).map(|mode| mode.name).collect();
    if names.is_empty() {
        let all = Family::ALL.into_iter().flat_map(of_family);
        names = all.map(|mode| mode.name).collect();
        names.dedup();
    }
    names
}
