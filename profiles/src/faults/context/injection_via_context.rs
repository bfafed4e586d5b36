//! `injection_via_context`: an instruction among the documents that come with a question.

use serde_json::{Map, Value};

use super::{plant, read_payloads};
use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::payloads::Payloads;
use crate::plan::{Plan, RequestEdit, VerdictIndex};

/// One of these.
#[derive(Debug, Clone, PartialEq)]
pub struct InjectionViaContext(Payloads);

impl FaultMode for InjectionViaContext {
    const NAME: &'static str = "injection_via_context";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self(read_payloads(fields)))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String> {
        let text = plant(&self.0, plan, verdict, dice);
        plan.edit_request(verdict, RequestEdit::Attach(text));
        Ok(())
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.extend(self.0.parameters());
    }

    fn is_random(&self) -> bool {
        true
    }
}
