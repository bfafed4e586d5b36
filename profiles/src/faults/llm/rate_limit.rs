//! `rate_limit`: the provider's limit, always or above an allowance.

use std::time::Duration;

use serde_json::{Map, Value, json};
use squall_dialects::model::{LimitScope, ModelError};
use squall_documents::Fields;

use crate::allowance::Allowance;
use crate::amounts::{count, retry_after};
use crate::changes::Tools;
use crate::dice::Dice;
use crate::facts::Kind;
use crate::fault::Fault;
use crate::faults::fixed::provider_error;
use crate::plan::{Bypass, Plan, PlannedAnswer, VerdictIndex};

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Box<dyn Fault> {
    let wait = retry_after(fields);
    let requests = count(fields, "rpm", "Requests per minute.", 1);
    let tokens = count(fields, "tpm", "Tokens per minute.", 1);
    if !fields.has("rpm") && !fields.has("tpm") {
        let wait = wait.unwrap_or(Duration::from_secs(1));
        let parameters = json!({ "retry_after": wait.as_secs_f64() });
        return provider_error(parameters, error(Some(wait)));
    }
    if fields.has("retry_after") {
        let message = "`retry_after` follows from `rpm` and `tpm`: leave one or the other out";
        fields.error("retry_after", message);
    }
    Box::new(RateLimit(Allowance { requests, tokens }))
}

fn error(retry_after: Option<Duration>) -> ModelError {
    ModelError::RateLimit {
        scope: LimitScope::Requests,
        retry_after,
        figures: None,
    }
}

/// The limit above `rpm` or `tpm`; [`Plan::limited`] adds the exceeded limit and the wait.
struct RateLimit(Allowance);

impl Fault for RateLimit {
    fn apply(
        &self,
        plan: &mut Plan,
        verdict: VerdictIndex,
        _: Kind,
        _: &mut Dice,
    ) -> Result<(), Bypass> {
        plan.answer(verdict, PlannedAnswer::ModelError(error(None)))
    }

    fn parameters(&self) -> Map<String, Value> {
        let Allowance { requests, tokens } = self.0;
        let mut parameters = Map::new();
        parameters.extend(requests.map(|requests| ("rpm".into(), json!(requests))));
        parameters.extend(tokens.map(|tokens| ("tpm".into(), json!(tokens))));
        parameters
    }

    fn allowance(&self) -> Option<Allowance> {
        Some(self.0)
    }

    fn counts_tokens(&self) -> bool {
        self.0.tokens.is_some()
    }
}
