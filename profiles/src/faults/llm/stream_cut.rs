//! `stream_cut`: the connection breaks in the middle of the answer.

use serde_json::{Map, Value, json};

use super::{AnswerFault, read_after_tokens};
use crate::fault::StreamFault;
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// When.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamCut {
    /// Tokens that still arrive; default 10.
    after_tokens: u64,
}

impl AnswerFault for StreamCut {
    const NAME: &'static str = "stream_cut";
    const PARAMETERS: &'static [&'static str] = &["after_tokens"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let after_tokens = read_after_tokens(raw, reader);
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
