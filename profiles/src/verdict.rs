//! The outcome of a rule in one exchange.

use std::sync::Arc;

use crate::fault::AllowedUse;
use crate::rule::Rule;
use crate::spending::Spent;
use crate::trigger::{NotDrawn, Share};

/// The outcome of one eligible rule in one exchange.
#[derive(Debug, Clone)]
pub struct RuleVerdict {
    /// The rule.
    pub rule: Arc<Rule>,
    /// The outcome.
    pub outcome: VerdictOutcome,
    /// Number of this exchange among those of the scope that match the rule, from 1.
    pub ordinal: u64,
    /// The draw and its threshold, if one was made.
    pub drawn: Option<Draw>,
    /// For a rule with a budget: what its matching calls had used before.
    pub spent: Option<Box<Spent>>,
    /// For a rule that changed tool results in a model's input: the tools, where the request names
    /// them.
    pub told_of: Option<Arc<[String]>>,
}

impl RuleVerdict {
    /// Why its trigger did not fire, in a sentence.
    pub fn not_drawn(&self, why: NotDrawn) -> String {
        if let (NotDrawn::Drew, Some(Draw { value, below })) = (why, self.drawn) {
            return format!("drew {}, fires below {}", Share(value), Share(below));
        }
        if let (NotDrawn::WithinBudget, Some(AllowedUse::Budget(budget)), Some(spent)) =
            (why, self.rule.fault.allowed, &self.spent)
        {
            return budget.used_up(spent);
        }
        self.rule.trigger.sentence(why, self.ordinal)
    }

    /// The tools whose results the rule changed in the model's input.
    pub fn tools_told_of(&self) -> &[String] {
        self.told_of.as_deref().unwrap_or_default()
    }
}

/// A draw and its threshold, both in parts per million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// The drawn value, 0 to 999 999.
    pub value: u32,
    /// The rule fires when `value` is below this.
    pub below: u32,
}

/// The outcome of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerdictOutcome {
    /// Its trigger did not fire, for this reason.
    NotDrawn(NotDrawn),
    /// It fired and is in the plan, but is not yet applied.
    Chosen,
    /// It was applied.
    Applied,
    /// It fired but could not be applied, for this reason.
    Bypassed(String),
}
