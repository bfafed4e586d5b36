//! `refusal`: the model refuses.

use super::AnswerFault;
use crate::fault::{Instead, StreamFault};
use crate::faults::mode::{Fields, Tools};

/// In words that the draw chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal;

impl AnswerFault for Refusal {
    const NAME: &'static str = "refusal";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Instead(Instead::Refusal { choice: 0 })
    }
}
