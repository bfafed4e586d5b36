//! The words for ways to fail: the rows that the families' files make of their faults.

use serde_json::json;
use squall_documents::{Fields, allowed, did_you_mean, words};

use super::rules::is_field;
use crate::fault::{Fault, Tools};
use crate::faults::context::ContextAttack;
use crate::faults::llm::LlmFault;
use crate::faults::mode::FaultMode;
use crate::faults::network::NetworkFault;
use crate::faults::tool::ToolFault;
use crate::matching::Touches;
use crate::rule::Family;

/// One mode of a family.
#[derive(Debug)]
pub(crate) struct Mode {
    /// The family it belongs to.
    pub(crate) family: Family,
    /// The word in files.
    pub(crate) name: &'static str,
    /// Of its parameters at least one of these has to be written, if there are any.
    pub(crate) needs: &'static [&'static str],
    /// What of an exchange it touches, where that does not hang on the rule.
    pub(crate) touches: Touches,
    /// Whether `body` is a parameter of it, and no condition.
    pub(crate) has_body: bool,
    /// Whether `tool` names calls in a model's answer.
    pub(crate) of_calls: bool,
    /// Whether it can change a tool's result where the model reads it (`at: model_input`).
    pub(crate) can_be_told: bool,
    /// Reads its parameters.
    pub(crate) read: Read,
}

type Read = fn(&mut Fields<'_, '_>, &Tools) -> Option<Fault>;

/// The parameters of flakestorm's tool faults, and its modes. There all of them may stand beside each.
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

/// The same of its model faults.
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

/// The same of its attacks.
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

/// Fields that flakestorm lets stand beside a mode of its own, of whichever mode they are.
pub(super) fn that_stand_beside(mode: &Mode) -> &'static [&'static str] {
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

/// Parameters of the mode that are for some of its forms only, and may stand beside the others.
pub(super) fn of_some_forms(mode: &Mode) -> &'static [&'static str] {
    match (mode.family, mode.name) {
        (Family::Llm, "response_drift") => &["direction", "factor"],
        _ => &[],
    }
}

/// The sentence for a field of other rules that the mode does not use; `None`: flakestorm lets it stand there.
pub(super) fn foreign(mode: &Mode, field: &str) -> Option<String> {
    let instead = match field {
        _ if that_stand_beside(mode).contains(&field) => return None,
        "mode" => {
            return Some("attacks are told apart by `type`; leave `mode` out".to_owned());
        }
        "type" => "other rules have a `mode`",
        "trigger_probability" => "other rules have a `probability`",
        "enabled" => "take the rule out to switch it off",
        _ => {
            let users = mode.users_of(field);
            let plural = if users.len() > 1 { "s" } else { "" };
            let (users, name) = (words(users), mode.name);
            return Some(format!(
                "`{field}` belongs to mode{plural} {users}; mode `{name}` does not use it"
            ));
        }
    };
    Some(format!("`{field}` belongs to `context_attacks`; {instead}"))
}

/// The mode of that name in a family.
pub(crate) fn find(family: Family, name: &str) -> Option<&'static Mode> {
    of_family(family).find(|mode| mode.name == name)
}

/// The modes of a family, in the order of the reference.
pub(crate) fn of_family(family: Family) -> impl Iterator<Item = &'static Mode> + Clone {
    let modes = match family {
        Family::Network => NetworkFault::MODES,
        Family::Tool => ToolFault::MODES,
        Family::Llm => LlmFault::MODES,
        Family::Context => ContextAttack::MODES,
    };
    modes.iter()
}

fn names(family: Family) -> impl Iterator<Item = &'static str> + Clone {
    of_family(family).map(|mode| mode.name)
}

/// Reads `mode`.
pub(super) fn read(fields: &mut Fields<'_, '_>, family: Family) -> Option<&'static Mode> {
    let here = family.as_str();
    let about = "How it fails; its other parameters depend on it.";
    let mode = fields.field("mode", about, |value| {
        let schema = || json!({ "enum": names(family).collect::<Vec<_>>() });
        value.with_schema(schema, |value| {
            value.parsed(|name| find(family, name).ok_or_else(|| unknown(family, name)))
        })
    });
    if fields.reader.is_describing() {
        fields.require("mode", "");
    } else if !fields.has("mode") && !is_misspelt(fields) {
        let message = format!(
            "a rule needs `mode`; allowed in `{here}` are {}",
            words(names(family))
        );
        fields.reader.error(fields.position, message);
    }
    mode
}

/// Whether a field that no rule has is a slip of `mode`.
fn is_misspelt(fields: &Fields<'_, '_>) -> bool {
    let mut others = fields.others().into_iter().map(|name| name.value.as_str());
    others.any(|name| !is_field(name) && !did_you_mean(name, ["mode"]).is_empty())
}

fn unknown(family: Family, name: &str) -> String {
    let mut others = Family::ALL.into_iter();
    let hint = match others.find(|other| find(*other, name).is_some()) {
        Some(other) => format!(", a mode of `{}`.", other.as_str()),
        None => did_you_mean(name, names(family)),
    };
    let (hint, lead) = if hint.is_empty() {
        (";", "allowed")
    } else {
        (&*hint, "Allowed")
    };
    let (here, can) = (family.as_str(), words(names(family)));
    format!("unknown fault mode `{name}`{hint} {lead} in `{here}` are {can}")
}

/// Reads which attack it is: the `type`, or the key in a map.
pub(super) fn read_attack(
    fields: &mut Fields<'_, '_>,
    key: Option<&'static Mode>,
) -> Option<&'static Mode> {
    let about = "Which attack it is; in a map the key says it.";
    let mode = fields.field("type", about, |value| {
        let schema = || json!({ "enum": names(Family::Context).collect::<Vec<_>>() });
        value.with_schema(schema, |value| {
            value.parsed(|name| find(Family::Context, name).ok_or_else(|| unknown_attack(name)))
        })
    });
    match key {
        _ if fields.reader.is_describing() => {}
        Some(mode) => {
            if fields.has("type") {
                let message = "the key names the attack already; leave `type` out";
                fields.error("type", message);
            }
            return Some(mode);
        }
        None if fields.has("type") => {}
        None if fields.has("mode") => {
            let mode = fields.glance("mode").unwrap_or_default();
            let message = format!("attacks are told apart by `type`: write `type: {mode}`");
            fields.error("mode", message);
        }
        None => {
            let message = format!(
                "an attack needs `type`, one of {}",
                words(names(Family::Context))
            );
            fields.reader.error(fields.position, message);
        }
    }
    mode
}

/// The sentence for an attack that there is not.
fn unknown_attack(name: &str) -> String {
    let rest = allowed(name, names(Family::Context));
    format!("unknown context attack `{name}`{rest}")
}

impl Mode {
    /// The row of a fault.
    pub(crate) const fn of<F: FaultMode>(family: Family, read: Read) -> Self {
        Self {
            family,
            name: F::NAME,
            needs: F::NEEDS,
            touches: F::TOUCHES,
            has_body: F::HAS_BODY,
            of_calls: F::OF_CALLS,
            can_be_told: F::TOLD.is_some(),
            read,
        }
    }

    /// Reports what a rule of this mode cannot do without and does not say.
    pub(crate) fn wants(&self, fields: &mut Fields<'_, '_>) {
        if fields.require_one_of(self.needs) || fields.reader.is_describing() {
            return;
        }
        let needs = self.needs.iter().map(|field| format!("`{field}`"));
        let needs = needs.collect::<Vec<_>>().join(" or ");
        fields.error("mode", format!("mode `{}` needs {needs}", self.name));
    }

    /// Whether a rule of this mode changes what the model is told of a tool's result (`at: model_input`).
    pub(crate) fn is_told(&self, fields: &Fields<'_, '_>) -> bool {
        self.can_be_told && fields.glance("at") == Some(MODEL_INPUT)
    }

    /// The parameters that it takes, beside match and trigger.
    pub(crate) fn parameters(&self) -> Vec<&'static str> {
        Fields::asked(|fields| {
            Fault::read(self, fields, &Tools::default());
        })
    }

    /// The other modes that use a parameter: those of the family if there are any, else of all.
    fn users_of(&self, parameter: &str) -> Vec<&'static str> {
        let uses = |mode: &&Mode| mode.name != self.name && mode.parameters().contains(&parameter);
        let mut names: Vec<_> = of_family(self.family)
            .filter(uses)
            .map(|mode| mode.name)
            .collect();
        if names.is_empty() {
            let all = Family::ALL.into_iter().flat_map(of_family);
            names = all.filter(uses).map(|mode| mode.name).collect();
            names.dedup();
        }
        names
    }
}

/// The value of `at` by which a tool's fault changes what the model is told.
pub(crate) const MODEL_INPUT: &str = "model_input";
