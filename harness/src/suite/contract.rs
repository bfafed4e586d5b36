//! `contract:`: invariants × scenarios.

use std::collections::BTreeSet;
use std::sync::Arc;

use squall_documents::{Fields, Limited, NodeKind, Position, ValueReader};
use squall_journal::record::RuleRecord;
use squall_profiles::family::Family;
use squall_profiles::library::Library;
use squall_profiles::profile::Profile;
use squall_profiles::rule::Rule;
use squall_profiles::tools::ToolNames;

use super::chaos::{self, Context};
use crate::invariants::{self, Invariant};

/// What must hold, and under which chaos.
#[derive(Debug)]
pub struct Contract {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// How often prompts are sent.
    pub isolation: Isolation,
    /// What must hold, at least one; ids are unique.
    pub invariants: Vec<Invariant>,
    /// Under which chaos; names are unique. None only where the contract stands by itself.
    pub scenarios: Vec<Scenario>,
}

/// How often a prompt is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Once per scenario, and judged by every invariant. The default.
    #[default]
    Scenario,
    /// Once per crossing of invariant and scenario.
    Cell,
}

/// One column of a contract's matrix.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The chaos; without rules the scenario is a clean one.
    pub chaos: Arc<Profile>,
    /// Which families of rules it holds, those of what it extends included. Of what is extended and not known
    /// here any may be in it.
    pub active: Active,
    /// Where it stands.
    pub position: Position,
    /// JSON pointer to it.
    pub pointer: String,
}

/// Which families of rules a scenario holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "a set")]
pub struct Active {
    /// `network_faults`.
    pub network: bool,
    /// `tool_faults`.
    pub tool: bool,
    /// Of these some that do more than delay: a slow tool has not failed.
    pub tool_failures: bool,
    /// `llm_faults`.
    pub llm: bool,
    /// `context_attacks`.
    pub context: bool,
    /// Of `network_faults` some that keep connections from being opened.
    pub connections: bool,
    /// Of these some that only a CONNECT meets, which carries neither baggage nor a trace.
    pub handshakes: bool,
}

impl Active {
    /// Of what chaos holds. What it extends counts as any family: nobody knows here what is in it.
    pub fn of(chaos: &Profile) -> Self {
        let mut active = Self::default();
        if !chaos.extends.is_empty() {
            return Self {
                network: true,
                tool: true,
                tool_failures: true,
                llm: true,
                context: true,
                connections: true,
                handshakes: true,
            };
        }
        for rule in &chaos.rules {
            active.holds(rule);
        }
        active
    }

    /// The same, where what is extended may be known.
    pub fn of_extended(chaos: &Profile, library: &Library, tools: &ToolNames) -> Self {
        // Without its name: a scenario may be called as the profile that it extends.
        let mut nameless = chaos.clone();
        nameless.name = None;
        let Ok(all) = library.rule_set_of(&nameless, tools) else {
            return Self::of(chaos);
        };
        let mut active = Self::default();
        for rule in all.rules() {
            active.holds(rule);
        }
        active
    }

    fn holds(&mut self, rule: &Rule) {
        self.connections |= rule.fault_mode().is_of_the_connection;
        self.handshakes |= rule.fault_mode().is_of_the_handshake();
        self.is_hit(rule.family().as_str(), rule.mode());
    }

    /// Of rules that were applied.
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

    /// Whether there is any chaos.
    pub fn any(self) -> bool {
        self.network || self.tool || self.llm || self.context
    }
}

pub(super) const ISOLATIONS: [(&str, Isolation); 2] =
    [("scenario", Isolation::Scenario), ("cell", Isolation::Cell)];

/// What a suite says of its contract.
#[derive(Debug)]
pub enum ContractPart {
    /// It stands in the suite.
    Written(Box<Contract>),
    /// It is one that was put by itself.
    Named(String),
}

/// `outside`: scenarios that stand at the suite's root, for a contract that has none.
pub(super) fn read(
    value: &mut ValueReader<'_, '_>,
    context: Context<'_>,
    outside: Option<Vec<Scenario>>,
) -> Option<ContractPart> {
    value
        .either()
        .when(NodeKind::Scalar, |value| {
            Some(ContractPart::Named(value.words()?.value))
        })
        .when(NodeKind::Map, |value| {
            value.named("Contract", |value| {
                let what = "a contract, or the name of one";
                let contract = value.fields(what, |fields| written(fields, context, outside))?;
                Some(ContractPart::Written(Box::new(contract)))
            })
        })
        .or("a contract, or the name of one")
}

fn written(
    fields: &mut Fields<'_, '_>,
    context: Context<'_>,
    outside: Option<Vec<Scenario>>,
) -> Option<Contract> {
    let parts = parts(fields, context);
    fields.require("name", "what reports call the contract");
    if fields.has("chaos_matrix") {
        if outside.is_some() {
            let message = "the contract has a `chaos_matrix` of its own; the one beside it is not \
                           looked at: remove one";
            fields.error("chaos_matrix", message);
        }
    } else if outside.is_none() {
        fields.missing(
            "chaos_matrix",
            "the scenarios, a list: `- name: clean` is one without chaos",
        );
    }
    Some(Contract {
        name: parts.name?,
        description: parts.description,
        isolation: parts.isolation,
        invariants: parts.invariants?,
        scenarios: parts.scenarios.or(outside)?,
    })
}

/// A contract that stands by itself is called as whoever keeps it calls it, and may leave the scenarios
/// to the suites that name it.
pub(super) fn alone(
    fields: &mut Fields<'_, '_>,
    context: Context<'_>,
    name: &str,
) -> Option<Contract> {
    let parts = parts(fields, context);
    Some(Contract {
        name: parts.name.unwrap_or_else(|| name.to_owned()),
        description: parts.description,
        isolation: parts.isolation,
        invariants: parts.invariants?,
        scenarios: parts.scenarios.unwrap_or_default(),
    })
}

/// What a contract may have.
struct Parts {
    name: Option<String>,
    description: Option<String>,
    isolation: Isolation,
    invariants: Option<Vec<Invariant>>,
    scenarios: Option<Vec<Scenario>>,
}

fn parts(fields: &mut Fields<'_, '_>, context: Context<'_>) -> Parts {
    let name = fields.name("name", "What reports call it.");
    let description = fields.text("description", "What it is for.");
    let about = "How often a prompt is sent: once in a scenario (default), or once for each cell.";
    let isolation = fields.word("isolation", about, "isolation", &ISOLATIONS);
    let about = "What must hold; each has an `id`.";
    let invariants = invariants::read(fields, about, true);
    let scenarios = fields.field("chaos_matrix", "The scenarios.", |value| {
        scenarios(value, context)
    });
    fields.require("invariants", "what must hold, a list");
    Parts {
        name: name.map(|name| name.value),
        description: description.map(|text| text.value),
        isolation: isolation.unwrap_or_default(),
        invariants,
        scenarios,
    }
}

/// The columns of a matrix.
pub(super) fn scenarios(
    value: &mut ValueReader<'_, '_>,
    context: Context<'_>,
) -> Option<Vec<Scenario>> {
    let mut names = BTreeSet::new();
    let empty = "the matrix is empty: nothing would be tried; write `- name: clean` for a \
                 scenario without chaos";
    value.some("a list of scenarios", empty, |value| {
        if let Err(over) = value.reader.limits.take(Limited::Rules, 1) {
            value.error(over.to_string());
            return None;
        }
        let scenario = value.named("Scenario", |value| scenario(value, context))?;
        if !names.insert(scenario.name.clone()) {
            let message = format!(
                "a scenario `{}` stands here already; cells are told apart by its name",
                scenario.name
            );
            let position = value.position();
            value
                .reader
                .below("name", |reader| reader.error(position, message));
        }
        Some(scenario)
    })
}

fn scenario(value: &mut ValueReader<'_, '_>, context: Context<'_>) -> Option<Scenario> {
    let position = value.position();
    value.fields("a scenario, like `- name: clean`", |fields| {
        fields.require("name", "what reports call the scenario");
        let name = fields
            .name("name", "What reports call it.")
            .map(|name| name.value);
        let called = name.as_deref().unwrap_or_default();
        let chaos = chaos::read_profile(fields, context, called, true);
        let name = name?;
        Some(Scenario {
            name,
            active: Active::of_extended(&chaos, context.library, context.tools),
            chaos,
            position,
            pointer: fields.reader.pointer().to_owned(),
        })
    })
}
