//! `indirect_injection`: an instruction in a tool's answer, on the wire and among the messages.

use serde_json::{Map, Value};

use super::{plant, read_payloads, word};
use crate::dice::Dice;
use crate::fault::{Injection, Placement};
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::matching::Touches;
use crate::payloads::Payloads;
use crate::plan::{Edit, Plan, RequestEdit, VerdictIndex};

/// What is put where.
#[derive(Debug, Clone, PartialEq)]
pub struct IndirectInjection {
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

impl FaultMode for IndirectInjection {
    const NAME: &'static str = "indirect_injection";
    const TOUCHES: Touches = Touches::Either;

    fn read(fields: &mut Fields<'_, '_>, tools: &Tools) -> Option<Self> {
        Some(Self {
            tools: tools.clone(),
            payloads: read_payloads(fields),
            placement: fields
                .word("placement", PLACEMENT, "placement", &PLACEMENTS)
                .unwrap_or_default(),
        })
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String> {
        let injection = self.injection(plan, verdict, dice);
        plan.edit_request(verdict, RequestEdit::Inject(self.tools.clone(), injection));
        Ok(())
    }

    fn apply_to_tools(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        dice: &mut Dice,
    ) -> Result<(), String> {
        let injection = self.injection(plan, verdict, dice);
        plan.edit(verdict, Edit::Inject(injection));
        Ok(())
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        into.extend(self.payloads.parameters());
        into.insert("placement".into(), word(&PLACEMENTS, &self.placement));
    }

    fn is_random(&self) -> bool {
        true
    }
}
