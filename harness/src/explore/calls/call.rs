//! The calls of an invocation, and the rules that match each of them.

use serde_json::{Map, Value, json};
use squall_journal::record::{ExchangeRecord, Kind};

use super::fault::{self, CallTraits};
use crate::reach::SeenExchange;
use crate::report::call_name;
use crate::run::ExploredCall;
use crate::trace::{Trace, json_body};

/// How a call is recognised.
struct Signature {
    name: String,
    conditions: Map<String, Value>,
    traits: CallTraits,
}

/// The calls of an invocation in order. Tunnels, upgrades, and MCP exchanges that are no requests are left out.
pub(crate) fn calls(trace: &Trace, prompt: u64) -> Vec<ExploredCall> {
    let mut calls: Vec<ExploredCall> = Vec::new();
    let mut records: Vec<&ExchangeRecord> = Vec::new();
    for (place, attempt) in trace.attempts().iter().enumerate() {
        let exchange = trace.exchange(attempt);
        let signature = Signature::of(exchange);
        if let Some(Signature {
            name,
            conditions,
            mut traits,
        }) = signature
        {
            let tool = conditions.get("tool").and_then(Value::as_str);
            let in_batch = |record: &&&ExchangeRecord| {
                let mut more = record.more_tools.iter();
                tool.is_some_and(|tool| more.any(|more| more == tool))
            };
            let matched = |one: &&ExploredCall| one.conditions == conditions;
            let earlier = calls.iter().filter(matched).count();
            let earlier = earlier + records.iter().filter(in_batch).count();
            traits.is_repeated = earlier > 0;
            let number = calls.iter().filter(|one| one.call == name).count();
            let mut logical = trace.calls().iter();
            let logical = logical.position(|call| call.has_attempt(place));
            calls.push(ExploredCall {
                prompt,
                number: number as u64 + 1,
                logical: logical.unwrap_or(place) as u64,
                under: Vec::new(),
                faults: fault::of(&conditions, &traits),
                ordinal: earlier as u64 + 1,
                call: name,
                conditions,
            });
        }
        records.push(&exchange.record);
    }
    calls
}

/// The names of the calls after the first one with a fault.
pub(crate) fn names_after_fault(trace: &Trace) -> Vec<String> {
    let exchanges = trace.attempts().iter().map(|one| trace.exchange(one));
    let is_without_fault = |one: &&SeenExchange| one.record.applied().next().is_none();
    let after = exchanges.skip_while(is_without_fault).skip(1);
    let names = after.filter_map(|exchange| Some(Signature::of(exchange)?.name));
    names.collect()
}

impl Signature {
    fn of(exchange: &SeenExchange) -> Option<Self> {
        let record = &exchange.record;
        let name = call_name(record);
        let (method, url) = (&record.method, &record.url);
        let address = url.split(['?', '#']).next().unwrap_or_default();
        let of_url = json!({ "match_url": [glob(address), format!("{}?*", glob(address))] });
        let of_tool = record
            .tool
            .as_ref()
            .map(|tool| json!({ "tool": glob(tool) }));
        let mut traits = CallTraits::default();
        let (name, conditions) = match (record.kind, of_tool) {
            (Kind::Other, _) => return None,
            (Kind::Llm, _) => {
                let llm = record.llm.as_ref();
                traits.is_model = true;
                traits.is_stream = llm.is_some_and(|llm| llm.stream);
                traits.calls_tools = llm.is_some_and(|llm| !llm.tool_calls.is_empty());
                let mut conditions = json!({ "dialect": record.dialect.as_ref()? });
                if let Some(model) = llm.and_then(|llm| llm.model.as_ref()) {
                    conditions["model"] = glob(model).into();
                }
                (name, conditions)
            }
            (kind, Some(of_tool)) => {
                (traits.is_tool, traits.is_mcp) = (true, kind == Kind::Mcp);
                (name, of_tool)
            }
            (Kind::Mcp, None) => {
                let body = json_body(exchange.request.as_ref()?)?;
                let called = body.get("method")?.as_str()?;
                body.get("id")?;
                (traits.is_mcp, traits.is_list) = (true, called == "tools/list");
                let mut conditions = of_url;
                conditions["json"] = json!({ "$.method": called });
                (format!("{called} of {name}"), conditions)
            }
            (Kind::Tool | Kind::Agent, None) => {
                traits.is_tool = true;
                let mut conditions = of_url;
                conditions["methods"] = json!([method]);
                (format!("{method} {name}"), conditions)
            }
        };
        let Value::Object(conditions) = conditions else {
            return None;
        };
        Some(Self {
            name,
            conditions,
            traits,
        })
    }
}

/// A glob that matches the text.
fn glob(text: &str) -> String {
    text.replace(['{', '}', '*'], "*")
}
