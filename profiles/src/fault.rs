//! Faults: the definition of a mode, which all its rules share, and parameters that write into a
//! plan.

use std::fmt;
use std::sync::Arc;

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

type Apply = dyn Fn(&mut Plan, VerdictIndex, Kind, &mut Dice) -> Result<(), Bypass> + Send + Sync;
type ChangeResult = dyn Fn(&mut Plan, VerdictIndex, &mut Dice) -> ResultChange + Send + Sync;

/// A fault with its parameters. It is pure: no clock, no socket, and no random numbers except from
/// the dice.
#[derive(Clone)]
pub(crate) struct Fault {
    pub(crate) apply: Arc<Apply>,
    pub(crate) result_change: Option<Arc<ChangeResult>>,
    /// The effective parameters, named as in files, for the journal.
    pub(crate) parameters: Map<String, Value>,
    /// Whether it depends on the request's fingerprint: for draws in addition to the trigger (a canary
    /// is one), or to tell calls apart.
    pub(crate) needs_fingerprint: bool,
    /// The use that is allowed before it fires.
    pub(crate) allowed: Option<AllowedUse>,
    /// Whether its effect, or a token count that it reports, depends on a number of tokens.
    pub(crate) counts_tokens: bool,
    /// Whether it only has a form in a model's stream.
    pub(crate) needs_a_stream: bool,
}

/// The use of a model that is allowed before a fault fires.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AllowedUse {
    /// So many requests or tokens a minute.
    Rate(Allowance),
    /// So many tokens or so much money in total.
    Budget(Budget),
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.parameters).finish()
    }
}

impl Fault {
    /// A fault that `apply` writes into the plan of an exchange of a kind, on behalf of a verdict.
    pub(crate) fn new(
        parameters: Value,
        apply: impl Fn(&mut Plan, VerdictIndex, Kind, &mut Dice) -> Result<(), Bypass>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let parameters = match parameters {
            Value::Object(parameters) => parameters,
            _ => Map::new(),
        };
        Self {
            apply: Arc::new(apply),
            result_change: None,
            parameters,
            needs_fingerprint: false,
            allowed: None,
            counts_tokens: false,
            needs_a_stream: false,
        }
    }

    /// With `at: model_input`, it changes a tool's result like this.
    pub(crate) fn in_results(
        mut self,
        change: impl Fn(&mut Plan, VerdictIndex, &mut Dice) -> ResultChange + Send + Sync + 'static,
    ) -> Self {
        self.result_change = Some(Arc::new(change));
        self
    }

    /// Whether it draws.
    pub(crate) fn drawing(mut self, draws: bool) -> Self {
        self.needs_fingerprint = draws;
        self
    }

    /// Whether it counts tokens.
    pub(crate) fn counting_tokens(mut self, counts: bool) -> Self {
        self.counts_tokens = counts;
        self
    }

    /// It has no effect because of `why`, if that is so.
    pub(crate) fn idle_if(mut self, is_idle: bool, why: &'static str) -> Self {
        if is_idle {
            self.apply = Arc::new(move |_, _, _, _| Err(why.into()));
        }
        self
    }

    /// Changes the tool's results in the model's input instead of the response on the wire.
    fn in_model_input(self, tools: Tools) -> Self {
        let mut parameters = self.parameters;
        for only_there in ON_THE_WIRE.iter().chain(&[IN_MCP]) {
            parameters.remove(*only_there);
        }
        parameters.insert("at".into(), MODEL_INPUT.into());
        let change = self.result_change;
        let apply = move |plan: &mut Plan, by, _, dice: &mut Dice| {
            let change = change
                .as_ref()
                .ok_or("the fault has no effect on results")?;
            let change = change(plan, by, dice);
            plan.edit_request(by, RequestEdit::Results(tools.clone(), change));
            Ok(())
        };
        Self::new(Value::Object(parameters), apply).drawing(self.needs_fingerprint)
    }

    /// Writes the fault into a plan.
    pub(crate) fn apply(
        &self,
        plan: &mut Plan,
        by: VerdictIndex,
        kind: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass> {
        (self.apply)(plan, by, kind, dice)
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
    /// Whether it supports `at: connect`.
    pub(crate) answers_upgrades: bool,
    /// Reads its parameters; `tools` are those that the rule matches.
    pub(crate) read: fn(&mut Fields<'_, '_>, &Tools) -> Fault,
}

/// The value of `at` with which a tool fault changes results in the model's input.
pub(crate) const MODEL_INPUT: &str = "model_input";

/// The value of `at` with which a model fault answers the upgrade of a WebSocket.
const CONNECT: &str = "connect";

/// Fields of rules that are about a model call, so not about an upgrade.
const OF_A_CALL: [&str; 9] = [
    "tool",
    "body",
    "match_body",
    "json",
    "model",
    "stream",
    "tpm",
    "after_tokens",
    "after_usd",
];

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
        read: fn(&mut Fields<'_, '_>, &Tools) -> Fault,
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
            answers_upgrades: false,
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

    pub(crate) const fn answering_upgrades(self) -> Self {
        Self {
            answers_upgrades: true,
            ..self
        }
    }

    /// Reads the parameters of a rule and reports invalid ones.
    pub(crate) fn read(&self, fields: &mut Fields<'_, '_>, tools: &Tools) -> Fault {
        self.require(fields);
        let about = "`model_input` for tools that run inside the agent: what the model is told of their results \
                     changes.";
        let changes_results = self.in_model_input
            && fields
                .word("at", about, "place", &[(MODEL_INPUT, ())])
                .is_some();
        let at_connect = self.answers_upgrades && reads_at_connect(fields);
        let mut fault = (self.read)(fields, tools);
        if changes_results {
            return fault.in_model_input(tools.clone());
        }
        if at_connect {
            fault.parameters.insert("at".into(), CONNECT.into());
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

    /// Whether a rule of this mode answers upgrades (`at: connect`).
    pub(crate) fn is_at_connect(&self, fields: &Fields<'_, '_>) -> bool {
        self.answers_upgrades && fields.glance("at") == Some(CONNECT)
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
    pub(crate) fn alone(&self, fault: &Fault) -> Plan {
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

/// Whether a rule has `at: connect`; reports fields that an upgrade does not have.
fn reads_at_connect(fields: &mut Fields<'_, '_>) -> bool {
    let about = "`connect`: the upgrade to a WebSocket of model calls gets the error. Default: each model call, `call`.";
    let places = [("call", false), (CONNECT, true)];
    let at_connect = fields.word("at", about, "place", &places) == Some(true);
    for field in OF_A_CALL.into_iter().filter(|_| at_connect) {
        if fields.has(field) {
            let message = format!("`{field}` is about calls; with `at: connect` there is none");
            fields.error(field, message);
        }
    }
    at_connect
}
