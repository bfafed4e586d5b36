//! Faults of model calls, a file each, written against the neutral call: the dialect of the request
//! puts them into the provider's words.

mod auth_error;
mod content_filter;
mod context_length_exceeded;
mod duplicate_chunk;
mod empty;
mod garbage;
mod json_for_stream;
mod malformed_tool_call;
mod missing_terminator;
mod model_not_found;
mod overloaded;
mod quota_exhausted;
mod rate_limit;
mod refusal;
mod response_drift;
mod server_error;
mod slow_stream;
mod stream_cut;
mod stream_error;
mod stream_stall;
mod truncated_response;
mod unknown_tool_call;
mod wrong_tool_arguments;

use std::fmt::Debug;

use serde_json::{Map, Value};

use super::mode::{FaultMode, Fields, Tools, family};
// The same on the wire, whoever is asked.
use super::network::timeout;
use crate::dice::Dice;
use crate::fault::{CallError, Rewrite, StreamFault, WrongCall};
use crate::plan::{Plan, VerdictIndex};
use crate::profile::amounts::count;

family! {
    /// One way a model call can go wrong.
    LlmFault of Llm:
    timeout::Timeout,
    truncated_response::TruncatedResponse,
    rate_limit::RateLimit,
    empty::Empty,
    garbage::Garbage,
    response_drift::ResponseDrift,
    overloaded::Overloaded,
    server_error::ServerError,
    quota_exhausted::QuotaExhausted,
    context_length_exceeded::ContextLengthExceeded,
    auth_error::AuthError,
    model_not_found::ModelNotFound,
    content_filter::ContentFilter,
    refusal::Refusal,
    malformed_tool_call::MalformedToolCall,
    unknown_tool_call::UnknownToolCall,
    wrong_tool_arguments::WrongToolArguments,
    slow_stream::SlowStream,
    stream_stall::StreamStall,
    stream_cut::StreamCut,
    stream_error::StreamError,
    duplicate_chunk::DuplicateChunk,
    missing_terminator::MissingTerminator,
    json_for_stream::JsonForStream,
}

/// A fault that changes a model's answer as it comes: a [`StreamFault`], from which all else follows.
trait AnswerFault: Debug + Clone + PartialEq {
    /// The word in files.
    const NAME: &'static str;

    /// Whether it makes a call in the answer wrong: there `tool` is that call's name.
    const OF_CALLS: bool = false;

    /// Reads its parameters. `None`: what is written makes no fault; the reader knows why.
    fn read(fields: &mut Fields<'_, '_>, tools: &Tools) -> Option<Self>;

    /// The change; the draw that its choices hang on comes with each exchange.
    fn change(&self) -> StreamFault;

    /// Why it changes no answer at all, if what was written asks for that.
    fn idle_because(&self) -> Option<&'static str> {
        None
    }

    /// Writes down the parameters as they are used, in the words of files.
    fn describe(&self, _into: &mut Map<String, Value>) {}
}

impl<F: AnswerFault> FaultMode for F {
    const NAME: &'static str = <F as AnswerFault>::NAME;
    const OF_CALLS: bool = <F as AnswerFault>::OF_CALLS;

    fn read(fields: &mut Fields<'_, '_>, tools: &Tools) -> Option<Self> {
        <F as AnswerFault>::read(fields, tools)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, dice: &mut Dice) -> Result<(), String> {
        if let Some(why) = self.idle_because() {
            return Err(why.to_owned());
        }
        let mut change = self.change();
        if let Some(choice) = change.choice_mut() {
            *choice = dice.next_choice();
        }
        plan.edit_answer(verdict, change)
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        self.describe(into);
    }

    fn is_random(&self) -> bool {
        self.change().choice_mut().is_some()
    }

    fn counts_tokens(&self) -> bool {
        self.change().counts_tokens()
    }

    fn hangs_on_tokens(&self) -> bool {
        let change = self.change();
        let says_instead = matches!(change, StreamFault::Instead(_) | StreamFault::Rewrite(_));
        change.counts_tokens() && !says_instead
    }

    fn decides_the_answer(&self) -> bool {
        self.change().decides_the_answer()
    }
}

/// Tokens that come through before an answer is cut, when nothing else is written.
const TOKENS: u64 = 10;

fn read_after_tokens(fields: &mut Fields<'_, '_>) -> u64 {
    let about = "Tokens that still arrive; default 10.";
    count(fields, "after_tokens", about, 0).unwrap_or(TOKENS)
}

/// A call of these tools is wrong; which, `tool` says: the name by which the model calls it.
fn wrong_call(error: CallError, tools: &Tools) -> StreamFault {
    StreamFault::Rewrite(Rewrite::Call(WrongCall {
        error,
        tools: tools.clone(),
        choice: 0,
    }))
}
