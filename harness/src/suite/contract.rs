//! `contract:`: invariants × scenarios.

use std::collections::BTreeSet;
use std::sync::Arc;

use squall_documents::{Fields, Limited, NodeKind, Position, ValueReader};
use squall_profiles::profile::Profile;

use super::chaos::{self, Context};
use crate::agents::ConversationFault;
use crate::invariants::{self, Active, Invariant};
use squall_documents::named;

/// Invariants and the scenarios in which they are judged.
#[derive(Debug)]
pub struct Contract {
    /// Its name.
    pub name: String,
    /// The purpose of the contract.
    pub description: Option<String>,
    /// Which invocations share a prompt.
    pub isolation: Isolation,
    /// The invariants, at least one; ids are unique.
    pub invariants: Vec<Invariant>,
    /// The scenarios; names are unique. Empty only in a standalone contract.
    pub scenarios: Vec<Scenario>,
}

named! {
    /// The number of invocations for a prompt.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Isolation {
        /// One for each scenario, judged by every invariant. The default.
        #[default]
        Scenario = "scenario",
        /// One for each cell of invariant and scenario.
        Cell = "cell",
    }
}

/// One column of a contract's matrix.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The chaos; a clean scenario has no rules.
    pub chaos: Arc<Profile>,
    /// The families of its rules, including those of extended profiles. An unknown extended profile counts as all
    /// families.
    pub active: Active,
    /// Faults of the conversations in it.
    pub conversation_faults: Vec<ConversationFault>,
    /// Its position in the suite.
    pub position: Position,
    /// JSON pointer to it.
    pub pointer: String,
}

/// The contract of a suite.
#[derive(Debug)]
pub enum ContractPart {
    /// Written in the suite.
    Written(Box<Contract>),
    /// The name of a stored contract.
    Named(String),
}

impl ContractPart {
    /// Its invariants; none if only its name is known.
    pub fn invariants(&self) -> &[Invariant] {
        match self {
            Self::Written(contract) => &contract.invariants,
            Self::Named(_) => &[],
        }
    }
}

/// `outside` are the scenarios at the suite's root, for a contract without its own.
pub(super) fn read(
    value: &mut ValueReader<'_, '_>,
    context: Context<'_>,
    outside: Option<Vec<Scenario>>,
) -> Option<ContractPart> {
    let what = "a contract, or the name of one";
    written_or_named(value, "Contract", what, |fields| {
        of_suite(fields, context, outside)
    })
}

/// The contract of a replay session. Its scenarios have no effect.
pub(super) fn of_session(
    value: &mut ValueReader<'_, '_>,
    context: Context<'_>,
) -> Option<ContractPart> {
    let what = "a contract, or the name or file of one";
    written_or_named(value, "SessionContract", what, |fields| {
        alone(fields, context, "contract")
    })
}

fn written_or_named<'d>(
    value: &mut ValueReader<'_, 'd>,
    schema: &'static str,
    what: &str,
    read: impl FnOnce(&mut Fields<'_, 'd>) -> Option<Contract>,
) -> Option<ContractPart> {
    value
        .either()
        .when(NodeKind::Scalar, |value| {
            Some(ContractPart::Named(value.words()?.value))
        })
        .when(NodeKind::Map, |value| {
            let contract = value.named(schema, |value| value.fields(what, read))?;
            Some(ContractPart::Written(Box::new(contract)))
        })
        .or(what)
}

fn of_suite(
    fields: &mut Fields<'_, '_>,
    context: Context<'_>,
    outside: Option<Vec<Scenario>>,
) -> Option<Contract> {
    let has_outside = outside.is_some();
    let contract = contract(fields, context, None, outside);
    fields.require("name", "what reports call the contract");
    if !fields.has("chaos_matrix") {
        if !has_outside {
            let what = "the scenarios, a list: `- name: clean` is one without chaos";
            fields.missing("chaos_matrix", what);
        }
    } else if has_outside {
        let message = "the contract has a `chaos_matrix` of its own; the one beside it is not \
                       looked at: remove one";
        fields.error("chaos_matrix", message);
    }
    contract
}

/// Reads a standalone contract. It may omit its name, which the caller then provides, and its scenarios, which a
/// suite then provides.
pub(super) fn alone(
    fields: &mut Fields<'_, '_>,
    context: Context<'_>,
    name: &str,
) -> Option<Contract> {
    contract(fields, context, Some(name), Some(Vec::new()))
}

/// Reads a contract; `name` and `outside` stand for what it does not have.
fn contract(
    fields: &mut Fields<'_, '_>,
    context: Context<'_>,
    name: Option<&str>,
    outside: Option<Vec<Scenario>>,
) -> Option<Contract> {
    let own = fields.name("name", "What reports call it.");
    let description = fields.text("description", "What it is for.");
    let about = "How often a prompt is sent: once in a scenario (default), or once for each cell.";
    let isolation = fields.word("isolation", about, "isolation", Isolation::NAMES);
    let about = "What must hold; each has an `id`.";
    let invariants = invariants::read(fields, about, true);
    let scenarios = fields.field("chaos_matrix", "The scenarios.", |value| {
        scenarios(value, context)
    });
    fields.require("invariants", "what must hold, a list");
    Some(Contract {
        name: own.map(|own| own.value).or(name.map(str::to_owned))?,
        description: description.map(|text| text.value),
        isolation: isolation.unwrap_or_default(),
        invariants: invariants?,
        scenarios: scenarios.or(outside)?,
    })
}

/// The columns of the matrix.
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
                "there is already a scenario `{}`; give each a different name",
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
        let about = "Faults of the conversation with the agent.";
        let conversation_faults = fields.field("conversation_faults", about, |value| {
            let empty = "the list is empty; leave `conversation_faults` out";
            value.some("a list of faults, like `- mode: reset`", empty, |value| {
                value.named("ConversationFault", |value| {
                    value.fields("a fault, like `mode: reset`", ConversationFault::read)
                })
            })
        });
        let conversation_faults: Vec<ConversationFault> = conversation_faults.unwrap_or_default();
        let mut later = conversation_faults.iter().enumerate();
        if let Some((_, twice)) =
            later.find(|(at, fault)| conversation_faults[..*at].contains(fault))
        {
            let message = format!("`{}` is there twice; leave one out", twice.line());
            fields.error("conversation_faults", message);
        }
        let name = name?;
        Some(Scenario {
            name,
            active: Active {
                conversation: !conversation_faults.is_empty(),
                ..Active::of_extended(&chaos, context.library, context.tools)
            },
            chaos,
            conversation_faults,
            position,
            pointer: fields.reader.pointer().to_owned(),
        })
    })
}
