//! `empty`: 200 without a body.

use http::StatusCode;

use super::answers::typed;
use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Fields, Told, Tools};
use crate::plan::{Answer, Plan, ToolAnswer, ToolSays, VerdictIndex};

/// The tool said nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Empty;

impl FaultMode for Empty {
    const NAME: &'static str = "empty";
    const TOLD: Option<Told<Self>> = Some(|_, _, _, _| ResultChange::Output(String::new()));

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let reply = typed(StatusCode::OK, "application/json", "");
        let answer = ToolAnswer {
            plain: reply,
            says: ToolSays::Nothing,
        };
        plan.answer(verdict, Answer::Tool(answer))
    }
}
