//! `wrong_id`: the answer to an MCP call has another id.

use crate::dice::Dice;
use crate::fault::McpEdit;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Edit, Plan, VerdictIndex};

/// An id that nobody asked under.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongId;

impl FaultMode for WrongId {
    const NAME: &'static str = "wrong_id";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.edit(verdict, Edit::Mcp(McpEdit::WrongId));
        Ok(())
    }
}
