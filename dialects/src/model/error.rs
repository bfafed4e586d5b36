//! Errors of models, and the limits that some of them tell of.

use std::time::Duration;

/// An error as a provider's model endpoint reports it, before it is put into a dialect's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelError {
    /// Too many requests or tokens (429); the wait to announce.
    RateLimit {
        /// What there were too many of.
        scope: LimitScope,
        /// What the wait in headers or body says; `None` leaves it out.
        retry_after: Option<Duration>,
        /// The figures of a limit that is really kept; `None`: those of a usual account.
        figures: Option<LimitFigures>,
    },
    /// The account's credit or quota is used up (429, 402 …); waiting does not help.
    QuotaExhausted,
    /// The request does not fit into the model's context (400).
    ContextLength,
    /// The prompt was stopped by a content filter (400; where providers have no such error, what
    /// comes closest).
    ContentFilter,
    /// The key is wrong (401).
    Auth,
    /// There is no such model (404).
    ModelNotFound,
    /// The provider took too long (408, 504).
    Timeout,
    /// The provider failed (500 unless another 5xx is named).
    ServerError {
        /// Status, 500 to 599.
        status: u16,
    },
    /// The provider has no capacity (503, 529 …).
    Overloaded,
}

impl ModelError {
    /// Whether providers' words for it say how many tokens the request holds.
    pub fn counts_input(&self) -> bool {
        match self {
            Self::RateLimit { scope, figures, .. } => {
                *scope == LimitScope::Tokens && figures.is_none()
            }
            Self::ContextLength | Self::ContentFilter => true,
            Self::QuotaExhausted
            | Self::Auth
            | Self::ModelNotFound
            | Self::Timeout
            | Self::ServerError { .. }
            | Self::Overloaded => false,
        }
    }
}

/// What there is of a limit, in requests or tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitFigures {
    /// So many may be asked for in a minute, at least 1.
    pub per_minute: u64,
    /// Of which so many are taken.
    pub used: u64,
    /// So many this request would take. More than `per_minute` never fit.
    pub requested: u64,
}

impl LimitFigures {
    /// What is left.
    pub fn remaining(self) -> u64 {
        self.per_minute.saturating_sub(self.used)
    }

    /// Whether no wait helps.
    pub fn is_too_large(self) -> bool {
        self.requested > self.per_minute
    }
}

/// What a rate limit counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LimitScope {
    /// Requests.
    #[default]
    Requests,
    /// Tokens.
    Tokens,
}
