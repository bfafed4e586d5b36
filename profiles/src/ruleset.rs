//! Rules compiled once per activation: immutable, indexed by what their URL globs require.

use std::sync::Arc;

use crate::rule::Rule;

/// An immutable set of rules in order of precedence, with its index.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Arc<Rule>>,
}

impl RuleSet {
    /// The rules, in order of precedence.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }
}
