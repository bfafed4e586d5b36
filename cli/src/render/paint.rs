//! Colours, on terminals that support and allow them.

use std::fmt::Display;
use std::io::IsTerminal;

const GOOD: &str = "\x1b[32m";
const BAD: &str = "\x1b[31m";
const NOTABLE: &str = "\x1b[33m";
const NAME: &str = "\x1b[36m";
const STRONG: &str = "\x1b[1m";
const FAINT: &str = "\x1b[2m";
const END: &str = "\x1b[0m";

/// Colours of the log library, beside ours.
const OF_THE_LOG: [&str; 3] = ["\x1b[3m", "\x1b[34m", "\x1b[35m"];

/// The colour code that a text begins with, if it is one that Squall writes.
pub(super) fn code_at(text: &str) -> Option<&'static str> {
    let ours = [GOOD, BAD, NOTABLE, NAME, STRONG, FAINT, END];
    let mut codes = ours.into_iter().chain(OF_THE_LOG);
    codes.find(|code| text.starts_with(code))
}

/// Whether output is coloured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For stdout.
    pub(crate) fn stdout() -> Self {
        Self {
            on: std::io::stdout().is_terminal() && allowed(),
        }
    }

    /// For stderr.
    pub(crate) fn stderr() -> Self {
        Self {
            on: std::io::stderr().is_terminal() && allowed(),
        }
    }

    /// Whether there are colours.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// No colour at all.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    /// Success.
    pub(crate) fn good(self, text: impl Display) -> String {
        self.code(GOOD, text)
    }

    /// Failure.
    pub(crate) fn bad(self, text: impl Display) -> String {
        self.code(BAD, text)
    }

    /// Attention.
    pub(crate) fn notable(self, text: impl Display) -> String {
        self.code(NOTABLE, text)
    }

    /// Names: profiles, rules, commands to type.
    pub(crate) fn name(self, text: impl Display) -> String {
        self.code(NAME, text)
    }

    /// Headings.
    pub(crate) fn strong(self, text: impl Display) -> String {
        self.code(STRONG, text)
    }

    /// Less important text.
    pub(crate) fn faint(self, text: impl Display) -> String {
        self.code(FAINT, text)
    }

    fn code(self, code: &str, text: impl Display) -> String {
        if self.on {
            format!("{code}{text}{END}")
        } else {
            text.to_string()
        }
    }
}

/// <https://no-color.org>: any value but the empty one disables colours.
fn allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
