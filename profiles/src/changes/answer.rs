//! What becomes of a model's answer: the words of plans for it.

use std::time::Duration;

use squall_dialects::model::ModelError;

use super::Tools;

/// A change to a model's answer, streamed or not.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamFault {
    /// The answer ends after that many tokens, with the provider's length reason.
    Truncate {
        /// Tokens kept, at least 0.
        max_tokens: u64,
    },
    /// The connection breaks after that many tokens.
    Cut {
        /// Tokens that still arrive.
        after_tokens: u64,
    },
    /// Tokens come slowly.
    Slow {
        /// Wait before the first token.
        time_to_first_token: Duration,
        /// Pace after it; `None`: as the upstream sends.
        tokens_per_second: Option<f64>,
    },
    /// The answer halts after that many tokens, then goes on.
    Stall {
        /// Tokens that arrive before.
        after_tokens: u64,
        /// How long it halts.
        wait: Duration,
    },
    /// The provider reports an error after that many tokens of a stream, then ends it.
    Error {
        /// Tokens that arrive before.
        after_tokens: u64,
        /// What it reports.
        error: ModelError,
    },
    /// An event of a stream that carries tokens comes twice.
    Repeat {
        /// What the choice of the event hangs on: this exchange's draw.
        choice: u64,
    },
    /// A stream lacks its end mark.
    Unterminated,
    /// A whole answer comes where a stream was asked for.
    WholeForStream,
    /// The model says something else.
    Instead(Instead),
    /// What the model says is rewritten.
    Rewrite(Rewrite),
}

/// What a model says instead of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// Nothing.
    Nothing,
    /// Nothing, because a content filter stopped it.
    Filtered,
    /// A refusal.
    Refusal {
        /// What its words hang on: this exchange's draw.
        choice: u64,
    },
    /// Characters without meaning.
    Garbage {
        /// What they hang on: this exchange's draw.
        choice: u64,
    },
}

/// How an answer is rewritten.
#[derive(Debug, Clone, PartialEq)]
pub enum Rewrite {
    /// Its texts drift.
    Drift(ResponseDrift),
    /// One of its tool calls is wrong.
    Call(WrongCall),
}

/// The first tool call that can be made wrong, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongCall {
    /// What is wrong with it.
    pub error: CallError,
    /// Of which tools' calls it is the first.
    pub tools: Tools,
    /// What the new name or arguments hang on: this exchange's draw.
    pub choice: u64,
}

impl WrongCall {
    /// The first call of any tool.
    pub fn of_any_tool(error: CallError, choice: u64) -> Self {
        Self {
            error,
            tools: Tools::default(),
            choice,
        }
    }
}

/// What is wrong with a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    /// It names a tool that there is not.
    UnknownTool,
    /// Its arguments are no JSON.
    MalformedArguments,
    /// Its arguments are JSON, but not what the tool asks for.
    WrongArguments,
}

/// How a model's text drifts, as after an unannounced release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResponseDrift {
    /// What drifts.
    pub kind: TextDrift,
    /// How much.
    pub severity: Severity,
    /// What the choice of words or fields hangs on: this exchange's draw.
    pub choice: u64,
}

/// What drifts in a model's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TextDrift {
    /// Names of fields in its JSON.
    FieldNames,
    /// How long it is.
    Length {
        /// By what factor it grows or shrinks, above 1.
        factor: f64,
        /// Whether it shrinks.
        compress: bool,
    },
    /// Whether it is JSON, a list or prose.
    Format,
    /// The words of a refusal.
    Refusal,
    /// How formal it is.
    Tone,
}

/// How much an answer drifts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// So that a person would hardly notice.
    Subtle,
    /// So that a parser would.
    #[default]
    Moderate,
    /// So that nobody could miss it.
    Significant,
}

impl StreamFault {
    /// Whether what it does, or what it says of tokens, hangs on how many there are.
    pub fn counts_tokens(&self) -> bool {
        match self {
            Self::Truncate { .. }
            | Self::Instead(_)
            | Self::Rewrite(_)
            | Self::Cut { .. }
            | Self::Error { .. }
            | Self::Slow { .. }
            | Self::Stall { .. } => true,
            Self::Repeat { .. } | Self::Unterminated | Self::WholeForStream => false,
        }
    }

    /// Whether it decides what the answer says or how it ends, so that no other can.
    pub fn decides_the_answer(&self) -> bool {
        match self {
            Self::Truncate { .. } | Self::Instead(_) | Self::Cut { .. } | Self::Error { .. } => {
                true
            }
            Self::Rewrite(_)
            | Self::Slow { .. }
            | Self::Stall { .. }
            | Self::Repeat { .. }
            | Self::Unterminated
            | Self::WholeForStream => false,
        }
    }

    /// The error that it reports in the middle of a stream, if it does.
    pub fn error(&self) -> Option<&ModelError> {
        match self {
            Self::Error { error, .. } => Some(error),
            Self::Truncate { .. }
            | Self::Instead(_)
            | Self::Rewrite(_)
            | Self::Cut { .. }
            | Self::Slow { .. }
            | Self::Stall { .. }
            | Self::Repeat { .. }
            | Self::Unterminated
            | Self::WholeForStream => None,
        }
    }

    /// The draw that its choices hang on, if it makes any.
    pub(crate) fn choice_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Repeat { choice }
            | Self::Instead(Instead::Refusal { choice } | Instead::Garbage { choice })
            | Self::Rewrite(
                Rewrite::Drift(ResponseDrift { choice, .. })
                | Rewrite::Call(WrongCall { choice, .. }),
            ) => Some(choice),
            Self::Truncate { .. }
            | Self::Cut { .. }
            | Self::Slow { .. }
            | Self::Stall { .. }
            | Self::Error { .. }
            | Self::Unterminated
            | Self::WholeForStream
            | Self::Instead(Instead::Nothing | Instead::Filtered) => None,
        }
    }
}
