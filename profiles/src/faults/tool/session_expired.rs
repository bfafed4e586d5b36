//! `session_expired`: the MCP server has lost the session.

use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::matching::Touches;
use crate::plan::{Answer, Plan, VerdictIndex};

/// Whatever is asked in the session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionExpired;

impl FaultMode for SessionExpired {
    const NAME: &'static str = "session_expired";
    const TOUCHES: Touches = Touches::Sessions;

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::SessionExpired)
    }
}
