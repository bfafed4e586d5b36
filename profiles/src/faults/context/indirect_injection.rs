//! `indirect_injection`: an instruction in a tool's answer, on the wire and among the messages.

use serde_json::{Value, json};
use squall_documents::Fields;

use super::{plant, read_payloads};
use crate::changes::{Injection, Placement, Tools};
use crate::facts::Kind;
use crate::fault::Fault;
use crate::plan::{Edit, RequestEdit};

const PLACEMENT: &str = "Where in the tool's result the instruction is put; default `field`.";

pub(super) fn read(fields: &mut Fields<'_, '_>, tools: &Tools) -> Fault {
    let tools = tools.clone();
    let payloads = read_payloads(fields);
    let placement = fields.word("placement", PLACEMENT, "placement", Placement::NAMES);
    let placement = placement.unwrap_or_default();
    let mut parameters = Value::Object(payloads.parameters());
    parameters["placement"] = json!(placement.as_str());
    let fault = Fault::new(parameters, move |plan, by, kind, dice| {
        let injection = Injection {
            text: plant(&payloads, plan, by, dice),
            placement,
            choice: dice.next_choice(),
        };
        if kind == Kind::Llm {
            plan.edit_request(by, RequestEdit::Inject(tools.clone(), injection));
        } else {
            plan.edit(by, Edit::Inject(injection));
        }
        Ok(())
    });
    fault.drawing(true)
}
