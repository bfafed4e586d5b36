//! `json_for_stream`: a whole answer comes where a stream was asked for.

use super::AnswerFault;
use crate::fault::StreamFault;
use crate::faults::mode::{Fields, Tools};

/// It says the same.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonForStream;

impl AnswerFault for JsonForStream {
    const NAME: &'static str = "json_for_stream";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::WholeForStream
    }
}
