//! What the control plane keeps: in SQLite beside the daemon, or in PostgreSQL that several share.
//!
//! One type, two databases, the same behaviour ([why an enum](../../../docs/decisions/store.md)).
//! Everything here may fail and may be slow, but for no longer than [`PATIENCE`]; nothing here is
//! ever on an exchange's way. What is written is written in one transaction, or not at all.
//!
//! ```text
//! routes ─▶ StoredProfiles ─▶ Store ─┬─▶ Sqlite: one writer, readers apart, WAL
//!                                    └─▶ Postgres: a pool
//! ```

mod audit;
mod document;
mod error;
mod exchange;
mod idempotency;
mod migrations;
mod place;
mod postgres;
mod recording;
mod run;
mod runs;
mod sqlite;
mod token;

use std::time::Duration;

use squall_journal::id::ExchangeId;
use squall_journal::ring::Filter;

pub use self::audit::AuditFilter;
pub(crate) use self::document::digest_of;
pub use self::document::{
    Change, DEFAULT_WORKSPACE, Document, DocumentKind, Key, ListedDocument, WriteError,
};
pub use self::error::StoreError;
pub use self::exchange::{ExchangeRow, Keeping, StoredExchange};
pub use self::idempotency::{Begun, IdempotencyKey, KeptAnswer};
pub use self::place::{BadStoreUrl, Place};
use self::postgres::{Ear, Postgres};
pub use self::recording::{RecordedRow, RecordingState, StoredRecording, Tally};
pub use self::run::{Abandoned, GivenUp, NewRun, RunEventRow, RunFilter, RunStep};
use self::sqlite::Sqlite;
pub use self::token::StoredToken;
use crate::ledger::chain::Head;
use crate::ledger::{Draft, Entry};

/// How long any one question to the store may take.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How long a connection is waited for when all are in use, or none can be made.
const ACQUIRE: Duration = Duration::from_secs(2);

/// Where the control plane keeps what must outlive the daemon; clones are the same store.
#[derive(Debug, Clone)]
pub struct Store {
    place: Place,
    database: Database,
}

#[derive(Debug, Clone)]
enum Database {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// How whoever opens a store is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tenure {
    /// As the daemon that lives there.
    Resident,
    /// Beside it, or for a while.
    Guest,
}

impl Store {
    /// Opens the store and brings its tables up to date. Fails when it cannot be reached, cannot be
    /// written, or was written by a newer Squall. A file is opened beside the daemon that lives on it.
    pub async fn open(place: Place) -> Result<Self, StoreError> {
        Self::open_as(Tenure::Guest, place).await
    }

    /// [`Self::open`], for a daemon that lives on it: while another one lives on a file, this fails. On
    /// PostgreSQL any number may live.
    pub async fn move_in(place: Place) -> Result<Self, StoreError> {
        Self::open_as(Tenure::Resident, place).await
    }

    async fn open_as(tenure: Tenure, place: Place) -> Result<Self, StoreError> {
        let database = match &place {
            Place::Memory => return Ok(Self::in_memory()),
            Place::Sqlite(path) => {
                bounded(&place, async {
                    Sqlite::open(path, tenure).await.map(Database::Sqlite)
                })
                .await?
            }
            Place::Postgres(address) => {
                let opening = async { Postgres::open(address).await.map(Database::Postgres) };
                bounded(&place, opening).await?
            }
        };
        Ok(Self { place, database })
    }

    /// A store that goes with the process. It takes nothing until something is put into it.
    pub fn in_memory() -> Self {
        Self {
            place: Place::Memory,
            database: Database::Sqlite(Sqlite::in_memory()),
        }
    }

    /// Where it is, as people are told: never with a password.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether other daemons write to it too.
    pub fn is_shared(&self) -> bool {
        matches!(self.database, Database::Postgres(_))
    }

    /// The newest version of every document of a kind in a workspace, deleted ones included, by name.
    pub async fn documents(
        &self,
        workspace: &str,
        kind: DocumentKind,
    ) -> Result<Vec<Document>, StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.documents(workspace, kind).await,
                Database::Postgres(postgres) => postgres.documents(workspace, kind).await,
            }
        })
        .await
    }

    /// At most `limit` documents of a kind in a workspace that are not deleted, by name, those whose name
    /// comes after `after` (empty: from the first).
    pub async fn listed(
        &self,
        workspace: &str,
        kind: DocumentKind,
        after: &str,
        limit: usize,
    ) -> Result<Vec<ListedDocument>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.listed(workspace, kind, after, limit).await,
                Database::Postgres(postgres) => {
                    postgres.listed(workspace, kind, after, limit).await
                }
            }
        })
        .await
    }

    /// The newest version of a document, which may be its deletion; `None` when it was never put.
    pub async fn newest(&self, key: Key<'_>) -> Result<Option<Document>, StoreError> {
        if !can_be_there(key.name) {
            return Ok(None);
        }
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.newest(key).await,
                Database::Postgres(postgres) => postgres.newest(key).await,
            }
        })
        .await
    }

    /// The workspaces that have, or once had, a document of a kind, by name.
    pub async fn workspaces(&self, kind: DocumentKind) -> Result<Vec<String>, StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.workspaces(kind).await,
                Database::Postgres(postgres) => postgres.workspaces(kind).await,
            }
        })
        .await
    }

    /// One version of a document; `None` when there never was such a version. A deletion is a version
    /// too.
    pub async fn document(
        &self,
        key: Key<'_>,
        version: i64,
    ) -> Result<Option<Document>, StoreError> {
        if !can_be_there(key.name) {
            return Ok(None);
        }
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.document(key, version).await,
                Database::Postgres(postgres) => postgres.document(key, version).await,
            }
        })
        .await
    }

    /// Writes a new version of a document over version `over` (0: there is none), and gives its
    /// number. The newest 100 versions stay. What is written already is not written again: the number is
    /// then `over`. `at` is milliseconds since 1970.
    pub async fn write(
        &self,
        key: Key<'_>,
        change: Change<'_>,
        over: i64,
        at: u64,
    ) -> Result<i64, WriteError> {
        self.write_with(key, change, over, at, None).await
    }

    /// [`Self::write`], with an entry of the audit log in the same transaction; its digests are those of
    /// the document.
    pub async fn write_with(
        &self,
        key: Key<'_>,
        change: Change<'_>,
        over: i64,
        at: u64,
        entry: Option<&Draft>,
    ) -> Result<i64, WriteError> {
        if change.body().contains('\0') {
            return Err(WriteError::Nul);
        }
        let written = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.write(key, change, over, at, entry).await,
                Database::Postgres(postgres) => postgres.write(key, change, over, at, entry).await,
            }
        });
        written.await?.ok_or(WriteError::Stale)
    }

    /// Writes exchanges down, all of them or none; those that are there already stay as they are. How
    /// many were new.
    pub async fn keep(&self, rows: &[ExchangeRow]) -> Result<u64, StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.keep(rows).await,
                Database::Postgres(postgres) => postgres.keep(rows).await,
            }
        })
        .await
    }

    /// At most `limit` exchanges that `filter` wants, newest first, all older than `before`: of every
    /// daemon that writes to this store.
    pub async fn exchanges(
        &self,
        filter: &Filter,
        before: Option<ExchangeId>,
        limit: usize,
    ) -> Result<Vec<StoredExchange>, StoreError> {
        bounded(&self.place, async {
            let mut found = Vec::new();
            let mut before = before;
            loop {
                let rows = match &self.database {
                    Database::Sqlite(sqlite) => sqlite.exchanges(filter, before, limit).await?,
                    Database::Postgres(postgres) => {
                        postgres.exchanges(filter, before, limit).await?
                    }
                };
                let was_last = rows.len() < limit;
                before = rows.last().and_then(|(id, _)| id.parse().ok());
                let read = rows
                    .iter()
                    .filter_map(|(_, entry)| StoredExchange::read(entry));
                found.extend(read.filter(|one| filter.holds(one)));
                if was_last || found.len() >= limit || before.is_none() {
                    found.truncate(limit);
                    return Ok(found);
                }
            }
        })
        .await
    }

    /// One exchange; `None` when it is not kept, or not any more.
    pub async fn exchange(&self, id: ExchangeId) -> Result<Option<StoredExchange>, StoreError> {
        let entry = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.exchange(id).await,
                Database::Postgres(postgres) => postgres.exchange(id).await,
            }
        });
        Ok(entry.await?.and_then(|entry| StoredExchange::read(&entry)))
    }

    /// Deletes exchanges that are not to be kept, the oldest first, at most a thousand, and runs that are
    /// over, with all that is kept of them; whether there are more.
    pub async fn prune(&self, keeping: Keeping) -> Result<bool, StoreError> {
        if self.is_blank() {
            return Ok(false);
        }
        let pruned = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.prune(keeping).await,
                Database::Postgres(postgres) => postgres.prune(keeping).await,
            }
        });
        let more = pruned.await? >= exchange::PRUNED_AT_ONCE.unsigned_abs();
        Ok(self.prune_runs(keeping.runs).await? || more)
    }

    /// Every token that is good, by workspace and name.
    pub async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        let rows = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.tokens().await,
                Database::Postgres(postgres) => postgres.tokens().await,
            }
        });
        Ok(rows
            .await?
            .into_iter()
            .filter_map(StoredToken::read)
            .collect())
    }

    /// Writes a token down; `false` when a good one of its workspace has its name.
    pub async fn add_token(&self, token: &StoredToken) -> Result<bool, StoreError> {
        self.add_token_with(token, None).await
    }

    /// [`Self::add_token`], with an entry of the audit log in the same transaction.
    pub async fn add_token_with(
        &self,
        token: &StoredToken,
        entry: Option<&Draft>,
    ) -> Result<bool, StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.add_token(token, entry).await,
                Database::Postgres(postgres) => postgres.add_token(token, entry).await,
            }
        })
        .await
    }

    /// Makes a token good for nothing, for ever, from `at` on (milliseconds since 1970); `false` when
    /// there is none of that name. Its row stays.
    pub async fn revoke_token(
        &self,
        workspace: &str,
        name: &str,
        at: u64,
    ) -> Result<bool, StoreError> {
        self.revoke_token_with(workspace, name, at, None).await
    }

    /// [`Self::revoke_token`], with an entry of the audit log in the same transaction.
    pub async fn revoke_token_with(
        &self,
        workspace: &str,
        name: &str,
        at: u64,
        entry: Option<&Draft>,
    ) -> Result<bool, StoreError> {
        if !can_be_there(name) {
            return Ok(false);
        }
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.revoke_token(workspace, name, at, entry).await,
                Database::Postgres(postgres) => {
                    postgres.revoke_token(workspace, name, at, entry).await
                }
            }
        })
        .await
    }

    /// Begins to act under a key, or says what there is under it. The attempt is waited for until `until`,
    /// and `now` is when it begins (milliseconds since 1970).
    pub async fn begin_key(
        &self,
        key: &IdempotencyKey,
        until: u64,
        now: u64,
    ) -> Result<Begun, StoreError> {
        bounded(&self.place, async {
            loop {
                let begun = match &self.database {
                    Database::Sqlite(sqlite) => sqlite.begin_key(key, until, now).await?,
                    Database::Postgres(postgres) => postgres.begin_key(key, until, now).await?,
                };
                if let Some(begun) = begun {
                    return Ok(begun);
                }
            }
        })
        .await
    }

    /// Has an attempt waited for until `until`.
    pub async fn prolong_key(&self, key: &IdempotencyKey, until: u64) -> Result<(), StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.prolong_key(key, until).await,
                Database::Postgres(postgres) => postgres.prolong_key(key, until).await,
            }
        })
        .await
    }

    /// Writes an attempt's answer down, to be given again until `until`. One that has taken too long, so
    /// that another was begun, writes nothing.
    pub async fn answer_key(
        &self,
        key: &IdempotencyKey,
        answer: &KeptAnswer,
        until: u64,
    ) -> Result<(), StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.answer_key(key, answer, until).await,
                Database::Postgres(postgres) => postgres.answer_key(key, answer, until).await,
            }
        })
        .await
    }

    /// Frees a key: its attempt has come to nothing.
    pub async fn free_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.free_key(key).await,
                Database::Postgres(postgres) => postgres.free_key(key).await,
            }
        })
        .await
    }

    /// Deletes keys whose end is before `now`, and of those that are answered the oldest of more than
    /// `most`, at most a thousand of them.
    pub async fn prune_keys(&self, now: u64, most: i64) -> Result<(), StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.prune_keys(now, most).await,
                Database::Postgres(postgres) => postgres.prune_keys(now, most).await,
            }
        })
        .await
    }

    /// Whether it is memory that nobody has used yet.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(&self.database, Database::Sqlite(sqlite) if sqlite.is_blank())
    }

    /// Appends entries to the audit log, in their order, all of them or none.
    pub async fn append_audit(&self, drafts: &[Draft]) -> Result<(), StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.append_audit(drafts).await,
                Database::Postgres(postgres) => postgres.append_audit(drafts).await,
            }
        })
        .await
    }

    /// At most `limit` entries of the audit log that `filter` wants, newest first, all with a number less
    /// than `before`.
    pub async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.audit_page(filter, before, limit).await,
                Database::Postgres(postgres) => postgres.audit_page(filter, before, limit).await,
            }
        });
        Ok(rows.await?.into_iter().map(Entry::from).collect())
    }

    /// At most `limit` entries of the audit log with a number greater than `number`, oldest first.
    pub async fn audit_after(&self, number: i64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.audit_after(number, limit).await,
                Database::Postgres(postgres) => postgres.audit_after(number, limit).await,
            }
        });
        Ok(rows.await?.into_iter().map(Entry::from).collect())
    }

    /// The end of the audit log's chain, as it is kept apart; `None` when somebody has taken it away.
    pub async fn audit_head(&self) -> Result<Option<Head>, StoreError> {
        let head = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.audit_head().await,
                Database::Postgres(postgres) => postgres.audit_head().await,
            }
        });
        Ok(head.await?.map(|(number, hash)| Head { number, hash }))
    }

    /// Hears from now on when another daemon changes a document or a token; `None` where there is no
    /// other.
    pub async fn listen(&self) -> Result<Option<Listener>, StoreError> {
        let Database::Postgres(postgres) = &self.database else {
            return Ok(None);
        };
        let ear = bounded(&self.place, postgres.listen()).await?;
        Ok(Some(Listener {
            place: self.place.clone(),
            ear,
        }))
    }

    /// Closes every connection, once those in use are given back.
    pub async fn close(&self) {
        let closing = async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.close().await,
                Database::Postgres(postgres) => postgres.close().await,
            }
            Ok(())
        };
        if let Err(error) = bounded(&self.place, closing).await {
            tracing::warn!("{error}");
        }
    }
}

/// Hears when another daemon changes a document or a token.
pub struct Listener {
    place: Place,
    ear: Ear,
}

impl Listener {
    /// Waits until something may have changed. After an error it hears nothing any more: what was told
    /// since is lost.
    pub async fn changed(&mut self) -> Result<(), StoreError> {
        let heard = self.ear.hear().await;
        heard.map_err(|cause| StoreError::new(&self.place, cause))
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Whether something can be kept under this name or id. PostgreSQL takes no NUL in a text, not even to look
/// for it, so nothing is ever called so: both databases find nothing. Every name and id that comes from
/// outside goes through here when it is looked up.
fn can_be_there(name: &str) -> bool {
    !name.contains('\0')
}

/// Gives a question to the store its end, and its errors their words.
async fn bounded<T>(
    place: &Place,
    question: impl Future<Output = Result<T, error::Cause>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(PATIENCE, question).await {
        Ok(answer) => answer.map_err(|cause| StoreError::new(place, cause)),
        Err(_) => Err(StoreError::new(place, error::Cause::silent(PATIENCE))),
    }
}
