//! `wrong_tool_arguments`: the arguments of a tool call are not what the tool asks for.

use super::{AnswerFault, wrong_call};
use crate::fault::{CallError, StreamFault};
use crate::faults::mode::{Fields, Tools};

/// Of the first call of these tools.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongToolArguments(Tools);

impl AnswerFault for WrongToolArguments {
    const NAME: &'static str = "wrong_tool_arguments";
    const OF_CALLS: bool = true;

    fn read(_: &mut Fields<'_, '_>, tools: &Tools) -> Option<Self> {
        Some(Self(tools.clone()))
    }

    fn change(&self) -> StreamFault {
        wrong_call(CallError::WrongArguments, &self.0)
    }
}
