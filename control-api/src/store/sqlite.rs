//! The store as a file of SQLite's.
//!
//! One connection writes, so that writers never meet; others read, and in WAL neither waits for the
//! other. `synchronous=NORMAL`: after a power cut the last transactions may be gone, but the file is
//! whole; a killed process loses nothing.

mod audit;
mod exchange;
mod recording;
mod token;

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    Sqlite as Sql, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool,
    SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, Connection as _};

use self::audit::append;
use super::document::{FORGET, LISTED, ListedDocument, Row, VERSIONS, signed};
use super::error::Cause;
use super::{ACQUIRE, Change, Document, DocumentKind, Key, Tenure, idempotency, migrations};
use crate::claim::Claim;
use crate::ledger::Draft;

/// How long a write waits for another process that writes to the same file.
const BUSY: Duration = Duration::from_secs(2);

/// Connections that read.
const READERS: u32 = 4;

/// The columns of [`Row`].
const COLUMNS: &str = "name, version, body, variables, digest, created_at, deleted";

#[derive(Debug, Clone)]
pub(super) struct Sqlite {
    /// Made at once for a file, when they are first used for memory.
    pools: Arc<OnceLock<Pools>>,
    in_memory: bool,
    /// Held by the daemon that lives on the file, until the process ends or the last clone is gone.
    _lock: Option<Arc<Claim>>,
}

#[derive(Debug)]
struct Pools {
    writer: SqlitePool,
    reader: SqlitePool,
}

impl Pools {
    /// One connection that is the whole database, made when it is first used.
    fn in_memory() -> Self {
        let pool = writing()
            .after_connect(|connection, _| {
                Box::pin(async move {
                    migrate(connection).await.map_err(|cause| match cause {
                        Cause::Sql(error) => error,
                        other => sqlx::Error::Protocol(format!("{other:?}")),
                    })
                })
            })
            .connect_lazy_with(SqliteConnectOptions::new().in_memory(true));
        Self {
            writer: pool.clone(),
            reader: pool,
        }
    }
}

impl Sqlite {
    pub(super) async fn open(path: &Path, tenure: Tenure) -> Result<Self, Cause> {
        make_file(path)?;
        let lock = match tenure {
            Tenure::Resident => Some(lock_file(path)?),
            Tenure::Guest => None,
        };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(BUSY);
        let writer = writing()
            .connect_with(
                options
                    .clone()
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Normal),
            )
            .await?;
        {
            let mut connection = writer.acquire().await?;
            migrate(&mut connection).await?;
            if tenure == Tenure::Resident {
                // A file is one daemon's: whoever was at something before this start is gone.
                let abandon = sqlx::query(idempotency::ABANDON);
                abandon.execute(&mut *connection).await?;
            }
        }
        let reader = kept()
            .max_connections(READERS)
            .connect_lazy_with(options.read_only(true));
        Ok(Self {
            pools: Arc::new(OnceLock::from(Pools { writer, reader })),
            in_memory: false,
            _lock: lock.map(Arc::new),
        })
    }

    /// Memory that goes with the process. Nothing is made before somebody uses it.
    pub(super) fn in_memory() -> Self {
        Self {
            pools: Arc::default(),
            in_memory: true,
            _lock: None,
        }
    }

    /// Whether it is memory that nobody has used: nothing can be in it.
    pub(super) fn is_blank(&self) -> bool {
        let is_unused = |pools: &Pools| pools.writer.size() == 0;
        self.in_memory && self.pools.get().is_none_or(is_unused)
    }

    pub(super) fn writers(&self) -> &SqlitePool {
        &self.pools.get_or_init(Pools::in_memory).writer
    }

    fn readers(&self) -> &SqlitePool {
        &self.pools.get_or_init(Pools::in_memory).reader
    }

    pub(super) async fn documents(
        &self,
        workspace: &str,
        kind: DocumentKind,
    ) -> Result<Vec<Document>, Cause> {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM documents AS newest WHERE workspace = ?1 AND kind = ?2 AND version = \
             (SELECT MAX(version) FROM documents WHERE workspace = ?1 AND kind = ?2 AND name = newest.name) \
             ORDER BY name"
        )))
        .bind(workspace)
        .bind(kind.as_str())
        .fetch_all(self.readers())
        .await?;
        Ok(rows.into_iter().map(Document::from).collect())
    }

    pub(super) async fn listed(
        &self,
        workspace: &str,
        kind: DocumentKind,
        after: &str,
        limit: i64,
    ) -> Result<Vec<ListedDocument>, Cause> {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        let rows: Vec<(String, i64, String, i64)> = sqlx::query_as(LISTED)
            .bind(workspace)
            .bind(kind.as_str())
            .bind(after)
            .bind(limit)
            .fetch_all(self.readers())
            .await?;
        Ok(rows.into_iter().map(ListedDocument::from).collect())
    }

    pub(super) async fn newest(&self, key: Key<'_>) -> Result<Option<Document>, Cause> {
        if self.is_blank() {
            return Ok(None);
        }
        let row: Option<Row> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM documents WHERE workspace = ?1 AND kind = ?2 AND name = ?3 \
             ORDER BY version DESC LIMIT 1"
        )))
        .bind(key.workspace)
        .bind(key.kind.as_str())
        .bind(key.name)
        .fetch_optional(self.readers())
        .await?;
        Ok(row.map(Document::from))
    }

    pub(super) async fn workspaces(&self, kind: DocumentKind) -> Result<Vec<String>, Cause> {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        let names = "SELECT DISTINCT workspace FROM documents WHERE kind = ?1 ORDER BY workspace";
        let names = sqlx::query_scalar(names).bind(kind.as_str());
        Ok(names.fetch_all(self.readers()).await?)
    }

    pub(super) async fn document(
        &self,
        key: Key<'_>,
        version: i64,
    ) -> Result<Option<Document>, Cause> {
        let row: Option<Row> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM documents \
             WHERE workspace = ?1 AND kind = ?2 AND name = ?3 AND version = ?4"
        )))
        .bind(key.workspace)
        .bind(key.kind.as_str())
        .bind(key.name)
        .bind(version)
        .fetch_optional(self.readers())
        .await?;
        Ok(row.map(Document::from))
    }

    /// `None` when `over` is not the newest version.
    pub(super) async fn write(
        &self,
        key: Key<'_>,
        change: Change<'_>,
        over: i64,
        at: u64,
        entry: Option<&Draft>,
    ) -> Result<Option<i64>, Cause> {
        let mut writer = self.begin().await?;
        let written = write(&mut writer, key, change, over, at, entry).await;
        finish(writer, written).await
    }

    /// Begins a transaction that writes: a deferred one that turns out to write fails at once when
    /// somebody else does. sqlx's own transactions are not for here: after a full disk SQLite has
    /// ended the transaction by itself, sqlx would go on counting it, and the one writer would never
    /// write again. One that is given up is rolled back when its connection is given back.
    pub(super) async fn begin(&self) -> Result<PoolConnection<Sql>, Cause> {
        let mut writer = self.writers().acquire().await?;
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *writer).await?;
        Ok(writer)
    }

    pub(super) async fn reader(&self) -> Result<PoolConnection<Sql>, Cause> {
        Ok(self.readers().acquire().await?)
    }

    pub(super) async fn close(&self) {
        if let Some(pools) = self.pools.get() {
            pools.reader.close().await;
            pools.writer.close().await;
        }
    }
}

/// Connections that are kept for as long as the store: opening one costs more than keeping it.
fn kept() -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .acquire_timeout(ACQUIRE)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// One connection, which is never given back with a transaction in it.
fn writing() -> SqlitePoolOptions {
    kept().max_connections(1).after_release(|connection, _| {
        Box::pin(async move {
            // An error says that there is none, as there should be.
            let _ = sqlx::query("ROLLBACK").execute(connection).await;
            Ok(true)
        })
    })
}

/// Keeps what was done in a transaction, or none of it.
pub(super) async fn finish<T>(
    mut writer: PoolConnection<Sql>,
    done: Result<T, Cause>,
) -> Result<T, Cause> {
    let done = done?;
    sqlx::query("COMMIT").execute(&mut *writer).await?;
    Ok(done)
}

async fn write(
    writer: &mut SqliteConnection,
    key: Key<'_>,
    change: Change<'_>,
    over: i64,
    at: u64,
    entry: Option<&Draft>,
) -> Result<Option<i64>, Cause> {
    let newest: Option<Row> = sqlx::query_as(AssertSqlSafe(format!(
        "SELECT {COLUMNS} FROM documents WHERE workspace = ?1 AND kind = ?2 AND name = ?3 \
         ORDER BY version DESC LIMIT 1"
    )))
    .bind(key.workspace)
    .bind(key.kind.as_str())
    .bind(key.name)
    .fetch_optional(&mut *writer)
    .await?;
    let newest = newest.map(Document::from);
    if newest.as_ref().map_or(0, |newest| newest.version) != over {
        return Ok(None);
    }
    append(
        &mut *writer,
        change.entry(entry, newest.as_ref()).as_slice(),
    )
    .await?;
    if newest.is_some_and(|newest| newest.is(change)) {
        return Ok(Some(over));
    }
    sqlx::query(
        "INSERT INTO documents \
         (workspace, kind, name, version, body, variables, digest, created_at, deleted) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )
    .bind(key.workspace)
    .bind(key.kind.as_str())
    .bind(key.name)
    .bind(over + 1)
    .bind(change.body())
    .bind(change.variables())
    .bind(change.digest())
    .bind(signed(at))
    .bind(change.deletes())
    .execute(&mut *writer)
    .await?;
    sqlx::query(FORGET)
        .bind(key.workspace)
        .bind(key.kind.as_str())
        .bind(key.name)
        .bind(over + 1 - VERSIONS)
        .execute(&mut *writer)
        .await?;
    Ok(Some(over + 1))
}

/// The journal tells who called whom: its file is the owner's alone, and so are those beside it,
/// which SQLite makes with the same rights.
fn make_file(path: &Path) -> io::Result<()> {
    let mut directory = DirBuilder::new();
    let mut file = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        directory.mode(0o700);
        file.mode(0o600);
    }
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        directory.recursive(true).create(parent)?;
    }
    file.append(true).create(true).open(path)?;
    Ok(())
}

/// The lock beside the file, of the daemon that lives on it. Not on the file itself: SQLite has locks of
/// its own there.
fn lock_file(path: &Path) -> Result<Claim, Cause> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-lock");
    Claim::on(Path::new(&beside))?.ok_or(Cause::Occupied)
}

/// Brings the tables up to date, all or nothing.
async fn migrate(connection: &mut SqliteConnection) -> Result<(), Cause> {
    // Most starts find them so, and need not write.
    let found = sqlx::query_scalar(migrations::VERSION).fetch_one(&mut *connection);
    if let Ok(Some(found)) = found.await
        && migrations::after(found)?.is_empty()
    {
        return Ok(());
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(migrations::TABLE)
        .execute(&mut *transaction)
        .await?;
    let found: Option<i64> = sqlx::query_scalar(migrations::VERSION)
        .fetch_one(&mut *transaction)
        .await?;
    for migration in migrations::after(found.unwrap_or_default())? {
        sqlx::raw_sql(migration.sqlite)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("INSERT INTO squall_schema (version) VALUES (?1)")
            .bind(migration.version)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DEFAULT_WORKSPACE, Place, StoreError};

    #[tokio::test]
    async fn a_full_disk_leaves_what_was_there_and_nothing_half_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("squall.db");
        let store = Sqlite::open(&path, Tenure::Guest).await.expect("it opens");
        let key = |name| Key {
            workspace: DEFAULT_WORKSPACE,
            kind: DocumentKind::Profile,
            name,
        };
        let put = |body| Change::Put {
            body,
            variables: None,
        };
        store
            .write(key("small"), put("x"), 0, 1, None)
            .await
            .expect("room");
        // A file that may not grow is what a full disk looks like from here.
        sqlx::query("PRAGMA max_page_count = 1")
            .execute(store.writers())
            .await
            .expect("a limit");
        let long = "x".repeat(100_000);
        let cause = store
            .write(key("big"), put(&long), 0, 1, None)
            .await
            .expect_err("full");
        let error = StoreError::new(&Place::Sqlite(path), cause);
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        assert!(error.to_string().contains("make room"), "{error}");
        let held = store
            .documents(DEFAULT_WORKSPACE, DocumentKind::Profile)
            .await;
        let names: Vec<_> = held
            .expect("an answer")
            .into_iter()
            .map(|one| one.name)
            .collect();
        assert_eq!(names, ["small"]);
        sqlx::query("PRAGMA max_page_count = 1000000")
            .execute(store.writers())
            .await
            .expect("room again");
        let written = store.write(key("big"), put(&long), 0, 1, None).await;
        assert_eq!(written.expect("room again"), Some(1));
    }
}
