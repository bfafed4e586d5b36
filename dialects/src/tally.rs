//! Adds up the usage and other data of an answer, reading by reading.

use crate::dialect::{Dialect, Quirk};
use crate::model::{DeltaKind, Finish, Reading};
use crate::tokens::{self, Counting};

/// Maximum number of tool calls whose names are kept.
pub(crate) const TOOL_CALL_LIMIT: usize = 64;

/// Longest kept part of a name, in bytes.
pub(crate) const NAME_LIMIT: usize = 128;

/// The data of a model call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelCall {
    /// The requested model; if the request was not read, the model in the answer.
    pub model: Option<String>,
    /// Whether a stream was requested; if the request was not read, whether one was received.
    pub stream: bool,
    /// Input tokens, as counted by the provider.
    pub input_tokens: Option<u64>,
    /// Output tokens, as counted by the provider.
    pub output_tokens: Option<u64>,
    /// The finish reason; with several choices, that of the first.
    pub finish: Option<Finish>,
    /// Names of the tools the model called, in order.
    pub tool_calls: Vec<String>,
}

/// The token usage of a model call so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input tokens.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// The part of both that Squall counted because the provider did not.
    pub estimated: u64,
}

/// The data of an answer so far. Its size is bounded, except for text that must be counted because the provider
/// does not count it.
#[derive(Debug, Clone)]
pub struct Tally {
    dialect: &'static dyn Dialect,
    model: Option<String>,
    usage: (Option<u64>, Option<u64>),
    finish: Option<Finish>,
    refused: bool,
    /// How tokens are counted, from the model in the request, or else from the first one in the answer.
    counting: Option<Counting>,
    /// Deltas that are not counted yet. They are counted only if nothing else gives the output tokens.
    uncounted: Vec<String>,
    /// Tokens of the counted deltas.
    pub(crate) written: u64,
    /// The answer contains text without a provider's count in the same event.
    said: bool,
    /// Squall, not the provider, counted the output tokens in the answer.
    pub(crate) counted_anew: bool,
    /// Tools by choice and call, in call order.
    tools: Vec<((u64, u64), String)>,
}

impl Tally {
    /// An empty tally for an answer in `dialect`. `counting` is the token counting of its model; `None` if the
    /// model is unknown.
    pub fn new(dialect: &'static dyn Dialect, counting: Option<Counting>) -> Self {
        Self {
            dialect,
            model: None,
            usage: (None, None),
            finish: None,
            refused: false,
            counting,
            uncounted: Vec::new(),
            written: 0,
            said: false,
            counted_anew: false,
            tools: Vec::new(),
        }
    }

    /// The model in the answer.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// How tokens are counted if the provider does not count them.
    pub fn counting(&self) -> Counting {
        self.counting.unwrap_or_default()
    }

    /// The provider's counts, or else Squall's own. Squall counts with the model's vocabulary if that is public,
    /// loading it if necessary. `request` counts the request's tokens with this counting.
    ///
    /// Some providers count while streaming; `anthropic` starts with 1. Such a count is used after the answer has
    /// ended, or earlier if it is at least as high as Squall's.
    pub fn tokens(&mut self, request: impl FnOnce(Counting) -> u64) -> Tokens {
        let ended = self.finish.is_some();
        let said = self.said || ended;
        let (input, output) = self.usage;
        let told = output.filter(|told| ended || *told >= self.written());
        let mut tokens = Tokens {
            input,
            output,
            estimated: 0,
        };
        if said && input.is_none() {
            let request = request(self.counting());
            tokens.input = Some(request);
            tokens.estimated += request;
        }
        if said && told.is_none() {
            let written = self.written();
            tokens.output = Some(written);
            tokens.estimated += written;
        } else if self.counted_anew {
            tokens.estimated += output.unwrap_or_default();
        }
        tokens
    }

    /// The call with the requested `model`, or else the model in the answer.
    pub fn call(mut self, model: Option<String>, stream: bool) -> ModelCall {
        // The sort is stable, so calls of one choice keep their order.
        self.tools.sort_by_key(|((choice, _), _)| *choice);
        ModelCall {
            model: model.or(self.model),
            stream,
            input_tokens: self.usage.0,
            output_tokens: self.usage.1,
            finish: self.finish,
            tool_calls: self.tools.into_iter().map(|(_, name)| name).collect(),
        }
    }

    /// Adds the data of an event or a whole answer.
    pub fn note(&mut self, reading: &Reading<'_>) {
        if let (None, Some(model)) = (&self.model, &reading.model) {
            self.model = Some(shortened(model));
        }
        if self.counting.is_none() {
            self.counting = reading.model.as_deref().map(Counting::of_model);
        }
        let counts_itself = reading.usage.is_some_and(|usage| usage.output.is_some());
        if !counts_itself {
            let speaking = reading.deltas.iter().filter(|delta| delta.speaks());
            self.uncounted
                .extend(speaking.map(|delta| delta.text.to_string()));
            self.said |= !self.uncounted.is_empty();
        }
        for delta in &reading.deltas {
            self.refused |= delta.kind == DeltaKind::Refusal && !delta.text.is_empty();
            if delta.kind == DeltaKind::ToolName {
                self.tool(delta.choice, delta.part, &delta.text);
            }
        }
        for ended in &reading.finishes {
            if ended.choice > 0 && self.finish.is_some() {
                continue;
            }
            let of_choice = |(key, _): &((u64, u64), String)| key.0 == ended.choice;
            let called = self.dialect.provider().has(Quirk::ToolCallsEndAsDone)
                && self.tools.iter().any(of_choice);
            self.finish = Some(match &ended.finish {
                Finish::Done if self.refused => Finish::Refused,
                Finish::Done if called => Finish::Tool,
                Finish::Foreign(word) => Finish::Foreign(shortened(word)),
                other => other.clone(),
            });
        }
        if let Some(usage) = reading.usage {
            self.usage = (usage.input.or(self.usage.0), usage.output.or(self.usage.1));
        }
    }

    /// Tokens of all deltas so far, each counted separately.
    fn written(&mut self) -> u64 {
        let counting = self.counting();
        let deltas = self.uncounted.drain(..);
        self.written += deltas
            .map(|text| tokens::count_piece(counting, &text))
            .sum::<u64>();
        self.written
    }

    fn tool(&mut self, choice: u64, call: u64, name: &str) {
        let known = self.tools.iter().any(|(key, _)| *key == (choice, call));
        if !name.is_empty() && !known && self.tools.len() < TOOL_CALL_LIMIT {
            self.tools.push(((choice, call), shortened(name)));
        }
    }
}

/// The start of a name, up to the limit.
pub(crate) fn shortened(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_LIMIT)].to_owned()
}
