//! `missing_terminator`: a stream lacks its end mark.

use super::AnswerFault;
use crate::fault::StreamFault;
use crate::faults::mode::{Fields, Tools};

/// All of the answer is there.
#[derive(Debug, Clone, PartialEq)]
pub struct MissingTerminator;

impl AnswerFault for MissingTerminator {
    const NAME: &'static str = "missing_terminator";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Unterminated
    }
}
