//! `malformed`: 200 with JSON that does not parse.

use http::StatusCode;

use super::answers::typed;
use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Fields, Told, Tools};
use crate::plan::{Answer, Plan, ToolAnswer, ToolSays, VerdictIndex};

const BROKEN_JSON: &str = "{\"status\": \"ok\", \"data\": {\"items\": [1, 2, \"three";

/// An object that breaks off inside a string.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed;

impl FaultMode for Malformed {
    const NAME: &'static str = "malformed";
    const TOLD: Option<Told<Self>> =
        Some(|_, _, _, _| ResultChange::Output(BROKEN_JSON.to_owned()));

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let reply = typed(StatusCode::OK, "application/json", BROKEN_JSON);
        let answer = ToolAnswer {
            plain: reply,
            says: ToolSays::Broken,
        };
        plan.answer(verdict, Answer::Tool(answer))
    }
}
