//! `indirect_injection`: an instruction in a tool's answer, on the wire and among the messages.

use serde_json::{Map, Value, json};
use squall_documents::Fields;

use super::{plant, read_payloads};
use crate::changes::{Injection, Placement, Tools};
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::Fault;
use crate::faults::fixed::word;
use crate::payloads::Payloads;
use crate::plan::{Bypass, Edit, Plan, RequestEdit, VerdictIndex};

/// What is put where.
struct IndirectInjection {
    /// Whose answers.
    tools: Tools,
    /// The instructions.
    payloads: Payloads,
    /// Where in the answer; default behind its prose.
    placement: Placement,
}

const PLACEMENT: &str = "Where in the tool's result the instruction is put; default `field`.";

const PLACEMENTS: [(&str, Placement); 5] = [
    ("field", Placement::Field),
    ("comment", Placement::Comment),
    ("zero_width", Placement::ZeroWidth),
    ("markdown", Placement::Markdown),
    ("error_message", Placement::ErrorMessage),
];

impl IndirectInjection {
    fn injection(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Injection {
        Injection {
            text: plant(&self.payloads, plan, verdict, dice),
            placement: self.placement,
            choice: dice.next_choice(),
        }
    }
}

pub(super) fn read(fields: &mut Fields<'_, '_>, tools: &Tools) -> Box<dyn Fault> {
    Box::new(IndirectInjection {
        tools: tools.clone(),
        payloads: read_payloads(fields),
        placement: fields
            .word("placement", PLACEMENT, "placement", &PLACEMENTS)
            .unwrap_or_default(),
    })
}

impl Fault for IndirectInjection {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        kind: Kind,
        dice: &mut Dice,
    ) -> Result<(), Bypass> {
        let injection = self.injection(plan, verdict, dice);
        if kind == Kind::Llm {
            plan.edit_request(verdict, RequestEdit::Inject(self.tools.clone(), injection));
        } else {
            plan.edit(verdict, Edit::Inject(injection));
        }
        Ok(())
    }

    fn parameters(&self) -> Map<String, Value> {
        let mut parameters = self.payloads.parameters();
        parameters.insert(
            "placement".into(),
            json!(word(&PLACEMENTS, &self.placement)),
        );
        parameters
    }

    fn is_random(&self) -> bool {
        true
    }
}
