//! What a profile would have done to the latest exchanges.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Serialize;
use squall_journal::ring::Filter;
use squall_journal::timestamp;
use squall_profiles::dry_run::RuleTally;
use squall_proxy::recorder;

use super::path::{self, Name};
use crate::access::Caller;
use crate::audit::Unchanged;
use crate::document::RequestDocument;
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;
use crate::store::DocumentKind;
use crate::tasks;

/// Exchanges that a dry run looks at, the latest ones.
const LATEST: usize = 1000;

/// What a profile would have done.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DryRunReport {
    /// Number of exchanges that were looked at: the latest in memory, at most 1,000.
    exchanges: usize,
    /// Start of the first of them, RFC 3339; `null` if there were none.
    since: Option<String>,
    /// Seed of the draws.
    seed: u64,
    /// Its rules, in order of precedence.
    rules: Vec<DryRunRule>,
}

/// What a rule would have done.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DryRunRule {
    /// The rule's profile.
    profile: String,
    /// The rule's id.
    rule: String,
    /// Its family.
    family: &'static str,
    /// Its mode.
    mode: &'static str,
    /// Exchanges that it matches.
    matched: u64,
    /// Exchanges that it may match: their records do not show it.
    unknown: u64,
    /// The conditions that the records do not show.
    unknown_conditions: Vec<&'static str>,
    /// Number of matched exchanges on which it fires; `null` if that depends on `armed_by`, a rate or a budget.
    fires: Option<f64>,
    /// Matched exchanges whose draw is not known; they count in `fires` by the rule's probability.
    estimated: u64,
}

impl DryRunRule {
    fn of(tally: RuleTally) -> Self {
        let rule = tally.rule;
        Self {
            profile: rule.profile.clone(),
            rule: rule.id.clone(),
            family: rule.family().as_str(),
            mode: rule.mode(),
            matched: tally.matched,
            unknown: tally.unknown,
            unknown_conditions: tally.unknown_conditions.into_iter().collect(),
            fires: tally.fires.map(|fires| (fires * 100.0).round() / 100.0),
            estimated: tally.estimated,
        }
    }
}

/// Validates a profile as a PUT does, and applies its rules to the latest exchanges. It stores and changes nothing.
pub(super) async fn dry_run(
    State(state): State<ApiState>,
    caller: Caller,
    Name(name): Name,
    mut params: Params,
    document: RequestDocument,
) -> Result<Response, ApiProblem> {
    let seed = params.read("seed", "a whole number from 0 to 2^64 - 1", |text| {
        text.parse().ok()
    });
    let scope = params.scope();
    params.finish()?;
    path::check_name(DocumentKind::Profile.as_str(), &name)?;
    let profile = document.profile(&name, &state.trust)?;
    path::check_called(DocumentKind::Profile, &name, profile.name.as_deref())?;
    let seed = seed.unwrap_or_else(|| state.chaos.seed());
    let filter = Filter {
        scopes: caller.scopes(),
        scope,
        ..Filter::default()
    };
    state.settled().await;
    let library = state.library(caller.workspace());
    // Compiling and matching may take a second.
    let report = tasks::blocking(move || {
        let rules = state.chaos.rules_of(&library, &profile);
        let rules = rules.map_err(|error| ApiProblem::profile(&[error]))?;
        let latest = state.recorder.exchanges(&filter, None, LATEST).items;
        let rules = recorder::dry_run(rules.into(), seed, &latest).into_iter();
        Ok::<_, ApiProblem>(DryRunReport {
            exchanges: latest.len(),
            since: latest
                .last()
                .map(|first| timestamp::rfc3339(first.id.started_ms())),
            seed,
            rules: rules.map(DryRunRule::of).collect(),
        })
    });
    Ok((Extension(Unchanged), Json(report.await?)).into_response())
}
