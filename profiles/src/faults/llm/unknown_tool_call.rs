//! `unknown_tool_call`: the model calls a tool that there is not.

use super::{AnswerFault, wrong_call};
use crate::fault::{CallError, StreamFault};
use crate::faults::mode::{Fields, Tools};

/// In the first call of these tools.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownToolCall(Tools);

impl AnswerFault for UnknownToolCall {
    const NAME: &'static str = "unknown_tool_call";
    const OF_CALLS: bool = true;

    fn read(_: &mut Fields<'_, '_>, tools: &Tools) -> Option<Self> {
        Some(Self(tools.clone()))
    }

    fn change(&self) -> StreamFault {
        wrong_call(CallError::UnknownTool, &self.0)
    }
}
