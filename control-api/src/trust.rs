//! What documents that arrive by API may do.
//!
//! Nothing, unless the config says otherwise: `api.env` lists the variables of the daemon's environment
//! that they may name, `safety.commands` lets them start programs.

use std::collections::BTreeSet;
use std::env::VarError;

use arc_swap::ArcSwap;
use squall_profiles::variables::Variables;

/// What documents that arrive by API may do; a reload changes it for the next document.
///
/// Whoever reads a suite that came by API asks [`Self::may_start_programs`] before it takes one with an
/// agent of `type: command`, an `agent.start` or anything else that names a program: `false` is 422 with
/// the line, and `safety.commands` in the words. Its `${NAME}` expand by [`Self::variables`].
#[derive(Debug, Default)]
pub struct Trust(ArcSwap<Terms>);

/// The config's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// `safety.commands`: documents may start programs.
    pub commands: bool,
    /// `api.env`: names of variables that documents may name.
    pub variables: BTreeSet<String>,
}

impl Trust {
    /// By the words of a config.
    pub fn new(terms: Terms) -> Self {
        Self(ArcSwap::from_pointee(terms))
    }

    /// Takes over the words of a config that was read anew.
    pub fn configure(&self, terms: Terms) {
        self.0.store(terms.into());
    }

    /// Whether a document that came by API may start programs; `false` unless the config says so.
    pub fn may_start_programs(&self) -> bool {
        self.0.load().commands
    }

    /// Hands `read` the variables that a document that came by API may name. What they stand for is
    /// secret: never stored, logged or returned.
    pub fn variables<T>(&self, read: impl FnOnce(Variables<'_>) -> T) -> T {
        let terms = self.0.load();
        read(Variables::Listed(&|name| terms.look_up(name)))
    }
}

impl Terms {
    fn look_up(&self, name: &str) -> Option<Result<String, VarError>> {
        self.variables.contains(name).then(|| std::env::var(name))
    }
}

#[cfg(test)]
mod tests {
    use squall_profiles::variables::expand;

    use super::*;

    #[test]
    fn a_document_reads_what_the_config_lists_and_nothing_else() {
        let trust = Trust::default();
        let told = |text: &str| trust.variables(|variables| expand(text, variables));
        assert!(told("${PATH}").unwrap_err().contains("`api.env`"));
        trust.configure(Terms {
            commands: true,
            variables: BTreeSet::from(["PATH".to_owned()]),
        });
        assert_eq!(told("${PATH}").unwrap(), std::env::var("PATH").unwrap());
        assert!(told("${HOME:-x}").unwrap_err().contains("`HOME`"));
        assert!(trust.may_start_programs());
    }
}
