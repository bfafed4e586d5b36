//! A call that may change something, and its audit entry.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use serde::Serialize;

use super::{AuditEntry, AuditOutcome, digest_of};
use crate::lock;

/// Marks the response to a request that changed nothing: a dry run, or one repeated for an `Idempotency-Key`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unchanged;

/// A call that may change something.
#[derive(Debug)]
pub(crate) struct AuditedCall {
    /// Its entry, if it succeeds; without a time.
    entry: Mutex<AuditEntry>,
    /// Its entry is in the store, in the change's transaction.
    written: AtomicBool,
}

impl AuditedCall {
    /// `entry` has workspace, actor, source, action and target.
    pub(crate) fn new(entry: AuditEntry) -> Self {
        Self {
            entry: Mutex::new(entry),
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
        let mut entry = lock(&self.entry);
        entry.before = before.and_then(digest_of);
        entry.after = after.and_then(digest_of);
        entry.detail = detail;
    }

    /// Its entry, if it succeeds. `at` is milliseconds since 1970.
    pub(crate) fn done(&self, at: u64) -> AuditEntry {
        AuditEntry {
            at: i64::try_from(at).unwrap_or(i64::MAX),
            outcome: AuditOutcome::Done.as_str().to_owned(),
            ..lock(&self.entry).clone()
        }
    }

    /// Its entry, for this status.
    pub(super) fn answered(&self, status: StatusCode, at: u64) -> AuditEntry {
        let outcome = if status.is_client_error() {
            AuditOutcome::Refused
        } else if status.is_server_error() {
            AuditOutcome::Failed
        } else {
            return self.done(at);
        };
        AuditEntry {
            outcome: outcome.as_str().to_owned(),
            detail: status.to_string(),
            before: None,
            after: None,
            ..self.done(at)
        }
    }

    /// Whether its entry is in the store.
    pub(super) fn is_written(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn set_written(&self) {
        self.written.store(true, Ordering::Release);
    }
}
