//! Faults: the definition of a mode, which all its rules share, and parameters that write into a
//! plan.

use std::fmt;

use serde_json::{Map, Value};
use squall_documents::Fields;

use crate::allowance::Allowance;
use crate::budget::Budget;
use crate::changes::{ResultChange, Tools};
use crate::dice::Dice;
use crate::facts::Kind;
use crate::family::Family;
use crate::matching::Touches;
use crate::plan::{Bypass, Plan, RequestEdit, VerdictIndex};

/// A fault with its parameters. It is pure: no clock, no socket, and no random numbers except from
/// the dice.
pub trait Fault: Send + Sync {
    /// Writes the fault into the plan of an exchange of this kind, on behalf of `verdict`.
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        kind: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass>;

    /// The change to a tool's result in a model's request (`at: model_input`), for modes that support it.
    fn result_change(
        &self,
        _plan: &mut Plan,
        _verdict: VerdictIndex,
        _dice: &mut Dice,
    ) -> Option<ResultChange> {
        None
    }

    /// The effective parameters, named as in files, for the journal.
    fn parameters(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Whether it draws in addition to the trigger. A canary is a draw.
    fn is_random(&self) -> bool {
        false
    }

    /// Whether it depends on the request's fingerprint.
    fn needs_fingerprint(&self) -> bool {
        self.is_random()
    }

    /// The requests allowed before it fires.
    fn allowance(&self) -> Option<Allowance> {
        None
    }

    /// The tokens or cost allowed before it fires.
    fn budget(&self) -> Option<Budget> {
        None
    }

    /// Whether its effect, or a token count that it reports, depends on a number of tokens.
    fn counts_tokens(&self) -> bool {
        false
    }

    /// Whether it decides the content or the end of a model's answer, so that no other fault can.
    fn decides_the_answer(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.parameters()).finish()
    }
}

impl dyn Fault {
    /// Whether it allows some calls before it fires.
    pub(crate) fn waits_for_use(&self) -> bool {
        self.allowance().is_some() || self.budget().is_some()
    }
}

/// A mode: an entry in the table of its family. Parsing, help, the schema and the advice in reports
/// use it.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "columns of a table")]
pub struct FaultMode {
    /// The family it belongs to.
    pub family: Family,
    /// The name in files.
    pub name: &'static str,
    /// Advice: how an agent handles it well.
    pub remedy: &'static str,
    /// Whether it is decided at a CONNECT, if there is one.
    pub is_of_the_connection: bool,
    /// Whether it does no more than delay.
    pub only_delays: bool,
    /// At least one of these parameters is required, unless the list is empty.
    pub(crate) needs: &'static [&'static str],
    /// The part of an exchange that it affects, unless the rule overrides it.
    pub(crate) touches: Touches,
    /// Whether `body` is its parameter rather than a condition.
    pub(crate) has_body: bool,
    /// Whether `tool` selects calls in a model's answer.
    pub(crate) of_calls: bool,
    /// Whether it supports `at: model_input`.
    pub(crate) in_model_input: bool,
    /// Reads its parameters; `tools` are those that the rule matches.
    pub(crate) read: fn(&mut Fields<'_, '_>, &Tools) -> Box<dyn Fault>,
}

/// The value of `at` with which a tool fault changes results in the model's input.
pub(crate) const MODEL_INPUT: &str = "model_input";

/// Parameters of tool faults that only apply to a response on the wire.
pub(crate) const ON_THE_WIRE: [&str; 4] = [
    "response_headers",
    "retry_after",
    "jitter_ms",
    "distribution",
];

/// Reports that MCP gets an error in another place than HTTP. It is derived, so it appears in the
/// journal only.
pub(crate) const IN_MCP: &str = "in_mcp";

/// The vocabularies for counting tokens.
pub(crate) const COUNTED_BY: &str =
    "o200k_base and cl100k_base; an estimate for other vocabularies";

impl FaultMode {
    /// A mode with default properties.
    pub(crate) const fn new(
        family: Family,
        name: &'static str,
        remedy: &'static str,
        read: fn(&mut Fields<'_, '_>, &Tools) -> Box<dyn Fault>,
    ) -> Self {
        Self {
            family,
            name,
            remedy,
            is_of_the_connection: false,
            only_delays: false,
            needs: &[],
            touches: Touches::Calls,
            has_body: false,
            of_calls: false,
            in_model_input: false,
            read,
        }
    }

    pub(crate) const fn of_the_connection(self) -> Self {
        Self {
            is_of_the_connection: true,
            ..self
        }
    }

    pub(crate) const fn delaying(self) -> Self {
        Self {
            only_delays: true,
            ..self
        }
    }

    pub(crate) const fn needing(self, needs: &'static [&'static str]) -> Self {
        Self { needs, ..self }
    }

    pub(crate) const fn touching(self, touches: Touches) -> Self {
        Self { touches, ..self }
    }

    pub(crate) const fn with_body(self) -> Self {
        Self {
            has_body: true,
            ..self
        }
    }

    pub(crate) const fn of_calls(self) -> Self {
        Self {
            of_calls: true,
            ..self
        }
    }

    pub(crate) const fn in_model_input(self) -> Self {
        Self {
            in_model_input: true,
            ..self
        }
    }

    /// Reads the parameters of a rule and reports invalid ones.
    pub(crate) fn read(&self, fields: &mut Fields<'_, '_>, tools: &Tools) -> Box<dyn Fault> {
        self.require(fields);
        let about = "`model_input` for tools that run inside the agent: what the model is told of their results \
                     changes.";
        let changes_results = self.in_model_input
            && fields
                .word("at", about, "place", &[(MODEL_INPUT, ())])
                .is_some();
        let fault = (self.read)(fields, tools);
        if changes_results {
            let tools = tools.clone();
            return Box::new(InModelInput { tools, fault });
        }
        fault
    }

    /// Reports required parameters that a rule of this mode lacks.
    fn require(&self, fields: &mut Fields<'_, '_>) {
        if fields.require_one_of(self.needs) || fields.reader.is_describing() {
            return;
        }
        let needs = self.needs.iter().map(|field| format!("`{field}`"));
        let needs = needs.collect::<Vec<_>>().join(" or ");
        fields.error("mode", format!("mode `{}` needs {needs}", self.name));
    }

    /// Whether a rule of this mode changes a tool's result in a model's request (`at: model_input`).
    pub(crate) fn changes_results(&self, fields: &Fields<'_, '_>) -> bool {
        self.in_model_input && fields.glance("at") == Some(MODEL_INPUT)
    }

    /// Its parameters, without match and trigger.
    pub(crate) fn parameters(&self) -> Vec<&'static str> {
        Fields::names_read(|fields| {
            self.read(fields, &Tools::default());
        })
    }

    /// Whether its only effect is to fail the TLS handshake of a CONNECT.
    pub fn is_of_the_handshake(&self) -> bool {
        self.name == "tls_failure"
    }

    /// The plan of a fault of this mode alone. It shows whether the fault acts before or after the
    /// upstream.
    pub(crate) fn alone(&self, fault: &dyn Fault) -> Plan {
        let mut plan = Plan::default();
        // The plan has no other rules, so the fault cannot be bypassed by one.
        let kinds = match self.family {
            Family::Context => &[Kind::Llm, Kind::Tool][..],
            Family::Network | Family::Tool | Family::Llm => &[Kind::Llm],
        };
        for kind in kinds {
            let _ = fault.apply(&mut plan, 0, *kind, &mut Dice::unrolled());
        }
        plan
    }
}

/// A tool fault that changes the tool's results in the model's input.
struct InModelInput {
    tools: Tools,
    fault: Box<dyn Fault>,
}

impl Fault for InModelInput {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass> {
        let Some(change) = self.fault.result_change(plan, verdict, dice) else {
            return Err("the fault is about the wire, not about what a model reads".into());
        };
        plan.edit_request(verdict, RequestEdit::Results(self.tools.clone(), change));
        Ok(())
    }

    fn parameters(&self) -> Map<String, Value> {
        let mut parameters = self.fault.parameters();
        for only_there in ON_THE_WIRE.iter().chain(&[IN_MCP]) {
            parameters.remove(*only_there);
        }
        parameters.insert("at".into(), MODEL_INPUT.into());
        parameters
    }

    fn is_random(&self) -> bool {
        self.fault.is_random()
    }
}
