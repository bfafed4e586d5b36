//! `malformed_tool_call`: the arguments of a tool call are no JSON.

use super::{AnswerFault, wrong_call};
use crate::fault::{CallError, StreamFault};
use crate::faults::mode::{Fields, Tools};

/// Of the first call of these tools.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedToolCall(Tools);

impl AnswerFault for MalformedToolCall {
    const NAME: &'static str = "malformed_tool_call";
    const OF_CALLS: bool = true;

    fn read(_: &mut Fields<'_, '_>, tools: &Tools) -> Option<Self> {
        Some(Self(tools.clone()))
    }

    fn change(&self) -> StreamFault {
        wrong_call(CallError::MalformedArguments, &self.0)
    }
}
