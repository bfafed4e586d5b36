//! The words for ways to fail, each with the parameters it takes: the rows that the families' files
//! make of their faults.

use super::raw::RawRule;
use super::reader::Reader;
use crate::fault::Fault;
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
    /// The parameters it takes, beside match and trigger.
    pub(crate) parameters: &'static [&'static str],
    /// Of these at least one has to be written, if there are any.
    pub(crate) needs: &'static [&'static str],
    /// What of an exchange it touches, where that does not hang on the rule.
    pub(crate) touches: Touches,
    /// Whether `tool` names calls in a model's answer.
    pub(crate) of_calls: bool,
    /// Whether it can change a tool's result where the model reads it (`at: model_input`).
    pub(crate) can_be_told: bool,
    /// Reads its parameters.
    pub(crate) read: Read,
}

type Read = fn(&RawRule, &mut Reader) -> Option<Fault>;

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

/// Whether flakestorm lets a field stand beside a mode of its own, of whichever mode the field is.
pub(crate) fn stands_beside_any(mode: &Mode, field: &str) -> bool {
    let (fields, modes) = match mode.family {
        Family::Tool => TOOLS_OF_FLAKESTORM,
        Family::Llm => MODELS_OF_FLAKESTORM,
        Family::Context => ATTACKS_OF_FLAKESTORM,
        Family::Network => return false,
    };
    modes.contains(&mode.name) && fields.contains(&field)
}

/// Whether a field that the mode takes is for some of its forms only, and may stand beside the others.
pub(crate) fn is_of_some_forms(mode: &Mode, field: &str) -> bool {
    let of_a_length = ["factor", "direction"];
    mode.family == Family::Llm && mode.name == "response_drift" && of_a_length.contains(&field)
}

/// Whether only attacks have that field.
pub(crate) fn is_of_attacks(field: &str) -> bool {
    OF_EVERY_ATTACK.contains(&field)
}

/// Every mode, by family.
fn all() -> impl Iterator<Item = &'static Mode> + Clone {
    let families = [
        NetworkFault::MODES,
        ToolFault::MODES,
        LlmFault::MODES,
        ContextAttack::MODES,
    ];
    families.into_iter().flatten()
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

/// The tool modes that can change a tool's result where the model reads it (`at: model_input`).
pub(crate) fn that_can_be_told() -> impl Iterator<Item = &'static str> + Clone {
    let modes = of_family(Family::Tool).filter(|mode| mode.can_be_told);
    modes.map(|mode| mode.name)
}

/// The families that have a mode of that name.
pub(crate) fn families_of(name: &str) -> Vec<Family> {
    all()
        .filter(|mode| mode.name == name)
        .map(|mode| mode.family)
        .collect()
}

impl Mode {
    /// The row of a fault.
    pub(crate) const fn of<F: FaultMode>(family: Family, read: Read) -> Self {
        Self {
            family,
            name: F::NAME,
            parameters: F::PARAMETERS,
            needs: F::NEEDS,
            touches: F::TOUCHES,
            of_calls: F::OF_CALLS,
            can_be_told: F::TOLD.is_some(),
            read,
        }
    }

    /// Notes what a rule of this mode cannot do without and does not say.
    pub(crate) fn wants(&self, raw: &RawRule, reader: &mut Reader) {
        let is_said = |(field, _): &(&'static str, _)| self.needs.contains(field);
        if self.needs.is_empty() || raw.written().iter().any(is_said) {
            return;
        }
        let position = raw.mode.as_ref().map(|mode| mode.position);
        let needs = self.needs.iter().map(|field| format!("`{field}`"));
        let needs = needs.collect::<Vec<_>>().join(" or ");
        let message = format!("mode `{}` needs {needs}", self.name);
        reader.error("mode", position.unwrap_or_default(), message);
    }

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
            names = all().filter(uses).map(|mode| mode.name).collect();
            names.dedup();
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_a_field_of_a_rule_and_the_reverse() {
        let schema = serde_json::to_value(schemars::schema_for!(RawRule)).unwrap();
        let fields: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        let used: Vec<_> = all().flat_map(|mode| mode.parameters).collect();
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
