//! What an answer says about itself, added up reading by reading.

use crate::dialect::{Dialect, Quirk};
use crate::model::{DeltaKind, Finish, Reading};
use crate::tokens::{self, Counting};

/// Tool calls whose names are kept.
pub(crate) const TOOL_CALL_LIMIT: usize = 64;

/// Bytes of a name that are kept.
pub(crate) const NAME_LIMIT: usize = 128;

/// What was read of a model call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelCall {
    /// The model asked for; where the request was not read, the one that answered.
    pub model: Option<String>,
    /// Whether a stream was asked for; where the request was not read, whether one came.
    pub stream: bool,
    /// Tokens in, as the provider counts.
    pub input_tokens: Option<u64>,
    /// Tokens out, as the provider counts.
    pub output_tokens: Option<u64>,
    /// Why the model stopped; of several choices the first one's reason.
    pub finish: Option<Finish>,
    /// Names of the tools the model called, in order.
    pub tool_calls: Vec<String>,
}

/// What a model call uses up, as far as its answer has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens in.
    pub input: Option<u64>,
    /// Tokens out.
    pub output: Option<u64>,
    /// Of both, those that Squall counted because the provider did not.
    pub estimated: u64,
}

/// What an answer has said about itself so far. It is bounded, but for the text that has to be
/// counted where the provider does not count.
#[derive(Debug, Clone)]
pub struct Tally {
    dialect: &'static dyn Dialect,
    model: Option<String>,
    usage: (Option<u64>, Option<u64>),
    finish: Option<Finish>,
    refused: bool,
    /// How tokens are counted: by the model of the request, or the first that the answer names.
    counting: Option<Counting>,
    /// Deltas that were not counted yet: they are when nothing else tells the tokens out.
    uncounted: Vec<String>,
    /// Tokens of the deltas that were.
    pub(crate) written: u64,
    /// The answer holds text that the provider has not counted in the same event.
    said: bool,
    /// The tokens out that the answer announces were counted by Squall, not by the provider.
    pub(crate) counted_anew: bool,
    /// Tools by choice and call, in the order in which they were called.
    tools: Vec<((u64, u64), String)>,
}

impl Tally {
    /// Of an answer in `dialect`, nothing of which was read. `counting`: how its model counts;
    /// `None` when it is not known which was asked.
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

    /// The model that answered.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// How it counts what the provider does not.
    pub fn counting(&self) -> Counting {
        self.counting.unwrap_or_default()
    }

    /// The provider's counts, and Squall's own where the provider gave none to an answer: those of
    /// the model's vocabulary, where that is public, which is read if need be. `request` counts the
    /// request's tokens in that way.
    ///
    /// A provider that counts while the answer comes (as `anthropic` does: 1 at its beginning) is
    /// believed once the answer has ended, and before that if it counts more than Squall.
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

    /// The call it answered: that of `model`, or of the model that answered.
    pub fn call(mut self, model: Option<String>, stream: bool) -> ModelCall {
        // Stable: choice by choice, each in its own order.
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

    /// Adds what an event, or a whole answer, says.
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

    /// Tokens of all deltas so far, each counted by itself.
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

/// The beginning of a name, as long as names are kept.
pub(crate) fn shortened(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_LIMIT)].to_owned()
}
