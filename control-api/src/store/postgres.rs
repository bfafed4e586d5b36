//! The store as a database of PostgreSQL's, shared by several daemons.

mod recording;

use std::io::ErrorKind;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, Postgres as Sql};
use squall_journal::id::ExchangeId;
use squall_journal::ring::Filter;

use super::audit::{self, AuditFilter, TakesAudit};
use super::document::{FORGET, LISTED, ListedDocument, Row, VERSIONS, signed};
use super::error::Cause;
use super::exchange::{AT_ONCE, ExchangeRow, Keeping, Takes as _};
use super::{
    ACQUIRE, Change, Document, DocumentKind, Key, PATIENCE, StoredToken, migrations, token,
};
use crate::ledger::Draft;

/// Most connections of one daemon.
const CONNECTIONS: u32 = 5;

/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_mins(1);

/// Daemons that start at once bring the tables up to date one after the other.
const LOCK: i64 = 0x7371_7561_6c6c;

/// Where daemons tell each other what they have changed: a document's kind, or [`TOKENS`].
const CHANNEL: &str = "squall";

/// What a daemon says that has made or revoked a token.
const TOKENS: &str = "token";

/// A listener that has heard nothing for so long makes sure that it still could.
const QUIET: Duration = Duration::from_secs(30);

/// The columns of [`Row`].
const COLUMNS: &str = "name, version, body, variables, digest, created_at, deleted";

#[derive(Debug, Clone)]
pub(super) struct Postgres {
    pub(super) pool: PgPool,
}

impl Postgres {
    /// Connections for whatever is asked, as SQLite's readers and writers.
    pub(super) fn pools(&self) -> &PgPool {
        &self.pool
    }

    pub(super) async fn open(address: &PgConnectOptions) -> Result<Self, Cause> {
        // A pool tries again until its time is over and then forgets why; this one says why.
        let mut first = PgConnection::connect_with(address).await?;
        migrate(&mut first).await?;
        first.close().await?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(ACQUIRE)
            .idle_timeout(IDLE)
            .connect_lazy_with(address.clone());
        Ok(Self { pool })
    }

    pub(super) async fn documents(
        &self,
        workspace: &str,
        kind: DocumentKind,
    ) -> Result<Vec<Document>, Cause> {
        let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT DISTINCT ON (name) {COLUMNS} FROM documents WHERE workspace = $1 AND kind = $2 \
             ORDER BY name, version DESC"
        )))
        .bind(workspace)
        .bind(kind.as_str())
        .fetch_all(&self.pool)
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
        let rows: Vec<(String, i64, String, i64)> = sqlx::query_as(LISTED)
            .bind(workspace)
            .bind(kind.as_str())
            .bind(after)
            .bind(limit)
            .fetch_all(&self.pool)
            .await?;
        Ok(rows.into_iter().map(ListedDocument::from).collect())
    }

    pub(super) async fn newest(&self, key: Key<'_>) -> Result<Option<Document>, Cause> {
        let row: Option<Row> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM documents WHERE workspace = $1 AND kind = $2 AND name = $3 \
             ORDER BY version DESC LIMIT 1"
        )))
        .bind(key.workspace)
        .bind(key.kind.as_str())
        .bind(key.name)
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(Document::from))
    }

    pub(super) async fn workspaces(&self, kind: DocumentKind) -> Result<Vec<String>, Cause> {
        let names = "SELECT DISTINCT workspace FROM documents WHERE kind = $1 ORDER BY workspace";
        let names = sqlx::query_scalar(names).bind(kind.as_str());
        Ok(names.fetch_all(&self.pool).await?)
    }

    pub(super) async fn document(
        &self,
        key: Key<'_>,
        version: i64,
    ) -> Result<Option<Document>, Cause> {
        let row: Option<Row> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM documents \
             WHERE workspace = $1 AND kind = $2 AND name = $3 AND version = $4"
        )))
        .bind(key.workspace)
        .bind(key.kind.as_str())
        .bind(key.name)
        .bind(version)
        .fetch_optional(&self.pool)
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
        let mut transaction = self.pool.begin().await?;
        let newest: Option<Row> = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM documents WHERE workspace = $1 AND kind = $2 AND name = $3 \
             ORDER BY version DESC LIMIT 1"
        )))
        .bind(key.workspace)
        .bind(key.kind.as_str())
        .bind(key.name)
        .fetch_optional(&mut *transaction)
        .await?;
        let newest = newest.map(Document::from);
        if newest.as_ref().map_or(0, |newest| newest.version) != over {
            return Ok(None);
        }
        let entry = change.entry(entry, newest.as_ref());
        if newest.is_some_and(|newest| newest.is(change)) {
            append(&mut transaction, entry.as_slice()).await?;
            transaction.commit().await?;
            return Ok(Some(over));
        }
        // Of two daemons that write the same version at once, one finds it taken.
        let written = sqlx::query(
            "INSERT INTO documents \
             (workspace, kind, name, version, body, variables, digest, created_at, deleted) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
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
        .execute(&mut *transaction)
        .await?;
        if written.rows_affected() == 0 {
            return Ok(None);
        }
        sqlx::query(FORGET)
            .bind(key.workspace)
            .bind(key.kind.as_str())
            .bind(key.name)
            .bind(over + 1 - VERSIONS)
            .execute(&mut *transaction)
            .await?;
        append(&mut transaction, entry.as_slice()).await?;
        tell(&mut transaction, key.kind.as_str()).await?;
        transaction.commit().await?;
        Ok(Some(over + 1))
    }

    pub(super) async fn keep(&self, rows: &[ExchangeRow]) -> Result<u64, Cause> {
        let mut transaction = self.pool.begin().await?;
        let mut kept = 0;
        for rows in rows.chunks(AT_ONCE) {
            let full = rows.len() == AT_ONCE;
            let mut query = Sql::insert(rows);
            let query = query.build().persistent(full);
            kept += query.execute(&mut *transaction).await?.rows_affected();
        }
        transaction.commit().await?;
        Ok(kept)
    }

    pub(super) async fn exchanges(
        &self,
        filter: &Filter,
        before: Option<ExchangeId>,
        limit: usize,
    ) -> Result<Vec<(String, String)>, Cause> {
        let mut query = Sql::page(filter, before, limit);
        let query = query.build_query_as().persistent(false);
        Ok(query.fetch_all(&self.pool).await?)
    }

    pub(super) async fn exchange(&self, id: ExchangeId) -> Result<Option<String>, Cause> {
        let entry = sqlx::query_scalar("SELECT entry FROM exchanges WHERE id = $1");
        Ok(entry
            .bind(id.to_string())
            .fetch_optional(&self.pool)
            .await?)
    }

    /// Deletes what is not to be kept, the oldest first, a bounded number; how many.
    pub(super) async fn prune(&self, keeping: Keeping) -> Result<u64, Cause> {
        let mut query = Sql::prune(keeping);
        let pruned = query.build().execute(&self.pool).await?;
        Ok(pruned.rows_affected())
    }

    pub(super) async fn tokens(&self) -> Result<Vec<token::Row>, Cause> {
        let rows = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT {} FROM tokens WHERE revoked_at IS NULL ORDER BY workspace, name",
            token::COLUMNS
        )));
        Ok(rows.fetch_all(&self.pool).await?)
    }

    /// `false` when the name is taken.
    pub(super) async fn add_token(
        &self,
        token: &StoredToken,
        entry: Option<&Draft>,
    ) -> Result<bool, Cause> {
        let mut transaction = self.pool.begin().await?;
        let added = sqlx::query(AssertSqlSafe(format!(
            "INSERT INTO tokens ({}) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
            token::COLUMNS
        )))
        .bind(&token.workspace)
        .bind(&token.name)
        .bind(token.role.as_str())
        .bind(token.digest.to_hex())
        .bind(signed(token.created_at))
        .execute(&mut *transaction)
        .await?;
        let entry = entry.filter(|_| added.rows_affected() > 0);
        append(&mut transaction, entry.map_or(&[], std::slice::from_ref)).await?;
        tell(&mut transaction, TOKENS).await?;
        transaction.commit().await?;
        Ok(added.rows_affected() > 0)
    }

    /// `false` when there is none.
    pub(super) async fn revoke_token(
        &self,
        workspace: &str,
        name: &str,
        at: u64,
        entry: Option<&Draft>,
    ) -> Result<bool, Cause> {
        let mut transaction = self.pool.begin().await?;
        let revoked = sqlx::query(
            "UPDATE tokens SET revoked_at = $3 \
             WHERE workspace = $1 AND name = $2 AND revoked_at IS NULL",
        )
        .bind(workspace)
        .bind(name)
        .bind(signed(at))
        .execute(&mut *transaction)
        .await?;
        let entry = entry.filter(|_| revoked.rows_affected() > 0);
        append(&mut transaction, entry.map_or(&[], std::slice::from_ref)).await?;
        tell(&mut transaction, TOKENS).await?;
        transaction.commit().await?;
        Ok(revoked.rows_affected() > 0)
    }

    pub(super) async fn append_audit(&self, drafts: &[Draft]) -> Result<(), Cause> {
        let mut transaction = self.pool.begin().await?;
        append(&mut transaction, drafts).await?;
        transaction.commit().await?;
        Ok(())
    }

    pub(super) async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: i64,
    ) -> Result<Vec<audit::Row>, Cause> {
        let mut query = <Sql as TakesAudit>::entries(filter, before, limit);
        let query = query.build_query_as().persistent(false);
        Ok(query.fetch_all(&self.pool).await?)
    }

    pub(super) async fn audit_after(
        &self,
        number: i64,
        limit: i64,
    ) -> Result<Vec<audit::Row>, Cause> {
        let mut query = <Sql as TakesAudit>::following(number, limit);
        Ok(query.build_query_as().fetch_all(&self.pool).await?)
    }

    pub(super) async fn audit_head(&self) -> Result<Option<(i64, String)>, Cause> {
        Ok(sqlx::query_as(audit::HEAD)
            .fetch_optional(&self.pool)
            .await?)
    }

    /// Hears what others tell from now on, over a connection of its own.
    pub(super) async fn listen(&self) -> Result<Ear, Cause> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with((*self.pool.connect_options()).clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        // What is told while nobody listens is lost, so a lost connection is an error.
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(Ear { listener })
    }

    pub(super) async fn begin(&self) -> Result<sqlx::Transaction<'static, Sql>, Cause> {
        Ok(self.pool.begin().await?)
    }

    pub(super) async fn reader(&self) -> Result<sqlx::pool::PoolConnection<Sql>, Cause> {
        Ok(self.pool.acquire().await?)
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Hears what other daemons tell.
pub(super) struct Ear {
    listener: PgListener,
}

impl Ear {
    /// Waits until something may have changed.
    pub(super) async fn hear(&mut self) -> Result<(), Cause> {
        match tokio::time::timeout(QUIET, self.listener.try_recv()).await {
            Ok(Ok(Some(_))) => Ok(()),
            Ok(Ok(None)) => Err(Cause::Sql(sqlx::Error::Io(ErrorKind::BrokenPipe.into()))),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => {
                // A connection that nobody has closed may lead nowhere.
                let asked = sqlx::query("SELECT 1").execute(&mut self.listener);
                let answer = tokio::time::timeout(PATIENCE, asked).await;
                answer.map_err(|_| Cause::silent(PATIENCE))??;
                Ok(())
            }
        }
    }
}

/// Appends entries to the audit log. The head's row is locked until the transaction is over: entries of
/// several daemons follow one another.
async fn append(connection: &mut PgConnection, drafts: &[Draft]) -> Result<(), Cause> {
    if drafts.is_empty() {
        return Ok(());
    }
    let head = AssertSqlSafe(format!("{} FOR UPDATE", audit::HEAD));
    let head: (i64, String) = sqlx::query_as(head).fetch_one(&mut *connection).await?;
    let entries = audit::chained(drafts, head);
    let mut query = <Sql as TakesAudit>::append(&entries);
    query
        .build()
        .persistent(false)
        .execute(&mut *connection)
        .await?;
    if let Some(last) = entries.last() {
        Sql::move_head(last)
            .build()
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Tells other daemons; they hear it when the transaction is committed, and only then.
async fn tell(connection: &mut PgConnection, what: &str) -> Result<(), Cause> {
    sqlx::query("SELECT pg_notify($1, $2)")
        .bind(CHANNEL)
        .bind(what)
        .execute(connection)
        .await?;
    Ok(())
}

/// Brings the tables up to date, all or nothing.
async fn migrate(connection: &mut PgConnection) -> Result<(), Cause> {
    let mut transaction = connection.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *transaction)
        .await?;
    sqlx::query(migrations::TABLE)
        .execute(&mut *transaction)
        .await?;
    let found: Option<i64> = sqlx::query_scalar(migrations::VERSION)
        .fetch_one(&mut *transaction)
        .await?;
    for migration in migrations::after(found.unwrap_or_default())? {
        sqlx::raw_sql(migration.postgres)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("INSERT INTO squall_schema (version) VALUES ($1)")
            .bind(migration.version)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}
