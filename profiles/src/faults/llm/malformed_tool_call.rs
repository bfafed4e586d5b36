//! `malformed_tool_call`: the arguments of a tool call are no JSON.

use super::{AnswerFault, wrong_call};
use crate::fault::{CallError, StreamFault, Tools};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// Of the first call of these tools.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedToolCall(Tools);

impl AnswerFault for MalformedToolCall {
    const NAME: &'static str = "malformed_tool_call";
    const OF_CALLS: bool = true;

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        Some(Self(Tools::read(raw, reader)))
    }

    fn change(&self) -> StreamFault {
        wrong_call(CallError::MalformedArguments, &self.0)
    }
}
