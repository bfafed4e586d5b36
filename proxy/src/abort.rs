//! How an aborted exchange appears to the agent.
//!
//! hyper turns an error of a service or a body into a close: FIN on HTTP/1.1, `RST_STREAM` on
//! HTTP/2 with the reason of the first [`h2::Error`] in the source chain. A reset on HTTP/1.1 also
//! needs the socket: the code that creates an [`Abort`] with [`Ending::Reset`] calls
//! `reset_on_close` on the connection's control.

use squall_profiles::plan::Ending;
use std::error::Error;
use std::fmt;

/// An exchange that ends without a complete response.
#[derive(Debug)]
pub(crate) struct Abort {
    ending: Ending,
    reason: h2::Error,
    why: String,
    by_rule: bool,
}

impl Abort {
    /// An abort with `ending` on HTTP/1.1 and `reason` on HTTP/2; `why` is for the journal.
    pub(crate) fn new(ending: Ending, reason: h2::Reason, why: impl Into<String>) -> Self {
        Self {
            ending,
            reason: reason.into(),
            why: why.into(),
            by_rule: false,
        }
    }

    /// FIN with the framing incomplete; `INTERNAL_ERROR` on HTTP/2.
    pub(crate) fn close(why: impl Into<String>) -> Self {
        Self::new(Ending::Close, h2::Reason::INTERNAL_ERROR, why)
    }

    /// RST; `INTERNAL_ERROR` on HTTP/2.
    pub(crate) fn reset(why: impl Into<String>) -> Self {
        Self::new(Ending::Reset, h2::Reason::INTERNAL_ERROR, why)
    }

    /// Marks the abort as a rule's effect.
    #[must_use]
    pub(crate) fn by_rule(mut self) -> Self {
        self.by_rule = true;
        self
    }

    /// Whether a rule caused it, rather than an upstream.
    pub(crate) fn is_by_rule(&self) -> bool {
        self.by_rule
    }

    /// The ending on HTTP/1.1.
    pub(crate) fn ending(&self) -> Ending {
        self.ending
    }

    /// The reason, for the journal.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for Abort {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.reason)
    }
}
