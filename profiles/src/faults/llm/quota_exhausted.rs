//! `quota_exhausted`: the provider's error once all that was bought is used up.

use serde_json::{Map, Value, json};
use squall_dialects::model::ModelError;

use crate::budget::Budget;
use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::amounts::{count, positive};
use crate::spending::Usd;

/// Once so much is used up (`after_tokens`, `after_usd`); `None`: from the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaExhausted(Option<Budget>);

impl FaultMode for QuotaExhausted {
    const NAME: &'static str = "quota_exhausted";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let about = "Tokens in and out that may be used up.";
        let tokens = count(fields, "after_tokens", about, 1);
        let about = "US dollars that may be spent, at list prices.";
        let cost = positive(fields, "after_usd", about);
        if !fields.has("after_tokens") && !fields.has("after_usd") {
            return Some(Self(None));
        }
        let cost = cost.map(Usd::from_dollars);
        Some(Self(Some(Budget { tokens, cost })))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        plan.answer(verdict, Answer::ModelError(ModelError::QuotaExhausted))
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        if let Some(Budget { tokens, cost }) = self.0 {
            into.extend(tokens.map(|tokens| ("after_tokens".into(), json!(tokens))));
            into.extend(cost.map(|cost| ("after_usd".into(), json!(cost.dollars()))));
        }
    }

    fn budget(&self) -> Option<Budget> {
        self.0
    }

    fn counts_tokens(&self) -> bool {
        self.0
            .is_some_and(|budget| budget.tokens.is_some() || budget.cost.is_some())
    }
}
