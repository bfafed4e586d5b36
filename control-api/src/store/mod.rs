//! Storage of the control plane: SQLite beside the daemon, or PostgreSQL, which several daemons may share.
//!
//! One type and one SQL text serve both databases ([why](../../../docs/decisions/store.md)). Every query may
//! fail, and takes [`PATIENCE`] at most; no exchange waits for one. Every write is one transaction.
//!
//! ```text
//! routes ─▶ StoredProfiles ─▶ Store ─▶ SqlStatement ─┬─▶ SQLite: one writer, readers apart, WAL
//!                                                 └─▶ PostgreSQL: one pool
//! ```

mod audit;
mod connect;
mod document;
mod error;
mod exchange;
mod fleet;
mod idempotency;
mod listener;
mod migrations;
mod mutants;
mod place;
mod queue;
mod recording;
mod run;
mod runs;
mod statement;
mod token;

use std::sync::Arc;
use std::time::Duration;

use sqlx::any::AnyRow;
use sqlx::{Any, AnyConnection, AnyPool, FromRow, Transaction};

pub use self::audit::AuditFilter;
pub use self::document::{
    DEFAULT_WORKSPACE, DocumentKey, DocumentKind, DocumentText, StoredDocument, StoredVersion,
    WriteError,
};
use self::error::Cause;
pub use self::error::{StoreError, StoreFailure};
pub use self::exchange::{ExchangeRow, Retain};
pub use self::fleet::{ALL_SCOPES, FleetChaos, FleetDaemonRow, FleetSwitch};
pub use self::idempotency::{IdempotencyKey, KeyState, StoredResponse};
pub use self::listener::{Listener, Notice};
pub use self::place::{BadStoreUrl, StorePlace};
pub(crate) use self::queue::{JobOutcome, JobQueue};
pub use self::recording::{RecordedRow, RecordingSize, RecordingState, StoredRecording};
pub use self::run::{Abandoned, GivenUp, NewRun, RunEventRow, RunFilter, RunStep};
use self::statement::{SqlStatement, sql};
pub use self::token::StoredToken;
use crate::claim::Claim;

/// Timeout of a query to the store.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The store of everything that must outlive the daemon; clones are the same store.
#[derive(Debug, Clone)]
pub struct Store {
    place: StorePlace,
    /// A single connection in SQLite, so that writers do not collide.
    writer: AnyPool,
    /// In WAL mode, readers and the writer do not block each other.
    reader: AnyPool,
    /// Held by the daemon that owns a file, until the process ends or the last clone is dropped.
    _claim: Option<Arc<Claim>>,
}

/// The role of the process that opens a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tenure {
    /// The daemon that owns it.
    Resident,
    /// Another process.
    Guest,
}

impl Store {
    /// Opens the store and migrates its tables. Fails when it cannot be reached or written, or when a newer
    /// Squall wrote it. A daemon may own the file at the same time.
    pub async fn open(place: StorePlace) -> Result<Self, StoreError> {
        Self::open_as(Tenure::Guest, place).await
    }

    /// [`Self::open`], for a daemon that owns the store. Fails while another daemon owns the file; any
    /// number of daemons share a PostgreSQL.
    pub async fn move_in(place: StorePlace) -> Result<Self, StoreError> {
        Self::open_as(Tenure::Resident, place).await
    }

    /// Its place. Printing it shows no password.
    pub fn place(&self) -> &StorePlace {
        &self.place
    }

    /// Whether other daemons write to it too.
    pub fn is_shared(&self) -> bool {
        self.place.is_postgres()
    }

    /// Whether it is an in-memory store that was not used yet.
    pub(crate) fn is_blank(&self) -> bool {
        self.place == StorePlace::Memory && self.writer.size() == 0
    }

    /// Closes every connection, once those in use are returned.
    pub async fn close(&self) {
        let closing = async {
            self.reader.close().await;
            self.writer.close().await;
            Ok(())
        };
        if let Err(error) = self.bounded(closing).await {
            tracing::warn!("{error}");
        }
    }

    /// Executes a statement of a test.
    #[cfg(test)]
    pub(crate) async fn execute_for_test(&self, text: &str) {
        self.execute(sql(text)).await.expect("it is valid");
    }

    /// The rows that a statement returns.
    async fn read<R>(&self, statement: SqlStatement) -> Result<Vec<R>, StoreError>
    where
        R: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
    {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        self.bounded(statement.rows(&self.reader)).await
    }

    /// Executes a statement as its own transaction; returns the number of rows that it wrote.
    async fn execute(&self, statement: SqlStatement) -> Result<u64, StoreError> {
        self.bounded(statement.execute(&self.writer)).await
    }

    /// Begins a transaction that writes; it is rolled back unless it is committed.
    async fn begin(&self) -> Result<Transaction<'static, Any>, Cause> {
        let begin = begin_to_write(self.is_shared());
        Ok(self.writer.begin_with(begin).await?)
    }

    /// Notifies other daemons of a change; they receive it when the transaction is committed.
    async fn notify(&self, connection: &mut AnyConnection, what: &str) -> Result<(), Cause> {
        if self.is_shared() {
            let notice = sql("SELECT pg_notify($1, $2)").bind(listener::CHANNEL);
            notice.bind(what).execute(connection).await?;
        }
        Ok(())
    }

    /// The database's clock, in milliseconds since 1970.
    fn now(&self) -> &'static str {
        if self.is_shared() {
            "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
        } else {
            "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
        }
    }

    async fn bounded<T>(
        &self,
        question: impl Future<Output = Result<T, Cause>>,
    ) -> Result<T, StoreError> {
        bounded(&self.place, question).await
    }
}

/// Limits the time of a query, and adds the store's place to its error.
async fn bounded<T>(
    place: &StorePlace,
    question: impl Future<Output = Result<T, Cause>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(PATIENCE, question).await;
    let answer = answer.unwrap_or_else(|_| {
        let why = format!("nothing came within {PATIENCE:?}");
        Err(Cause::Other(StoreFailure::Unreachable, why))
    });
    answer.map_err(|cause| StoreError::new(place, cause))
}

/// In SQLite, a deferred transaction that turns out to write fails at once while another process writes.
fn begin_to_write(is_postgres: bool) -> &'static str {
    if is_postgres {
        "BEGIN"
    } else {
        "BEGIN IMMEDIATE"
    }
}

/// Whether this name or id can be stored. PostgreSQL supports no NUL in a text, not even in a query, so every
/// name and id from outside is checked first.
fn can_be_there(name: &str) -> bool {
    !name.contains('\0')
}

/// A limit in the type of databases.
fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
