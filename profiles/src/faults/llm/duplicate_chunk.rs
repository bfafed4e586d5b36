//! `duplicate_chunk`: an event of a stream that carries tokens comes twice.

use super::AnswerFault;
use crate::fault::StreamFault;
use crate::faults::mode::{Fields, Tools};

/// Which one, the draw says.
#[derive(Debug, Clone, PartialEq)]
pub struct DuplicateChunk;

impl AnswerFault for DuplicateChunk {
    const NAME: &'static str = "duplicate_chunk";

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn change(&self) -> StreamFault {
        StreamFault::Repeat { choice: 0 }
    }
}
