//! The usage of model calls before a quota is exhausted.

use crate::prices;
use crate::prices::Usd;
use crate::spending::Spent;

/// The permitted usage; at least one limit is set, and the first one reached counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Input and output tokens, at least 1; `after_tokens` in files.
    pub tokens: Option<u64>,
    /// Cost at list prices, above 0; `after_usd` in files.
    pub cost: Option<Usd>,
}

/// The state of a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BudgetState {
    /// Some of it remains.
    Within,
    /// It is exhausted.
    Exhausted,
    /// It is unknown, for this reason.
    Unknown(String),
}

impl Budget {
    /// The state after `spent`, for a call of `model`.
    pub(crate) fn standing(&self, spent: &Spent, model: Option<&str>) -> BudgetState {
        if self.tokens.is_some_and(|most| spent.tokens() >= most) {
            return BudgetState::Exhausted;
        }
        let Some(most) = self.cost else {
            return BudgetState::Within;
        };
        // The unknown cost can only increase the known one.
        if spent.cost >= most {
            return BudgetState::Exhausted;
        }
        let without = match model {
            Some(model) if prices::of_model(model).is_none() => Some(model),
            Some(_) => spent.unpriced.as_deref(),
            None => Some(""),
        };
        match without {
            None => BudgetState::Within,
            Some("") => BudgetState::Unknown(
                "the model is not known, so neither is what it costs; write `after_tokens`"
                    .to_owned(),
            ),
            Some(model) => BudgetState::Unknown(format!(
                "no price is known for `{model:.128}`; write `after_tokens`"
            )),
        }
    }

    /// How much of it `spent` uses up.
    pub(crate) fn used_up(&self, spent: &Spent) -> String {
        let tokens = self
            .tokens
            .map(|most| format!("{} of `after_tokens: {most}` used up", spent.tokens()));
        let cost = self
            .cost
            .map(|most| format!("{} of `after_usd: {}` spent", spent.cost, most.dollars()));
        let parts: Vec<_> = tokens.into_iter().chain(cost).collect();
        parts.join(", ")
    }
}
