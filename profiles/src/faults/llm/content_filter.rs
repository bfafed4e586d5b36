//! `content_filter`: a content filter stopped the answer.

use super::AnswerFault;
use crate::fault::{Instead, StreamFault};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// It says nothing, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentFilter;

impl AnswerFault for ContentFilter {
    const NAME: &'static str = "content_filter";

    fn read(_: &RawRule, _: &mut Reader) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Instead(Instead::Filtered)
    }
}
