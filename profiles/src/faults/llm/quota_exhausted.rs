//! `quota_exhausted`: the provider's error once all that was bought is used up.

use serde_json::{Map, Value, json};
use squall_dialects::model::ModelError;

use crate::budget::Budget;
use crate::dice::Dice;
use crate::faults::mode::FaultMode;
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::raw::RawRule;
use crate::profile::reader::Reader;
use crate::spending::Usd;

/// Once so much is used up (`after_tokens`, `after_usd`); `None`: from the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct QuotaExhausted(Option<Budget>);

impl FaultMode for QuotaExhausted {
    const NAME: &'static str = "quota_exhausted";
    const PARAMETERS: &'static [&'static str] = &["after_tokens", "after_usd"];

    fn read(raw: &RawRule, reader: &mut Reader) -> Option<Self> {
        let tokens = reader.count("after_tokens", raw.after_tokens.as_ref(), 1);
        let cost = reader.positive("after_usd", raw.after_usd.as_ref());
        if raw.after_tokens.is_none() && raw.after_usd.is_none() {
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
