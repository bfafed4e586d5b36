//! What is in force, as the top of every page shows it.

use maud::{Markup, html};
use squall_journal::activation::ActivationRecord;

use crate::api::{ApiClient, ApiError, List};
use crate::text;

/// Scopes with chaos of their own.
pub(crate) async fn read(api: &ApiClient) -> Result<Vec<ActivationRecord>, ApiError> {
    let scopes: List<ActivationRecord> = api.get("/v1/scopes?limit=1000").await?;
    let mut scopes = scopes.items;
    scopes.retain(|one| !one.inherited && one.profile != "none");
    Ok(scopes)
}

/// What is in force, in one line.
pub(crate) fn summary(in_force: &[ActivationRecord]) -> Markup {
    html! {
        @match in_force {
            [] => span.tag { "No chaos" },
            [first, others @ ..] => {
                span.tag.on { (first.profile) }
                span { " in " b { (first.scope) } }
                @if !others.is_empty() { span { " and " (text::counted(others.len() as u64, "more scope")) } }
                @if let Some(left) = first.expires_at.as_deref().and_then(text::time_left) { span.soft { " · " (left) } }
            }
        }
    }
}
