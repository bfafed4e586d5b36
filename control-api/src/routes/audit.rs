//! The audit log, and its verification.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use squall_journal::timestamp;

use crate::access::Caller;
use crate::audit::chain::{ChainError, ChainHead};
use crate::audit::{AuditEntry, AuditOutcome};
use crate::page::{self, ListPage};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;
use crate::store::{AuditFilter, DEFAULT_WORKSPACE, Store, StoreError};

/// Entries that are verified at a time.
const AT_ONCE: usize = 500;

/// The result of a verification of the audit log.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AuditVerdict {
    /// Whether no entry was edited, deleted, inserted or moved.
    valid: bool,
    /// Number of valid entries, from the first.
    entries: i64,
    /// Hash of the last valid entry. Store it elsewhere and pass it as `head` later: it detects changes of all
    /// entries up to it.
    head: String,
    /// The first defect; `null` if there is none.
    problem: Option<ChainError>,
}

/// Entries, newest first: those of the caller's workspace; the default workspace gets all.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ListPage<AuditEntry>>, ApiProblem> {
    let requested = params.take("workspace");
    let filter = AuditFilter {
        workspace: match caller.workspace() {
            DEFAULT_WORKSPACE => requested.clone(),
            own => Some(own.to_owned()),
        },
        actor: params.take("actor"),
        action: params.take("action"),
        target: params.take("target"),
        outcome: params.read("outcome", "done, refused or failed", |text| {
            AuditOutcome::parse(text).map(|outcome| outcome.as_str().to_owned())
        }),
        since_ms: params.read("since", "a time like 2026-11-21T23:01:40Z", |text| {
            timestamp::parse(text).ok()
        }),
    };
    let limit = page::limit(&mut params);
    let before: Option<i64> = page::cursor(&mut params, |text| {
        text.parse().ok().filter(|number| *number > 0)
    });
    params.finish()?;
    let is_foreign = requested.is_some() && requested != filter.workspace;
    let entries = if is_foreign {
        Vec::new()
    } else {
        (state.store.audit_page(&filter, before, limit + 1)).await?
    };
    Ok(page::newest(entries, limit, |last| last.number.to_string()))
}

/// Verifies the chain from its beginning.
pub(super) async fn verify(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<AuditVerdict>, ApiProblem> {
    let known = params.read("head", "a hash of 64 hex digits", |text| {
        let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| text.to_ascii_lowercase())
    });
    params.finish()?;
    if !caller.is_of_default_workspace() {
        return Err(ApiProblem::forbidden(
            "the chain has the entries of every workspace; an admin of the default one verifies it",
        ));
    }
    let (head, verdict) = verify_chain(&state.store, known.as_deref()).await?;
    Ok(Json(AuditVerdict {
        valid: verdict.is_ok(),
        entries: head.number,
        head: head.hash,
        problem: verdict.err(),
    }))
}

/// Verifies the chain up to its end or its first defect; returns the head of the valid part. `known` must be one of its
/// hashes.
async fn verify_chain(
    store: &Store,
    known: Option<&str>,
) -> Result<(ChainHead, Result<(), ChainError>), StoreError> {
    let mut head = ChainHead::default();
    let mut is_known = known.is_none_or(|known| known == head.hash);
    let mut before = None;
    loop {
        let entries = store.audit_after(head.number, AT_ONCE).await?;
        if entries.is_empty() {
            // Entries and head are written together. If the head was the same before this read and counts more
            // entries, some were lost.
            let stored = store.audit_head().await?;
            let is_ahead = stored
                .as_ref()
                .is_some_and(|stored| stored.number > head.number);
            if !is_ahead || before == stored {
                let verdict = finish(&head, stored.as_ref(), is_known);
                return Ok((head, verdict));
            }
            before = stored;
        }
        for entry in entries {
            if let Err(error) = head.follow(&entry) {
                return Ok((head, Err(error)));
            }
            is_known |= known == Some(&entry.hash);
        }
    }
}

fn finish(head: &ChainHead, stored: Option<&ChainHead>, is_known: bool) -> Result<(), ChainError> {
    let error = |what| ChainError {
        entry: head.number,
        what,
    };
    let stored = stored.ok_or(error(
        "the head is missing, so lost newer entries cannot be detected",
    ))?;
    head.check(stored)?;
    is_known.then_some(()).ok_or(error(
        "no entry has the hash that was given: the entries up to it were rewritten or lost",
    ))
}
