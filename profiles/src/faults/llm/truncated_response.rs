//! `truncated_response`: the answer ends early, with the provider's length reason.

use serde_json::{Map, Value, json};

use super::{AnswerFault, TOKENS};
use crate::fault::StreamFault;
use crate::faults::mode::{Fields, Tools};
use crate::profile::amounts::count;

/// When.
#[derive(Debug, Clone, PartialEq)]
pub struct TruncatedResponse {
    /// Tokens kept, at least 0; default 10.
    max_tokens: u64,
}

impl AnswerFault for TruncatedResponse {
    const NAME: &'static str = "truncated_response";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "Tokens that the answer keeps; default 10.";
        let max_tokens = count(fields, "max_tokens", about, 0);
        Some(Self {
            max_tokens: max_tokens.unwrap_or(TOKENS),
        })
    }

    fn change(&self) -> StreamFault {
        StreamFault::Truncate {
            max_tokens: self.max_tokens,
        }
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("max_tokens".into(), json!(self.max_tokens));
    }
}
