//! `empty`: the model says nothing.

use super::AnswerFault;
use crate::fault::{Instead, StreamFault};
use crate::faults::mode::{Fields, Tools};

/// The answer is a sound one.
#[derive(Debug, Clone, PartialEq)]
pub struct Empty;

impl AnswerFault for Empty {
    const NAME: &'static str = "empty";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Instead(Instead::Nothing)
    }
}
