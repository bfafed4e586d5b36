//! A call that may change something, and its audit entry.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use http::StatusCode;
use serde::Serialize;
use squall_harness::digest::sha256;

use super::{Draft, Outcome};

/// Marks a response that was repeated for an `Idempotency-Key`: nothing was changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeated;

/// A call that may change something.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) workspace: String,
    pub(crate) actor: String,
    pub(crate) source: String,
    /// Method and route.
    pub(crate) action: String,
    /// The path.
    pub(crate) target: String,
    /// The state before and after, and a detail.
    changed: Mutex<Changed>,
    /// Its entry is in the store, in the change's transaction.
    written: AtomicBool,
}

#[derive(Debug, Clone, Default)]
struct Changed {
    before: Option<String>,
    after: Option<String>,
    detail: String,
}

impl Call {
    pub(crate) fn new(
        workspace: &str,
        actor: &str,
        source: String,
        action: String,
        target: String,
    ) -> Self {
        Self {
            workspace: workspace.to_owned(),
            actor: actor.to_owned(),
            source,
            action,
            target,
            changed: Mutex::default(),
            written: AtomicBool::new(false),
        }
    }

    /// Records what was changed; only digests are stored.
    pub(crate) fn changed<T: Serialize>(
        &self,
        before: Option<&T>,
        after: Option<&T>,
        detail: String,
    ) {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = Changed {
            before: before.and_then(digest_of),
            after: after.and_then(digest_of),
            detail,
        };
    }

    /// Its entry, if it succeeds.
    pub(crate) fn done(&self, at: u64) -> Draft {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let Changed {
            before,
            after,
            detail,
        } = changed.clone();
        Draft {
            at,
            workspace: self.workspace.clone(),
            actor: self.actor.clone(),
            source: self.source.clone(),
            action: self.action.clone(),
            target: self.target.clone(),
            before,
            after,
            outcome: Outcome::Done,
            detail,
        }
    }

    /// Its entry, for this status.
    pub(crate) fn answered(&self, status: StatusCode, at: u64) -> Draft {
        if !status.is_client_error() && !status.is_server_error() {
            return self.done(at);
        }
        Draft {
            outcome: if status.is_client_error() {
                Outcome::Refused
            } else {
                Outcome::Failed
            },
            detail: status.to_string(),
            before: None,
            after: None,
            ..self.done(at)
        }
    }

    /// Whether its entry is in the store.
    pub(crate) fn is_written(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn set_written(&self) {
        self.written.store(true, Ordering::Release);
    }
}

/// SHA-256 of a document as JSON.
pub(super) fn digest_of<T: Serialize>(document: &T) -> Option<String> {
    let text = serde_json::to_vec(document).ok()?;
    Some(sha256(text))
}
