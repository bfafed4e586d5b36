//! `content_filter`: a content filter stopped the answer.

use super::AnswerFault;
use crate::fault::{Instead, StreamFault};
use crate::faults::mode::{Fields, Tools};

/// It says nothing, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentFilter;

impl AnswerFault for ContentFilter {
    const NAME: &'static str = "content_filter";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Instead(Instead::Filtered)
    }
}
