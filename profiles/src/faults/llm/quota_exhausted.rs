//! `quota_exhausted`: the provider's error once the budget is exhausted.

use serde_json::json;
use squall_dialects::model::ModelError;
use squall_documents::Fields;

use crate::amounts::{count, positive};
use crate::budget::Budget;
use crate::changes::Tools;
use crate::fault::{AllowedUse, Fault};
use crate::faults::fixed::provider_error;
use crate::prices::Usd;

/// `after_tokens`, `after_usd`; without both, immediately.
pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "Tokens in and out that may be used up.";
    let tokens = count(fields, "after_tokens", about, 1);
    let about = "US dollars that may be spent, at list prices.";
    let cost = positive(fields, "after_usd", about).map(Usd::from_dollars);
    let mut parameters = json!({});
    if let Some(tokens) = tokens {
        parameters["after_tokens"] = json!(tokens);
    }
    if let Some(cost) = cost {
        parameters["after_usd"] = json!(cost.dollars());
    }
    let has_budget = tokens.is_some() || cost.is_some();
    let budget = AllowedUse::Budget(Budget { tokens, cost });
    Fault {
        allowed: has_budget.then_some(budget),
        ..provider_error(parameters, ModelError::QuotaExhausted).counting_tokens(has_budget)
    }
}
