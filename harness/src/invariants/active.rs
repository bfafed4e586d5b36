//! The families of rules in force, by which `when` selects.

use std::sync::Arc;

use squall_journal::record::RuleRecord;
use squall_profiles::family::Family;
use squall_profiles::library::Library;
use squall_profiles::profile::Profile;
use squall_profiles::rule::Rule;
use squall_profiles::tools::ToolNames;

/// The families of rules in a scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "a set")]
pub struct Active {
    /// `network_faults`.
    pub network: bool,
    /// `tool_faults`.
    pub tool: bool,
    /// `tool_faults` that do more than delay, because a slow tool has not failed.
    pub tool_failures: bool,
    /// `llm_faults`.
    pub llm: bool,
    /// `context_attacks`.
    pub context: bool,
    /// Faults of the conversation.
    pub conversation: bool,
    /// `network_faults` that make connections fail.
    pub connections: bool,
    /// Connection faults that apply only to CONNECTs, which carry neither baggage nor a trace.
    pub handshakes: bool,
}

impl Active {
    /// The families in chaos. Extended profiles are not resolved here and count as all families.
    pub fn of(chaos: &Profile) -> Self {
        if chaos.extends.is_empty() {
            return Self::of_rules(&chaos.rules);
        }
        Self {
            connections: true,
            handshakes: true,
            ..Self::of_an_incident()
        }
    }

    /// The families in chaos. Extended profiles from the library are resolved.
    pub fn of_extended(chaos: &Profile, library: &Library, tools: &ToolNames) -> Self {
        // The name is removed, because a scenario may have the name of the profile that it extends.
        let mut nameless = chaos.clone();
        nameless.name = None;
        match library.rule_set_of(&nameless, tools) {
            Ok(all) => Self::of_rules(all.rules()),
            Err(_) => Self::of(chaos),
        }
    }

    /// All families, without a rule: a recorded incident may contain any failure.
    pub(crate) fn of_an_incident() -> Self {
        Self {
            network: true,
            tool: true,
            tool_failures: true,
            llm: true,
            context: true,
            ..Self::default()
        }
    }

    fn of_rules(rules: &[Arc<Rule>]) -> Self {
        let mut active = Self::default();
        for rule in rules {
            active.connections |= rule.fault_mode().is_of_the_connection;
            active.handshakes |= rule.fault_mode().is_of_the_handshake();
            active.is_hit(rule.family().as_str(), rule.mode());
        }
        active
    }

    /// The families of applied rules.
    pub(crate) fn applied<'r>(rules: impl Iterator<Item = &'r RuleRecord>) -> Self {
        let mut active = Self::default();
        for rule in rules {
            active.is_hit(&rule.family, &rule.mode);
        }
        active
    }

    fn is_hit(&mut self, family: &str, mode: &str) {
        self.network |= family == Family::Network.as_str();
        self.tool |= family == Family::Tool.as_str();
        self.tool_failures |= family == Family::Tool.as_str() && mode != "slow";
        self.llm |= family == Family::Llm.as_str();
        self.context |= family == Family::Context.as_str();
    }

    /// Whether there are any rules.
    pub fn any(self) -> bool {
        self.network || self.tool || self.llm || self.context || self.conversation
    }
}
