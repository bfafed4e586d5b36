//! `rate_limit`: the provider's limit, always or above an allowance.

use std::time::Duration;

use serde_json::json;
use squall_dialects::model::{LimitScope, ModelError};
use squall_documents::Fields;

use crate::allowance::Allowance;
use crate::amounts::{count, retry_after};
use crate::changes::Tools;
use crate::fault::{AllowedUse, Fault};
use crate::faults::fixed::provider_error;

/// `rpm` and `tpm`; without both, always, with `retry_after`.
pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let wait = retry_after(fields);
    let requests = count(fields, "rpm", "Requests per minute.", 1);
    let tokens = count(fields, "tpm", "Tokens per minute.", 1);
    let error = |retry_after| ModelError::RateLimit {
        scope: LimitScope::Requests,
        retry_after,
        figures: None,
    };
    if !fields.has("rpm") && !fields.has("tpm") {
        let wait = wait.unwrap_or(Duration::from_secs(1));
        let parameters = json!({ "retry_after": wait.as_secs_f64() });
        return provider_error(parameters, error(Some(wait)));
    }
    if fields.has("retry_after") {
        let message = "`retry_after` follows from `rpm` and `tpm`: leave one or the other out";
        fields.error("retry_after", message);
    }
    let mut parameters = json!({});
    for (name, limit) in [("rpm", requests), ("tpm", tokens)] {
        if let Some(limit) = limit {
            parameters[name] = json!(limit);
        }
    }
    // `Plan::limited` adds the exceeded limit and the wait.
    Fault {
        allowed: Some(AllowedUse::Rate(Allowance { requests, tokens })),
        ..provider_error(parameters, error(None)).counting_tokens(tokens.is_some())
    }
}
