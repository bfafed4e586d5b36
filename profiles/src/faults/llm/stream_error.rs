//! `stream_error`: the provider reports an error in the middle of a stream, then ends it.

use serde_json::{Map, Value, json};
use squall_dialects::model::ModelError;

use super::{AnswerFault, read_after_tokens};
use crate::fault::StreamFault;
use crate::faults::mode::{Fields, Tools};

/// When.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamError {
    /// Tokens that arrive before; default 10.
    after_tokens: u64,
}

impl AnswerFault for StreamError {
    const NAME: &'static str = "stream_error";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let after_tokens = read_after_tokens(fields);
        Some(Self { after_tokens })
    }

    fn change(&self) -> StreamFault {
        StreamFault::Error {
            after_tokens: self.after_tokens,
            error: ModelError::Overloaded,
        }
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("after_tokens".into(), json!(self.after_tokens));
    }
}
