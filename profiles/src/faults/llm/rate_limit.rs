//! `rate_limit`: the provider's limit, always or for what goes beyond.

use std::time::Duration;

use serde_json::{Map, Value, json};
use squall_dialects::model::{LimitScope, ModelError};

use crate::allowance::Allowance;
use crate::dice::Dice;
use crate::faults::mode::{FaultMode, Fields, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};
use crate::profile::amounts::{count, retry_after};

/// For whom.
#[derive(Debug, Clone, PartialEq)]
pub enum RateLimit {
    /// For every call, with this wait announced; default 1 s.
    Always(Duration),
    /// For what goes beyond `rpm` or `tpm`: what is over, and for how long, hangs on what was asked
    /// before (see [`Plan::limited`]).
    Beyond(Allowance),
}

impl FaultMode for RateLimit {
    const NAME: &'static str = "rate_limit";

    fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        let wait = retry_after(fields);
        let requests = count(fields, "rpm", "Requests per minute.", 1);
        let tokens = count(fields, "tpm", "Tokens per minute.", 1);
        if !fields.has("rpm") && !fields.has("tpm") {
            return Some(Self::Always(wait.unwrap_or(Duration::from_secs(1))));
        }
        if fields.has("retry_after") {
            let message = "`retry_after` follows from `rpm` and `tpm`: leave one or the other out";
            fields.error("retry_after", message);
        }
        Some(Self::Beyond(Allowance { requests, tokens }))
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let retry_after = match self {
            Self::Always(wait) => Some(*wait),
            Self::Beyond(_) => None,
        };
        let error = ModelError::RateLimit {
            scope: LimitScope::Requests,
            retry_after,
            figures: None,
        };
        plan.answer(verdict, Answer::ModelError(error))
    }

    fn parameters(&self, into: &mut Map<String, Value>) {
        match self {
            Self::Always(wait) => {
                into.insert("retry_after".into(), json!(wait.as_secs_f64()));
            }
            Self::Beyond(Allowance { requests, tokens }) => {
                into.extend(requests.map(|requests| ("rpm".into(), json!(requests))));
                into.extend(tokens.map(|tokens| ("tpm".into(), json!(tokens))));
            }
        }
    }

    fn allowance(&self) -> Option<Allowance> {
        match self {
            Self::Always(_) => None,
            Self::Beyond(allowance) => Some(*allowance),
        }
    }

    fn counts_tokens(&self) -> bool {
        self.allowance()
            .is_some_and(|allowance| allowance.tokens.is_some())
    }
}
