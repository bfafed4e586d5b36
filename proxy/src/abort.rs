//! How an exchange that breaks off must look to the agent.
//!
//! hyper turns an error of a service or a body into a close: FIN on HTTP/1.1, `RST_STREAM` on
//! HTTP/2 with the reason of the first [`h2::Error`] in the error's source chain. A reset on
//! HTTP/1.1 needs the socket too: whoever makes a [`Abort`] with [`Ending::Reset`] also calls
//! `reset_on_close` on the connection's control.

use squall_profiles::plan::Ending;
use std::error::Error;
use std::fmt;

/// An exchange that ends without (the rest of) an answer.
#[derive(Debug)]
pub(crate) struct Abort {
    ending: Ending,
    reason: h2::Error,
    why: String,
    by_rule: bool,
}

impl Abort {
    /// An end that looks like `ending` on HTTP/1.1 and like `reason` on HTTP/2; `why` is for the
    /// journal.
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

    /// The same end, wanted by a rule.
    #[must_use]
    pub(crate) fn by_rule(mut self) -> Self {
        self.by_rule = true;
        self
    }

    /// Whether a rule wanted it, as opposed to an upstream that broke off.
    pub(crate) fn is_by_rule(&self) -> bool {
        self.by_rule
    }

    /// How it looks on HTTP/1.1.
    pub(crate) fn ending(&self) -> Ending {
        self.ending
    }

    /// Why, in words for the journal.
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
