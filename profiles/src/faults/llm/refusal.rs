//! `refusal`: the model refuses.

use super::AnswerFault;
use crate::fault::{Instead, StreamFault};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// In words that the draw chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal;

impl AnswerFault for Refusal {
    const NAME: &'static str = "refusal";

    fn read(_: &RawRule, _: &mut Reader) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Instead(Instead::Refusal { choice: 0 })
    }
}
