//! What became of a rule in one exchange.

use std::sync::Arc;

use crate::rule::Rule;
use crate::spending::Spent;
use crate::trigger::NotDrawn;

/// What became of one eligible rule in one exchange.
#[derive(Debug, Clone)]
pub struct RuleVerdict {
    /// The rule.
    pub rule: Arc<Rule>,
    /// What became of it.
    pub outcome: VerdictOutcome,
    /// Which matching exchange of the scope this was for the rule, from 1.
    pub ordinal: u64,
    /// The draw in parts per million and what it had to be below, when one was made.
    pub drawn: Option<Draw>,
    /// Of a rule with a budget: what the calls that it matches had used up by then.
    pub spent: Option<Box<Spent>>,
    /// Of a rule that changed what a model is told of tools' results: whose, as far as the request
    /// names them.
    pub told_of: Option<Arc<[String]>>,
}

impl RuleVerdict {
    /// The tools of whose results the rule told a model something else.
    pub fn tools_told_of(&self) -> &[String] {
        self.told_of.as_deref().unwrap_or_default()
    }
}

/// A draw and its bar, both in hits per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// What was drawn, 0 to 999 999.
    pub value: u32,
    /// The rule fires when `value` is below this.
    pub below: u32,
}

/// What became of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerdictOutcome {
    /// Its trigger did not fire, and why.
    NotDrawn(NotDrawn),
    /// It fired and is in the plan, but has not been carried out yet.
    Chosen,
    /// It was carried out.
    Applied,
    /// It fired but could not be carried out, and why.
    Bypassed(String),
}
