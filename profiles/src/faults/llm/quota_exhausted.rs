//! `quota_exhausted`: the provider's error once the budget is exhausted.

use serde_json::{Map, Value, json};
use squall_dialects::model::ModelError;
use squall_documents::Fields;

use crate::amounts::{count, positive};
use crate::budget::Budget;
use crate::changes::Tools;
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::Fault;
use crate::faults::fixed::provider_error;
use crate::plan::{Bypass, Plan, PlannedAnswer, VerdictIndex};
use crate::prices::Usd;

/// `after_tokens`, `after_usd`; without both, immediately.
pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Box<dyn Fault> {
    let about = "Tokens in and out that may be used up.";
    let tokens = count(fields, "after_tokens", about, 1);
    let about = "US dollars that may be spent, at list prices.";
    let cost = positive(fields, "after_usd", about);
    if !fields.has("after_tokens") && !fields.has("after_usd") {
        return provider_error(json!({}), ModelError::QuotaExhausted);
    }
    let cost = cost.map(Usd::from_dollars);
    Box::new(QuotaExhausted(Budget { tokens, cost }))
}

struct QuotaExhausted(Budget);

impl Fault for QuotaExhausted {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        _: &mut Dice,
    ) -> Result<(), Bypass> {
        plan.answer(
            verdict,
            PlannedAnswer::ModelError(ModelError::QuotaExhausted),
        )
    }

    fn parameters(&self) -> Map<String, Value> {
        let Budget { tokens, cost } = self.0;
        let mut parameters = Map::new();
        parameters.extend(tokens.map(|tokens| ("after_tokens".into(), json!(tokens))));
        parameters.extend(cost.map(|cost| ("after_usd".into(), json!(cost.dollars()))));
        parameters
    }

    fn budget(&self) -> Option<Budget> {
        Some(self.0)
    }

    fn counts_tokens(&self) -> bool {
        self.0.tokens.is_some() || self.0.cost.is_some()
    }
}
