//! `wrong_tool_arguments`: the arguments of a tool call are not what the tool asks for.

use super::{AnswerFault, wrong_call};
use crate::fault::{CallError, StreamFault, Tools};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// Of the first call of these tools.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongToolArguments(Tools);

impl AnswerFault for WrongToolArguments {
    const NAME: &'static str = "wrong_tool_arguments";
    const OF_CALLS: bool = true;

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        Some(Self(Tools::read(raw, reader)))
    }

    fn change(&self) -> StreamFault {
        wrong_call(CallError::WrongArguments, &self.0)
    }
}
