//! Faults of model calls, written against the neutral call: the dialect of the request puts them
//! into the provider's words.

use std::time::Duration;

use serde_json::{Map, Value, json};
use squall_dialects::model::{LimitScope, ModelError};

use super::delay::{Delay, millis};
use crate::allowance::Allowance;
use crate::budget::Budget;
use crate::dice::Dice;
use crate::fault::{
    CallError, Instead, ResponseDrift, Rewrite, Severity, StreamFault, TextDrift, Tools, WrongCall,
};
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;
use crate::spending::Usd;

/// One way a model call can go wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum LlmFault {
    /// `timeout`: held for so long, then closed without an answer; default 30,000 ms.
    Timeout(Delay),
    /// `rate_limit`, `server_error`, `overloaded` and their like: the provider's own error.
    Error(ModelError),
    /// `rate_limit` with `rpm` or `tpm`: the provider's limit, for what goes beyond.
    Limit(Allowance),
    /// `quota_exhausted` with `after_tokens` or `after_usd`: the provider's error once so much is
    /// used up.
    Quota(Budget),
    /// `truncated_response`, `stream_cut`, `empty`, `response_drift` and their like: the answer
    /// changes as it comes.
    Stream(StreamFault),
}

/// Tokens that `truncated_response` and `stream_cut` let through when nothing else is written.
const TOKENS: u64 = 10;
/// How long `stream_stall` halts when nothing else is written.
const STALL: Duration = Duration::from_secs(30);
/// By what factor `verbosity_shift` changes a text when nothing else is written.
const FACTOR: f64 = 2.0;
/// Pace of `slow_stream` when nothing at all is written.
const TOKENS_PER_SECOND: f64 = 5.0;

impl LlmFault {
    /// Reads the parameters of `mode`, which is one of this family's.
    pub(crate) fn read(mode: &str, raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        Some(match mode {
            "timeout" => Self::Timeout(Delay::read(raw, reader, Duration::from_secs(30))),
            "rate_limit" => read_limit(raw, reader),
            "server_error" => {
                let status = reader.status("error_code", raw.error_code.as_ref(), 500);
                let status = status.map_or(500, |status| status.as_u16());
                Self::Error(ModelError::ServerError { status })
            }
            "overloaded" => Self::Error(ModelError::Overloaded),
            "quota_exhausted" => read_quota(raw, reader),
            "context_length_exceeded" => Self::Error(ModelError::ContextLength),
            "auth_error" => Self::Error(ModelError::Auth),
            "model_not_found" => Self::Error(ModelError::ModelNotFound),
            _ => Self::Stream(read_stream(mode, raw, reader)?),
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
            // What is over, and for how long, hangs on what was asked before: see `Plan::limited`.
            Self::Limit(_) => {
                let error = ModelError::RateLimit {
                    scope: LimitScope::Requests,
                    retry_after: None,
                    figures: None,
                };
                plan.answer(verdict, Answer::ModelError(error))
            }
            Self::Quota(_) => plan.answer(verdict, Answer::ModelError(ModelError::QuotaExhausted)),
            Self::Stream(fault) => {
                let mut fault = fault.clone();
                if let Some(choice) = fault.choice_mut() {
                    *choice = dice.next_choice();
                }
                plan.edit_answer(verdict, fault)
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
            Self::Limit(Allowance { requests, tokens }) => {
                map.extend(requests.map(|requests| ("rpm".into(), json!(requests))));
                map.extend(tokens.map(|tokens| ("tpm".into(), json!(tokens))));
            }
            Self::Quota(Budget { tokens, cost }) => {
                map.extend(tokens.map(|tokens| ("after_tokens".into(), json!(tokens))));
                map.extend(cost.map(|cost| ("after_usd".into(), json!(cost.dollars()))));
            }
            Self::Stream(fault) => stream_parameters(fault, &mut map),
        }
        map
    }

    /// What may be asked before it fires at all.
    pub(crate) fn allowance(&self) -> Option<Allowance> {
        match self {
            Self::Limit(allowance) => Some(*allowance),
            Self::Timeout(_) | Self::Error(_) | Self::Quota(_) | Self::Stream(_) => None,
        }
    }

    /// What may be used up before it fires at all.
    pub(crate) fn budget(&self) -> Option<Budget> {
        match self {
            Self::Quota(budget) => Some(*budget),
            Self::Timeout(_) | Self::Error(_) | Self::Limit(_) | Self::Stream(_) => None,
        }
    }

    /// Whether what it does hangs on how many tokens there are.
    pub(crate) fn counts_tokens(&self) -> bool {
        match self {
            Self::Limit(allowance) => allowance.tokens.is_some(),
            Self::Quota(budget) => budget.tokens.is_some() || budget.cost.is_some(),
            Self::Stream(fault) => fault.counts_tokens(),
            Self::Error(error) => error.counts_input(),
            Self::Timeout(_) => false,
        }
    }

    /// Whether what it does hangs on a draw of its own.
    pub(crate) fn is_random(&self) -> bool {
        match self {
            Self::Timeout(delay) => delay.is_random(),
            Self::Error(_) | Self::Limit(_) | Self::Quota(_) => false,
            Self::Stream(fault) => fault.clone().choice_mut().is_some(),
        }
    }
}

/// Reads a limit: one that holds always, or for what is over an allowance.
fn read_limit(raw: &RawRule, reader: &mut Reader) -> LlmFault {
    let wait = reader.seconds("retry_after", raw.retry_after.as_ref());
    let requests = reader.count("rpm", raw.rpm.as_ref(), 1);
    let tokens = reader.count("tpm", raw.tpm.as_ref(), 1);
    if raw.rpm.is_none() && raw.tpm.is_none() {
        return LlmFault::Error(ModelError::RateLimit {
            scope: LimitScope::Requests,
            retry_after: Some(wait.unwrap_or(Duration::from_secs(1))),
            figures: None,
        });
    }
    if let Some(found) = &raw.retry_after {
        let message = "`retry_after` follows from `rpm` and `tpm`: leave one or the other out";
        reader.error("retry_after", found.position, message);
    }
    LlmFault::Limit(Allowance { requests, tokens })
}

/// Reads a quota: one that is exhausted from the beginning, or once so much is used up.
fn read_quota(raw: &RawRule, reader: &mut Reader) -> LlmFault {
    let tokens = reader.count("after_tokens", raw.after_tokens.as_ref(), 1);
    let cost = reader.positive("after_usd", raw.after_usd.as_ref());
    if raw.after_tokens.is_none() && raw.after_usd.is_none() {
        return LlmFault::Error(ModelError::QuotaExhausted);
    }
    LlmFault::Quota(Budget {
        tokens,
        cost: cost.map(Usd::from_dollars),
    })
}

/// The drift types of `response_drift`.
const DRIFT_TYPES: [(&str, TextDrift); 5] = [
    ("json_field_rename", TextDrift::FieldNames),
    (
        "verbosity_shift",
        TextDrift::Length {
            factor: FACTOR,
            compress: false,
        },
    ),
    ("format_change", TextDrift::Format),
    ("refusal_rephrase", TextDrift::Refusal),
    ("tone_shift", TextDrift::Tone),
];

const SEVERITIES: [(&str, Severity); 3] = [
    ("subtle", Severity::Subtle),
    ("moderate", Severity::Moderate),
    ("significant", Severity::Significant),
];

const DIRECTIONS: [(&str, bool); 2] = [("expand", false), ("compress", true)];

/// Reads the parameters of a mode that changes the answer. The draws come with each exchange.
fn read_stream(mode: &str, raw: &RawRule, reader: &mut Reader) -> Option<StreamFault> {
    let choice = 0;
    Some(match mode {
        "truncated_response" => {
            let max_tokens = reader.count("max_tokens", raw.max_tokens.as_ref(), 0);
            StreamFault::Truncate {
                max_tokens: max_tokens.unwrap_or(TOKENS),
            }
        }
        "stream_cut" => StreamFault::Cut {
            after_tokens: read_after_tokens(raw, reader),
        },
        "stream_stall" => StreamFault::Stall {
            after_tokens: read_after_tokens(raw, reader),
            wait: reader
                .millis("delay_ms", raw.delay_ms.as_ref())
                .unwrap_or(STALL),
        },
        "stream_error" => StreamFault::Error {
            after_tokens: read_after_tokens(raw, reader),
            error: ModelError::Overloaded,
        },
        "slow_stream" => {
            let unset = raw.ttft_ms.is_none() && raw.tokens_per_second.is_none();
            let pace = reader.positive("tokens_per_second", raw.tokens_per_second.as_ref());
            StreamFault::Slow {
                time_to_first_token: reader
                    .millis("ttft_ms", raw.ttft_ms.as_ref())
                    .unwrap_or_default(),
                tokens_per_second: pace.or(unset.then_some(TOKENS_PER_SECOND)),
            }
        }
        "duplicate_chunk" => StreamFault::Repeat { choice },
        "missing_terminator" => StreamFault::Unterminated,
        "json_for_stream" => StreamFault::WholeForStream,
        "empty" => StreamFault::Instead(Instead::Nothing),
        "content_filter" => StreamFault::Instead(Instead::Filtered),
        "refusal" => StreamFault::Instead(Instead::Refusal { choice }),
        "garbage" => StreamFault::Instead(Instead::Garbage { choice }),
        "unknown_tool_call" => wrong_call(CallError::UnknownTool, raw),
        "malformed_tool_call" => wrong_call(CallError::MalformedArguments, raw),
        "wrong_tool_arguments" => wrong_call(CallError::WrongArguments, raw),
        "response_drift" => StreamFault::Rewrite(Rewrite::Drift(read_drift(raw, reader)?)),
        _ => return None,
    })
}

/// A call is wrong; which, `tool` says here: the name by which the model calls it.
fn wrong_call(error: CallError, raw: &RawRule) -> StreamFault {
    StreamFault::Rewrite(Rewrite::Call(WrongCall {
        error,
        tools: Tools::read(raw),
        choice: 0,
    }))
}

fn read_after_tokens(raw: &RawRule, reader: &mut Reader) -> u64 {
    let after_tokens = reader.count("after_tokens", raw.after_tokens.as_ref(), 0);
    after_tokens.unwrap_or(TOKENS)
}

/// Reads how a text drifts; what only `verbosity_shift` uses is refused elsewhere.
fn read_drift(raw: &RawRule, reader: &mut Reader) -> Option<ResponseDrift> {
    let severity = reader.word("severity", raw.severity.as_ref(), &SEVERITIES);
    let factor = reader.positive("factor", raw.factor.as_ref());
    let compress = reader.word("direction", raw.direction.as_ref(), &DIRECTIONS);
    let kind = match &raw.drift_type {
        Some(written) => reader.word("drift_type", Some(written), &DRIFT_TYPES)?,
        None => TextDrift::FieldNames,
    };
    let kind = match kind {
        TextDrift::Length { .. } => {
            let factor = factor.unwrap_or(match severity {
                Some(Severity::Subtle) => 1.5,
                Some(Severity::Moderate) | None => FACTOR,
                Some(Severity::Significant) => 4.0,
            });
            if let Some(found) = raw.factor.as_ref().filter(|_| factor <= 1.0) {
                let message = format!(
                    "`factor: {}`: allowed is more than 1; to make the answer shorter, write \
                     `direction: compress`",
                    found.value
                );
                reader.error("factor", found.position, message);
            }
            TextDrift::Length {
                factor,
                compress: compress.unwrap_or_default(),
            }
        }
        kind => {
            let foreign = [
                ("factor", raw.factor.as_ref().map(|at| at.position)),
                ("direction", raw.direction.as_ref().map(|at| at.position)),
            ];
            for (field, position) in foreign {
                if let Some(position) = position {
                    let message = format!(
                        "`{field}` belongs to `drift_type: verbosity_shift`; no other uses it"
                    );
                    reader.error(field, position, message);
                }
            }
            kind
        }
    };
    Some(ResponseDrift {
        kind,
        severity: severity.unwrap_or_default(),
        choice: 0,
    })
}

/// The parameters as they are used, in the words of files.
fn stream_parameters(fault: &StreamFault, map: &mut Map<String, Value>) {
    match fault {
        StreamFault::Truncate { max_tokens } => {
            map.insert("max_tokens".into(), json!(max_tokens));
        }
        StreamFault::Cut { after_tokens } | StreamFault::Error { after_tokens, .. } => {
            map.insert("after_tokens".into(), json!(after_tokens));
        }
        StreamFault::Slow {
            time_to_first_token,
            tokens_per_second,
        } => {
            map.insert("ttft_ms".into(), millis(*time_to_first_token));
            if let Some(pace) = tokens_per_second {
                map.insert("tokens_per_second".into(), json!(pace));
            }
        }
        StreamFault::Stall { after_tokens, wait } => {
            map.insert("after_tokens".into(), json!(after_tokens));
            map.insert("delay_ms".into(), millis(*wait));
        }
        StreamFault::Rewrite(Rewrite::Drift(drift)) => drift_parameters(drift, map),
        StreamFault::Repeat { .. }
        | StreamFault::Unterminated
        | StreamFault::WholeForStream
        | StreamFault::Instead(_)
        | StreamFault::Rewrite(Rewrite::Call(_)) => {}
    }
}

fn drift_parameters(drift: &ResponseDrift, map: &mut Map<String, Value>) {
    let drift_type = match drift.kind {
        TextDrift::FieldNames => "json_field_rename",
        TextDrift::Length { .. } => "verbosity_shift",
        TextDrift::Format => "format_change",
        TextDrift::Refusal => "refusal_rephrase",
        TextDrift::Tone => "tone_shift",
    };
    map.insert("drift_type".into(), json!(drift_type));
    if let TextDrift::Length { factor, compress } = drift.kind {
        let direction = if compress { "compress" } else { "expand" };
        map.insert("direction".into(), json!(direction));
        map.insert("factor".into(), json!(factor));
    } else {
        let named = SEVERITIES
            .iter()
            .find(|(_, severity)| *severity == drift.severity);
        map.insert("severity".into(), json!(named.map(|(word, _)| word)));
    }
}
