//! Suites and contracts that were put by API: in the store, with their versions.
//!
//! They are not cached: each run or request reads them, so that changes of other daemons are visible at once.

use std::sync::Arc;

use crate::audit::{Call, Draft};
use crate::store::{
    Change, Document, DocumentKind, Key, ListedDocument, Store, StoreError, WriteError,
};
use crate::tasks;

/// Attempts at a change that others overtake.
const TRIES: usize = 5;

/// A workspace and a kind of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) workspace: String,
    pub(crate) kind: DocumentKind,
}

impl Collection {
    fn key<'a>(&'a self, name: &'a str) -> Key<'a> {
        Key {
            workspace: &self.workspace,
            kind: self.kind,
            name,
        }
    }
}

/// Suites and contracts in the store.
#[derive(Debug)]
pub struct StoredDocuments {
    store: Store,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edited {
    /// Whether it did not exist before.
    pub(crate) created: bool,
    /// The version that was written.
    pub(crate) version: i64,
}

/// Why a document was not changed.
#[derive(Debug)]
pub(crate) enum NotEdited<E> {
    /// The caller's guard rejected it.
    Refused(E),
    /// No such document can be deleted.
    Unknown,
    /// It could not be written.
    Write(WriteError),
}

impl StoredDocuments {
    /// With a store.
    pub fn over(store: Store) -> Arc<Self> {
        Arc::new(Self { store })
    }

    /// A page of them by name, without their texts.
    pub(crate) async fn list(
        &self,
        collection: &Collection,
        after: &str,
        limit: usize,
    ) -> Result<Vec<ListedDocument>, StoreError> {
        let Collection { workspace, kind } = collection;
        self.store.listed(workspace, *kind, after, limit).await
    }

    /// The newest version; `None` when there is none, or it is deleted.
    pub(crate) async fn newest(
        &self,
        collection: &Collection,
        name: &str,
    ) -> Result<Option<Document>, StoreError> {
        let found = self.store.newest(collection.key(name)).await?;
        Ok(found.filter(|found| !found.deleted))
    }

    /// One version, even if a later one replaced or deleted it.
    pub(crate) async fn at_version(
        &self,
        collection: &Collection,
        name: &str,
        version: i64,
    ) -> Result<Option<Document>, StoreError> {
        let found = self.store.document(collection.key(name), version).await?;
        Ok(found.filter(|found| !found.deleted))
    }

    /// Puts a document, or deletes it without a `body`, with `call`'s audit entry. `guard` must accept the
    /// version that it replaces. It continues to its end even if the client disconnects. `at` is milliseconds
    /// since 1970.
    pub(crate) async fn edit<E: Send + 'static>(
        self: Arc<Self>,
        collection: Collection,
        name: String,
        body: Option<String>,
        at: u64,
        call: Option<Arc<Call>>,
        guard: impl Fn(Option<&Document>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<Edited, NotEdited<E>> {
        tasks::spawned(async move {
            let change = match &body {
                Some(body) => Change::Put {
                    body,
                    variables: None,
                },
                None => Change::Delete,
            };
            let entry = call.as_ref().map(|call| call.done(at));
            let key = collection.key(&name);
            let edited = self
                .write_over(key, change, at, entry.as_ref(), guard)
                .await;
            if let (Ok(_), Some(call)) = (&edited, call) {
                call.set_written();
            }
            edited
        })
        .await
    }

    async fn write_over<E>(
        &self,
        key: Key<'_>,
        change: Change<'_>,
        at: u64,
        entry: Option<&Draft>,
        guard: impl Fn(Option<&Document>) -> Result<(), E>,
    ) -> Result<Edited, NotEdited<E>> {
        for _ in 0..TRIES {
            let newest = self.store.newest(key).await.map_err(WriteError::from);
            let newest = newest.map_err(NotEdited::Write)?;
            let over = newest.as_ref().map_or(0, |newest| newest.version);
            let held = newest.as_ref().filter(|newest| !newest.deleted);
            guard(held).map_err(NotEdited::Refused)?;
            if held.is_none() && matches!(change, Change::Delete) {
                return Err(NotEdited::Unknown);
            }
            match self.store.write_with(key, change, over, at, entry).await {
                Ok(version) => {
                    return Ok(Edited {
                        created: held.is_none(),
                        version,
                    });
                }
                Err(WriteError::Stale) => {}
                Err(error) => return Err(NotEdited::Write(error)),
            }
        }
        Err(NotEdited::Write(WriteError::Stale))
    }
}
