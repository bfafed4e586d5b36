//! `garbage`: the model says characters without meaning.

use super::AnswerFault;
use crate::fault::{Instead, StreamFault};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// The draw chooses them.
#[derive(Debug, Clone, PartialEq)]
pub struct Garbage;

impl AnswerFault for Garbage {
    const NAME: &'static str = "garbage";

    fn read(_: &RawRule, _: &mut Reader) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Instead(Instead::Garbage { choice: 0 })
    }
}
