//! `stream_error`: the provider reports an error in the middle of a stream, then ends it.

use serde_json::{Map, Value, json};
use squall_dialects::model::ModelError;

use super::{AnswerFault, read_after_tokens};
use crate::fault::StreamFault;
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// When.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamError {
    /// Tokens that arrive before; default 10.
    after_tokens: u64,
}

impl AnswerFault for StreamError {
    const NAME: &'static str = "stream_error";
    const PARAMETERS: &'static [&'static str] = &["after_tokens"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let after_tokens = read_after_tokens(raw, reader);
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
