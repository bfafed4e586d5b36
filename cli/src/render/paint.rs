//! Colour, where a person looks and did not say no.

use std::fmt::Display;
use std::io::IsTerminal;

/// Whether output is coloured. Copy it to whatever prints.
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

    /// No colour at all.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    /// What went well.
    pub(crate) fn good(self, text: impl Display) -> String {
        self.code("32", text)
    }

    /// What went wrong.
    pub(crate) fn bad(self, text: impl Display) -> String {
        self.code("31", text)
    }

    /// What deserves a look.
    pub(crate) fn notable(self, text: impl Display) -> String {
        self.code("33", text)
    }

    /// Names: profiles, rules, commands to type.
    pub(crate) fn name(self, text: impl Display) -> String {
        self.code("36", text)
    }

    /// Headings.
    pub(crate) fn strong(self, text: impl Display) -> String {
        self.code("1", text)
    }

    /// What can be skipped.
    pub(crate) fn faint(self, text: impl Display) -> String {
        self.code("2", text)
    }

    fn code(self, code: &str, text: impl Display) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
}

/// <https://no-color.org>: any value but the empty one says no.
fn allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
