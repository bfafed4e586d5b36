//! Errors of model endpoints, and the limits in some of them.

use std::time::Duration;

/// An error of a provider's model endpoint, independent of the dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelError {
    /// Too many requests or tokens (429).
    RateLimit {
        /// The limited quantity.
        scope: LimitScope,
        /// The announced wait, in headers or body; `None` omits it.
        retry_after: Option<Duration>,
        /// The figures of an enforced limit; `None`: those of a typical account.
        figures: Option<LimitFigures>,
    },
    /// The account's credit or quota is exhausted (429, 402 …); waiting does not help.
    QuotaExhausted,
    /// The request does not fit into the model's context window (400).
    ContextLength,
    /// A content filter rejected the prompt (400; or the closest error of the provider).
    ContentFilter,
    /// The API key is invalid (401).
    Auth,
    /// The model does not exist (404).
    ModelNotFound,
    /// The provider no longer has the response that the request continues (400).
    PreviousResponse,
    /// The WebSocket of the call has been open for as long as the provider allows (400).
    ConnectionLimit,
    /// The provider timed out (408, 504).
    Timeout,
    /// The provider failed (500, or another 5xx status).
    ServerError {
        /// Status, 500 to 599.
        status: u16,
    },
    /// The provider has no capacity (503, 529 …).
    Overloaded,
}

impl ModelError {
    /// Whether providers report the request's token count in this error.
    pub fn counts_input(&self) -> bool {
        match self {
            Self::RateLimit { scope, figures, .. } => {
                *scope == LimitScope::Tokens && figures.is_none()
            }
            Self::ContextLength | Self::ContentFilter => true,
            Self::QuotaExhausted
            | Self::Auth
            | Self::ModelNotFound
            | Self::PreviousResponse
            | Self::ConnectionLimit
            | Self::Timeout
            | Self::ServerError { .. }
            | Self::Overloaded => false,
        }
    }
}

/// The figures of a limit, in requests or tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitFigures {
    /// The limit per minute, at least 1.
    pub per_minute: u64,
    /// The used part of the limit.
    pub used: u64,
    /// The amount that this request needs. If it exceeds `per_minute`, the request can never succeed.
    pub requested: u64,
}

impl LimitFigures {
    /// The remaining part.
    pub fn remaining(self) -> u64 {
        self.per_minute.saturating_sub(self.used)
    }

    /// Whether waiting cannot help.
    pub fn is_too_large(self) -> bool {
        self.requested > self.per_minute
    }
}

/// The quantity that a rate limit counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LimitScope {
    /// Requests.
    #[default]
    Requests,
    /// Tokens.
    Tokens,
}
