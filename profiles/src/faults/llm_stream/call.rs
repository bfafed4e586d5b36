//! What is known of the model call whose answer is edited.

use std::time::Duration;

use squall_dialects::model::{ModelRequest, Reading};
use squall_dialects::tokens::Counting;
use squall_dialects::{Dialect, ErrorContext, Target};

/// A model call, as far as editing its answer hangs on it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) dialect: &'static dyn Dialect,
    /// Alternative answers to come, at least 1.
    pub(super) choices: u64,
    /// Token counts are to end the stream.
    pub(super) usage: bool,
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

impl Call {
    pub(super) fn new(dialect: &'static dyn Dialect, counts: bool) -> Self {
        Self {
            dialect,
            choices: 1,
            usage: false,
            counting: (!counts).then_some(Counting::Estimate),
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

    pub(super) fn asked(&mut self, request: &ModelRequest) {
        self.choices = request.choices.max(1);
        self.usage = request.stream && request.usage_in_stream;
        if self.counting.is_none() {
            self.counting = request.model.as_deref().map(Counting::of_model);
        }
        self.tools.clone_from(&request.tools);
    }

    /// Has the tokens of `reading` counted by the call's model, which it may be the first to name.
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

    pub(super) fn about(&mut self, context: &ErrorContext<'_>) {
        (self.draw, self.account) = (context.draw, context.account);
        self.target = format!("{}?{}", context.target.path(), context.target.query());
        context.target.host().clone_into(&mut self.host);
        self.model = context.model.map(str::to_owned);
        self.stream = context.stream;
        self.input_tokens = context.input_tokens;
        self.now = context.now;
    }

    /// The requested model.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// What a made-up error may mention of it.
    pub(super) fn error_context(&self) -> ErrorContext<'_> {
        ErrorContext {
            draw: self.draw,
            account: self.account,
            // No error in a stream names a key: it was good when the stream began.
            credential: None,
            target: Target::new(&self.target).at(&self.host),
            model: self.model.as_deref(),
            stream: self.stream,
            input_tokens: self.input_tokens,
            now: self.now,
        }
    }
}
