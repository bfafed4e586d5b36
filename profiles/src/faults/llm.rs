//! Faults of model calls, written against the neutral call: the dialect of the request puts them
//! into the provider's words.

use std::time::Duration;

use serde_json::{Map, Value, json};
use squall_dialects::model::{LimitScope, ModelError};

use super::delay::{Delay, millis};
use crate::dice::Dice;
use crate::fault::StreamFault;
use crate::plan::{Answer, Edit, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;

/// One way a model call can go wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum LlmFault {
    /// `timeout`: held for so long, then closed without an answer; default 30,000 ms.
    Timeout(Delay),
    /// `rate_limit`, `server_error`, `overloaded`: the provider's own error.
    Error(ModelError),
    /// `truncated_response`, `stream_cut`, `slow_stream`: the answer changes as it comes.
    Stream(StreamFault),
}

/// Tokens that `truncated_response` and `stream_cut` let through when nothing else is written.
const TOKENS: u64 = 10;
/// Pace of `slow_stream` when nothing at all is written.
const TOKENS_PER_SECOND: f64 = 5.0;

impl LlmFault {
    /// Reads the parameters of `mode`, which is one of this family's.
    pub(crate) fn read(mode: &str, raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        Some(match mode {
            "timeout" => Self::Timeout(Delay::read(raw, reader, Duration::from_secs(30))),
            "rate_limit" => {
                let wait = reader.seconds("retry_after", raw.retry_after.as_ref());
                let wait = wait.unwrap_or(Duration::from_secs(1));
                Self::Error(ModelError::RateLimit {
                    scope: LimitScope::Requests,
                    retry_after: Some(wait),
                })
            }
            "server_error" => {
                let status = reader.status("error_code", raw.error_code.as_ref(), 500);
                let status = status.map_or(500, |status| status.as_u16());
                Self::Error(ModelError::ServerError { status })
            }
            "overloaded" => Self::Error(ModelError::Overloaded),
            "truncated_response" => {
                let max_tokens = reader.count("max_tokens", raw.max_tokens.as_ref(), 0);
                Self::Stream(StreamFault::Truncate {
                    max_tokens: max_tokens.unwrap_or(TOKENS),
                })
            }
            "stream_cut" => {
                let after_tokens = reader.count("after_tokens", raw.after_tokens.as_ref(), 0);
                Self::Stream(StreamFault::Cut {
                    after_tokens: after_tokens.unwrap_or(TOKENS),
                })
            }
            "slow_stream" => {
                let unset = raw.ttft_ms.is_none() && raw.tokens_per_second.is_none();
                let pace = reader.positive("tokens_per_second", raw.tokens_per_second.as_ref());
                Self::Stream(StreamFault::Slow {
                    time_to_first_token: reader
                        .millis("ttft_ms", raw.ttft_ms.as_ref())
                        .unwrap_or_default(),
                    tokens_per_second: pace.or(unset.then_some(TOKENS_PER_SECOND)),
                })
            }
            _ => return None,
        })
    }

    /// Writes this fault into `plan`; an error says why it cannot have its way.
    pub fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        dice: &mut Dice,
    ) -> Result<(), String> {
        match self {
            Self::Timeout(delay) => plan.answer(verdict, Answer::Hold(delay.draw(dice))),
            Self::Error(error) => plan.answer(verdict, Answer::ModelError(error.clone())),
            Self::Stream(fault) => {
                plan.edit(verdict, Edit::Stream(fault.clone()));
                Ok(())
            }
        }
    }

    /// The parameters as they are used, in the words of files.
    pub(crate) fn parameters(&self) -> Map<String, Value> {
        let mut map = Map::new();
        match self {
            Self::Timeout(delay) => delay.parameters(&mut map),
            Self::Error(ModelError::RateLimit { retry_after, .. }) => {
                map.insert(
                    "retry_after".into(),
                    json!(retry_after.map(|wait| wait.as_secs_f64())),
                );
            }
            Self::Error(ModelError::ServerError { status }) => {
                map.insert("error_code".into(), json!(status));
            }
            Self::Error(
                ModelError::Overloaded
                | ModelError::QuotaExhausted
                | ModelError::ContextLength
                | ModelError::ContentFilter
                | ModelError::Auth
                | ModelError::ModelNotFound
                | ModelError::Timeout,
            ) => {}
            Self::Stream(StreamFault::Truncate { max_tokens }) => {
                map.insert("max_tokens".into(), json!(max_tokens));
            }
            Self::Stream(StreamFault::Cut { after_tokens }) => {
                map.insert("after_tokens".into(), json!(after_tokens));
            }
            Self::Stream(StreamFault::Slow {
                time_to_first_token,
                tokens_per_second,
            }) => {
                map.insert("ttft_ms".into(), millis(*time_to_first_token));
                if let Some(pace) = tokens_per_second {
                    map.insert("tokens_per_second".into(), json!(pace));
                }
            }
        }
        map
    }

    /// Whether what it does hangs on a draw of its own.
    pub(crate) fn is_random(&self) -> bool {
        match self {
            Self::Timeout(delay) => delay.is_random(),
            Self::Error(_) | Self::Stream(_) => false,
        }
    }
}
