//! Changes to a model's response that a plan can contain.

use std::time::Duration;

use squall_dialects::model::ModelError;

use super::Tools;

/// A change to a model's response, streamed or not.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamFault {
    /// The response ends after this many tokens, with the provider's length reason.
    Truncate {
        /// Tokens kept, at least 0.
        max_tokens: u64,
    },
    /// The connection breaks after this many tokens.
    Cut {
        /// Tokens that still arrive.
        after_tokens: u64,
    },
    /// Tokens arrive slowly.
    Slow {
        /// Delay before the first token.
        time_to_first_token: Duration,
        /// Rate afterwards; `None`: as the upstream sends.
        tokens_per_second: Option<f64>,
    },
    /// The response pauses after this many tokens, then continues.
    Stall {
        /// Tokens before the pause.
        after_tokens: u64,
        /// Duration of the pause.
        wait: Duration,
    },
    /// The provider reports an error after this many tokens of a stream, then ends it.
    Error {
        /// Tokens before the error.
        after_tokens: u64,
        /// The reported error.
        error: ModelError,
    },
    /// A stream event with tokens is sent twice.
    Repeat,
    /// A stream lacks its end mark.
    Unterminated,
    /// A whole response replaces a requested stream.
    WholeForStream,
    /// The model's content is replaced.
    Instead(Instead),
    /// The model's content is rewritten.
    Rewrite(Rewrite),
}

/// The replacement of a model's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// Empty content.
    Nothing,
    /// Empty content, stopped by a content filter.
    Filtered,
    /// A refusal.
    Refusal {
        /// Selects the words; from this exchange's draw.
        choice: u64,
    },
    /// Meaningless characters.
    Garbage {
        /// Selects the characters; from this exchange's draw.
        choice: u64,
    },
}

/// How a response is rewritten.
#[derive(Debug, Clone, PartialEq)]
pub enum Rewrite {
    /// Its texts change.
    Drift(ResponseDrift),
    /// One of its tool calls is changed.
    Call(WrongCall),
}

/// The first tool call that can be made invalid, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongCall {
    /// The kind of error.
    pub error: CallError,
    /// The tools whose calls are considered.
    pub tools: Tools,
    /// Selects the new name or arguments; from this exchange's draw.
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

/// The error in a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    /// The tool does not exist.
    UnknownTool,
    /// The arguments are not JSON.
    MalformedArguments,
    /// The arguments are JSON, but do not fit the tool.
    WrongArguments,
}

/// A change to a model's text, as after an unannounced release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResponseDrift {
    /// The kind of change.
    pub kind: TextDrift,
    /// The degree of change.
    pub severity: Severity,
    /// Selects words or fields; from this exchange's draw.
    pub choice: u64,
}

/// The changed property of a model's text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TextDrift {
    /// Field names in its JSON.
    FieldNames,
    /// Its length.
    Length {
        /// The factor by which it grows or shrinks, above 1.
        factor: f64,
        /// Whether it shrinks.
        compress: bool,
    },
    /// Its format: JSON, a list or prose.
    Format,
    /// The wording of a refusal.
    Refusal,
    /// Its formality.
    Tone,
}

squall_documents::named! {
    /// The degree of a text's change.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// Hardly noticeable to a person.
        Subtle = "subtle",
        /// Noticeable to a parser.
        #[default]
        Moderate = "moderate",
        /// Obvious.
        Significant = "significant",
    }
}

impl StreamFault {
    /// Whether its effect, or a token count that it reports, depends on a number of tokens.
    pub fn counts_tokens(&self) -> bool {
        self.decides_the_answer() || matches!(self, Self::Slow { .. } | Self::Stall { .. })
    }

    /// Whether it decides the content or the end of the response, so that no other change can.
    pub fn decides_the_answer(&self) -> bool {
        matches!(
            self,
            Self::Truncate { .. } | Self::Instead(_) | Self::Cut { .. } | Self::Error { .. }
        )
    }

    /// Whether it only has a form in streams.
    pub fn needs_a_stream(&self) -> bool {
        matches!(
            self,
            Self::Error { .. } | Self::Repeat | Self::Unterminated | Self::WholeForStream
        )
    }

    /// The error that it reports in the middle of a stream, if any.
    pub fn error(&self) -> Option<&ModelError> {
        if let Self::Error { error, .. } = self {
            Some(error)
        } else {
            None
        }
    }
}
