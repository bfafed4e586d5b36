//! `stream_cut`: the connection breaks in the middle of the answer.

use serde_json::{Map, Value, json};

use super::{AnswerFault, read_after_tokens};
use crate::fault::StreamFault;
use crate::faults::mode::{Fields, Tools};

/// When.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamCut {
    /// Tokens that still arrive; default 10.
    after_tokens: u64,
}

impl AnswerFault for StreamCut {
    const NAME: &'static str = "stream_cut";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let after_tokens = read_after_tokens(fields);
        Some(Self { after_tokens })
    }

    fn change(&self) -> StreamFault {
        StreamFault::Cut {
            after_tokens: self.after_tokens,
        }
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("after_tokens".into(), json!(self.after_tokens));
    }
}
