//! The model call whose answer is edited.

use std::time::Duration;

use squall_dialects::model::{ModelRequest, Reading};
use squall_dialects::tokens::Counting;
use squall_dialects::{Dialect, ErrorContext, Target};

use crate::changes::StreamFault;

/// A model call, as far as editing its answer depends on it.
#[derive(Debug)]
pub struct AnsweredCall {
    pub(super) dialect: &'static dyn Dialect,
    /// Alternative answers to come, at least 1.
    pub(super) choices: u64,
    /// How tokens are counted: by the model of the request, or the first that the answer names; an
    /// estimate where what happens does not depend on them.
    counting: Option<Counting>,
    /// Names of the tools the model may call.
    pub(super) tools: Vec<String>,
    draw: u64,
    account: u64,
    /// Path and query.
    target: String,
    host: String,
    model: Option<String>,
    stream: bool,
    input_tokens: Option<u64>,
    now: Option<Duration>,
}

impl AnsweredCall {
    /// A call in this dialect. By default it asks for one choice.
    pub fn new(dialect: &'static dyn Dialect) -> Self {
        Self {
            dialect,
            choices: 1,
            counting: None,
            tools: Vec::new(),
            draw: 0,
            account: 0,
            target: String::new(),
            host: String::new(),
            model: None,
            stream: false,
            input_tokens: None,
            now: None,
        }
    }

    /// Sets properties of the request: the model, the number of choices and the tools.
    #[must_use]
    pub fn for_request(mut self, request: &ModelRequest) -> Self {
        self.choices = request.choices.max(1);
        if self.counting.is_none() {
            self.counting = request.model.as_deref().map(Counting::of_model);
        }
        self.tools.clone_from(&request.tools);
        self
    }

    /// Tokens need no exact count for a fault that does not depend on them.
    pub(super) fn counts(&mut self, fault: &StreamFault) {
        if !fault.counts_tokens() {
            self.counting = Some(Counting::Estimate);
        }
    }

    /// Counts the tokens of `reading` by the call's model, which it may be the first to name.
    pub(super) fn count(&mut self, reading: &mut Reading<'_>) {
        if self.counting.is_none() {
            self.counting = reading.model.as_deref().map(Counting::of_model);
        }
        reading.count_by(self.counting());
    }

    /// How tokens are counted.
    pub(super) fn counting(&self) -> Counting {
        self.counting.unwrap_or_default()
    }

    /// Sets what a synthetic error may mention.
    #[must_use]
    pub fn about(mut self, context: &ErrorContext<'_>) -> Self {
        (self.draw, self.account) = (context.draw, context.account);
        self.target = format!("{}?{}", context.target.path(), context.target.query());
        context.target.host().clone_into(&mut self.host);
        self.model = context.model.map(str::to_owned);
        self.stream = context.stream;
        self.input_tokens = context.input_tokens;
        self.now = context.now;
        self
    }

    /// The requested model.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// What a synthetic error may mention.
    pub(super) fn error_context(&self) -> ErrorContext<'_> {
        ErrorContext {
            draw: self.draw,
            account: self.account,
            // No error in a stream names a key: it was good when the stream began.
            credential: None,
            target: Target::new(&self.target).at(&self.host),
            model: self.model.as_deref(),
            stream: self.stream,
            previous_response: None,
            on_websocket: false,
            input_tokens: self.input_tokens,
            now: self.now,
        }
    }
}
