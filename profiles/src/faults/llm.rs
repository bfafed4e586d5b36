//! Faults of model calls, written against the neutral call: the dialect of the request puts them into the provider's
//! words.

mod quota_exhausted;
mod rate_limit;
mod response_drift;
mod slow_stream;
mod stream_stall;

use serde_json::json;
use squall_dialects::model::ModelError;
use squall_documents::Fields;

use super::delay;
use super::fixed::{change_of_answer, drawn_change, provider_error};
use super::remedies::{
    CUT_ANSWER, DECLINED, DELAY, LASTING_ERROR, LOST_HISTORY, ODD_ANSWER, OLD_CONNECTION,
    PASSING_ERROR, TIME_OUT, TOO_LONG, TOOL_CALL,
};
use crate::amounts::{count, status};
use crate::changes::{CallError, Instead, Rewrite, StreamFault, Tools, WrongCall};
use crate::family::Family;
use crate::fault::{Fault, FaultMode};

/// The table of modes, in the order of the reference, of help and of the schema.
pub(super) const MODES: &[FaultMode] = &[
    mode("timeout", TIME_OUT, |fields, _| delay::hold(fields)),
    mode("truncated_response", CUT_ANSWER, |fields, _| {
        let about = "Tokens that the answer keeps; default 10.";
        let max_tokens = count(fields, "max_tokens", about, 0).unwrap_or(TOKENS);
        let parameters = json!({ "max_tokens": max_tokens });
        change_of_answer(parameters, StreamFault::Truncate { max_tokens })
    }),
    mode("rate_limit", PASSING_ERROR, rate_limit::read).answering_upgrades(),
    mode("empty", ODD_ANSWER, |_, _| says(Instead::Nothing)),
    mode("garbage", ODD_ANSWER, |_, _| {
        draws(|choice| StreamFault::Instead(Instead::Garbage { choice }))
    }),
    mode("response_drift", ODD_ANSWER, response_drift::read),
    mode("overloaded", PASSING_ERROR, |_, _| {
        provider_error(json!({}), ModelError::Overloaded)
    })
    .answering_upgrades(),
    mode("server_error", PASSING_ERROR, |fields, _| {
        let status = status(fields, "Status of the error; default 500.", 500);
        let status = status.map_or(500, |status| status.as_u16());
        let parameters = json!({ "error_code": status });
        provider_error(parameters, ModelError::ServerError { status })
    })
    .answering_upgrades(),
    mode("quota_exhausted", LASTING_ERROR, quota_exhausted::read).answering_upgrades(),
    mode("context_length_exceeded", TOO_LONG, |_, _| {
        provider_error(json!({}), ModelError::ContextLength)
    })
    .answering_upgrades(),
    mode("auth_error", LASTING_ERROR, |_, _| {
        provider_error(json!({}), ModelError::Auth)
    })
    .answering_upgrades(),
    mode("model_not_found", LASTING_ERROR, |_, _| {
        provider_error(json!({}), ModelError::ModelNotFound)
    })
    .answering_upgrades(),
    mode("previous_response_not_found", LOST_HISTORY, |_, _| {
        provider_error(json!({}), ModelError::PreviousResponse)
    }),
    mode("connection_limit", OLD_CONNECTION, |_, _| {
        provider_error(json!({}), ModelError::ConnectionLimit)
    }),
    mode("content_filter", DECLINED, |_, _| says(Instead::Filtered)),
    mode("refusal", DECLINED, |_, _| {
        draws(|choice| StreamFault::Instead(Instead::Refusal { choice }))
    }),
    wrong_call("malformed_tool_call", |_, tools| {
        calls_wrongly(CallError::MalformedArguments, tools)
    }),
    wrong_call("unknown_tool_call", |_, tools| {
        calls_wrongly(CallError::UnknownTool, tools)
    }),
    wrong_call("wrong_tool_arguments", |_, tools| {
        calls_wrongly(CallError::WrongArguments, tools)
    }),
    mode("slow_stream", DELAY, slow_stream::read).delaying(),
    mode("stream_stall", TIME_OUT, stream_stall::read),
    mode("stream_cut", CUT_ANSWER, |fields, _| {
        let after_tokens = after_tokens(fields);
        let parameters = json!({ "after_tokens": after_tokens });
        change_of_answer(parameters, StreamFault::Cut { after_tokens })
    }),
    mode("stream_error", CUT_ANSWER, |fields, _| {
        let after_tokens = after_tokens(fields);
        let error = ModelError::Overloaded;
        let change = StreamFault::Error {
            after_tokens,
            error,
        };
        change_of_answer(json!({ "after_tokens": after_tokens }), change)
    }),
    mode("duplicate_chunk", ODD_ANSWER, |_, _| {
        changes(StreamFault::Repeat)
    }),
    mode("missing_terminator", CUT_ANSWER, |_, _| {
        changes(StreamFault::Unterminated)
    }),
    mode("json_for_stream", ODD_ANSWER, |_, _| {
        changes(StreamFault::WholeForStream)
    }),
];

const fn mode(
    name: &'static str,
    remedy: &'static str,
    read: fn(&mut Fields<'_, '_>, &Tools) -> Fault,
) -> FaultMode {
    FaultMode::new(Family::Llm, name, remedy, read)
}

const fn wrong_call(
    name: &'static str,
    read: fn(&mut Fields<'_, '_>, &Tools) -> Fault,
) -> FaultMode {
    mode(name, TOOL_CALL, read).of_calls()
}

/// A change without parameters.
fn changes(change: StreamFault) -> Fault {
    change_of_answer(json!({}), change)
}

/// A change without parameters that depends on a draw.
fn draws(change: fn(u64) -> StreamFault) -> Fault {
    drawn_change(json!({}), change)
}

fn says(instead: Instead) -> Fault {
    changes(StreamFault::Instead(instead))
}

/// The first call of these tools is wrong. `tool` has the name by which the model calls it.
fn calls_wrongly(error: CallError, tools: &Tools) -> Fault {
    let tools = tools.clone();
    drawn_change(json!({}), move |choice| {
        let tools = tools.clone();
        StreamFault::Rewrite(Rewrite::Call(WrongCall {
            error,
            tools,
            choice,
        }))
    })
}

/// Tokens that arrive before an answer is cut, if nothing else is written.
const TOKENS: u64 = 10;

fn after_tokens(fields: &mut Fields<'_, '_>) -> u64 {
    let about = "Tokens that still arrive; default 10.";
    count(fields, "after_tokens", about, 0).unwrap_or(TOKENS)
}
