//! The usage of model calls before a quota is exhausted.

use crate::prices;
use crate::prices::Usd;
use crate::spending::Spent;

/// Most characters of a model's name in a message.
const MODEL: usize = 128;

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
            Some(model) => {
                let model: String = model.chars().take(MODEL).collect();
                let why = format!("no price is known for `{model}`; write `after_tokens`");
                BudgetState::Unknown(why)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_exhausted_once_either_limit_is_reached() {
        let budget = |tokens: u64, dollars: f64| Budget {
            tokens: (tokens > 0).then_some(tokens),
            cost: (dollars > 0.0).then_some(Usd::from_dollars(dollars)),
        };
        let spent = |tokens: u64, dollars: f64, unpriced: Option<&str>| Spent {
            calls: 1,
            input: tokens,
            cost: Usd::from_dollars(dollars),
            unpriced: unpriced.map(Into::into),
            ..Spent::default()
        };
        let known = Some("gpt-4o");
        for (budget, spent, model, expected) in [
            (budget(10, 0.0), spent(9, 9.0, None), known, "within"),
            (budget(10, 0.0), spent(10, 0.0, None), known, "exhausted"),
            (budget(10, 0.0), spent(10, 0.0, None), None, "exhausted"),
            (
                budget(10, 0.0),
                spent(9, 0.0, Some("x")),
                Some("x"),
                "within",
            ),
            (budget(0, 0.5), spent(9, 0.4, None), known, "within"),
            (budget(0, 0.5), spent(9, 0.5, None), known, "exhausted"),
            (
                budget(10, 0.5),
                spent(10, 0.1, Some("x")),
                known,
                "exhausted",
            ),
            (budget(0, 0.5), spent(9, 0.5, Some("x")), known, "exhausted"),
            (
                budget(0, 0.5),
                spent(0, 0.0, None),
                Some("x"),
                "no price is known for `x`",
            ),
            (
                budget(0, 0.5),
                spent(9, 0.1, Some("x")),
                known,
                "no price is known for `x`",
            ),
            (
                budget(10, 0.5),
                spent(9, 0.1, None),
                None,
                "the model is not known",
            ),
        ] {
            let found = match budget.standing(&spent, model) {
                BudgetState::Within => "within".to_owned(),
                BudgetState::Exhausted => "exhausted".to_owned(),
                BudgetState::Unknown(why) => why,
            };
            assert!(found.starts_with(expected), "{budget:?} {spent:?}: {found}");
        }
    }
}
