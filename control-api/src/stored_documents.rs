//! Changes of documents that were put by API: in the store, with their versions.
//!
//! Only profiles are also in memory ([`crate::StoredProfiles`]). Each run or request reads the others from the store,
//! so that changes of other daemons are visible at once.

use crate::access::Caller;
use crate::problem::ApiProblem;
use crate::store::{DocumentKey, DocumentText, Store, StoredDocument, WriteError};

/// Attempts at a change that others overtake.
const TRIES: usize = 5;

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// Whether it did not exist before.
    pub(crate) created: bool,
    /// The version that was written.
    pub(crate) version: i64,
}

/// The error for a document that does not exist.
pub(crate) fn unknown(key: &DocumentKey) -> ApiProblem {
    let name: String = key.name.chars().take(64).collect();
    ApiProblem::not_found(format!("there is no {} `{name}`", key.kind.as_str()))
}

/// The newest version of a document; `None` when there is none, or it is deleted.
pub(crate) async fn newest(
    store: &Store,
    key: &DocumentKey,
) -> Result<Option<(i64, DocumentText)>, ApiProblem> {
    let found = store.newest(key).await?;
    Ok(found.and_then(|found| Some((found.version, found.text?))))
}

/// Puts a document, or deletes it without a `text`, with the caller's audit entry. `check` must accept the version that
/// it replaces; `None`: there is none. `at` is milliseconds since 1970.
pub(crate) async fn write(
    store: &Store,
    key: &DocumentKey,
    text: Option<&DocumentText>,
    at: u64,
    caller: &Caller,
    check: impl Fn(Option<&StoredDocument>) -> Result<(), ApiProblem>,
) -> Result<Written, ApiProblem> {
    for _ in 0..TRIES {
        let newest = store.newest(key).await?;
        let over = newest.as_ref().map_or(0, |newest| newest.version);
        let current = newest.filter(|newest| newest.text.is_some());
        check(current.as_ref())?;
        match store.write(key, text, over, at, caller.entry(at)).await {
            Ok(version) => {
                caller.set_written();
                return Ok(Written {
                    created: current.is_none(),
                    version,
                });
            }
            Err(WriteError::Stale) => {}
            Err(WriteError::Store(error)) => return Err(error.into()),
            Err(error @ WriteError::Nul) => {
                return Err(ApiProblem::invalid_at("", error.to_string()));
            }
        }
    }
    Err(ApiProblem::conflict(format!(
        "other clients keep changing the {} `{}`; try again",
        key.kind.as_str(),
        key.name
    )))
}
