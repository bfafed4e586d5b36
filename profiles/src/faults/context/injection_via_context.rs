//! `injection_via_context`: an instruction among the documents that come with a question.

use serde_json::{Map, Value};
use squall_documents::Fields;

use super::{plant, read_payloads};
use crate::changes::Tools;
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::Fault;
use crate::payloads::Payloads;
use crate::plan::{Bypass, Plan, RequestEdit, VerdictIndex};

/// One of these.
struct InjectionViaContext(Payloads);

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Box<dyn Fault> {
    Box::new(InjectionViaContext(read_payloads(fields)))
}

impl Fault for InjectionViaContext {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass> {
        let text = plant(&self.0, plan, verdict, dice);
        plan.edit_request(verdict, RequestEdit::Attach(text));
        Ok(())
    }

    fn parameters(&self) -> Map<String, Value> {
        self.0.parameters()
    }

    fn is_random(&self) -> bool {
        true
    }
}
