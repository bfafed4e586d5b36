//! The audit log, and its verification.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use squall_journal::timestamp;

use crate::access::Caller;
use crate::audit::chain::{Broken, Follower, Head};
use crate::audit::{Entry, Outcome};
use crate::page::{self, Page};
use crate::problem::Problem;
use crate::query::Params;
use crate::state::ApiState;
use crate::store::{AuditFilter, DEFAULT_WORKSPACE, Store, StoreError};

/// Entries that are verified at a time.
const AT_ONCE: usize = 500;

/// The result of a verification of the audit log.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditVerdict")]
pub(super) struct Verdict {
    /// Whether no entry was edited, deleted, inserted or moved.
    valid: bool,
    /// Number of valid entries, from the first.
    entries: i64,
    /// Hash of the last valid entry. Store it elsewhere and pass it as `head` later: it detects changes of all
    /// entries up to it.
    head: String,
    /// The first defect; `null` if there is none.
    problem: Option<Wrong>,
}

/// A defect of the audit log.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AuditProblem")]
pub(super) struct Wrong {
    /// Number of the first entry that is wrong or missing.
    entry: i64,
    /// The reason.
    what: String,
}

/// Entries, newest first: those of the caller's workspace; the default workspace gets all.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<Entry>>, Problem> {
    let asked = params.take("workspace");
    let filter = AuditFilter {
        workspace: match caller.workspace() {
            DEFAULT_WORKSPACE => asked.clone(),
            own => Some(own.to_owned()),
        },
        actor: params.take("actor"),
        action: params.take("action"),
        target: params.take("target"),
        outcome: params.read("outcome", "done, refused or failed", |text| {
            Outcome::parse(text).map(|outcome| outcome.as_str().to_owned())
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
    let is_foreign = asked.is_some() && asked != filter.workspace;
    let entries = if is_foreign {
        Vec::new()
    } else {
        (state.audit.store().audit_page(&filter, before, limit + 1)).await?
    };
    Ok(page::newest(entries, limit, |last| last.number.to_string()))
}

/// Verifies the chain from its beginning.
pub(super) async fn verify(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Verdict>, Problem> {
    let known = params.read("head", "a hash of 64 hex digits", |text| {
        let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then(|| text.to_ascii_lowercase())
    });
    params.finish()?;
    if !caller.is_of_default_workspace() {
        return Err(Problem::forbidden(
            "the chain has the entries of every workspace; an admin of the default one verifies it",
        ));
    }
    let (follower, verdict) = follow(state.audit.store(), known.as_deref()).await?;
    let Head { number, hash } = follower.came_to().clone();
    Ok(Json(Verdict {
        valid: verdict.is_ok(),
        entries: number,
        head: hash,
        problem: verdict.err().map(|broken| Wrong {
            entry: broken.entry,
            what: broken.what.to_owned(),
        }),
    }))
}

/// Verifies the chain up to its end or its first defect. `known` must be one of its hashes.
async fn follow(
    store: &Store,
    known: Option<&str>,
) -> Result<(Follower, Result<(), Broken>), StoreError> {
    let mut follower = Follower::default();
    let mut is_known = known.is_none_or(|known| known == follower.came_to().hash);
    let mut seen_head = None;
    loop {
        let came_to = follower.came_to().number;
        let entries = store.audit_after(came_to, AT_ONCE).await?;
        if entries.is_empty() {
            // Entries and head are written together. If the head was the same before this read and counts more
            // entries, some were lost.
            let head = store.audit_head().await?;
            let is_ahead = head.as_ref().is_some_and(|head| head.number > came_to);
            if !is_ahead || seen_head == head {
                let ended = finish(&follower, head).and_then(|()| judged(&follower, is_known));
                return Ok((follower, ended));
            }
            seen_head = head;
        }
        for entry in entries {
            if let Err(broken) = follower.take(&entry) {
                return Ok((follower, Err(broken)));
            }
            is_known |= known == Some(&entry.hash);
        }
    }
}

fn finish(follower: &Follower, head: Option<Head>) -> Result<(), Broken> {
    let head = head.ok_or(Broken {
        entry: follower.came_to().number,
        what: "the head is missing: nobody can tell whether newer entries are",
    })?;
    follower.finish(&head)
}

fn judged(follower: &Follower, is_known: bool) -> Result<(), Broken> {
    if is_known {
        return Ok(());
    }
    Err(Broken {
        entry: follower.came_to().number,
        what: "the hash that was given is in no entry: what it stood for was written anew, or is lost",
    })
}
