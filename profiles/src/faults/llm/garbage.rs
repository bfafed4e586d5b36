//! `garbage`: the model says characters without meaning.

use super::AnswerFault;
use crate::fault::{Instead, StreamFault};
use crate::faults::mode::{Fields, Tools};

/// The draw chooses them.
#[derive(Debug, Clone, PartialEq)]
pub struct Garbage;

impl AnswerFault for Garbage {
    const NAME: &'static str = "garbage";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Instead(Instead::Garbage { choice: 0 })
    }
}
