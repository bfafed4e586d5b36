//! The tables: one script for each version, in PostgreSQL's SQL.

use sqlx::{AnyConnection, Connection as _};

use super::StoreFailure;
use super::error::Cause;
use super::statement::sql;

/// The scripts of versions 1, 2 and so on. A released script is never changed.
const ALL: [&str; 13] = [
    include_str!("migrations/0001_documents.sql"),
    include_str!("migrations/0002_exchanges.sql"),
    include_str!("migrations/0003_tokens.sql"),
    include_str!("migrations/0004_runs.sql"),
    include_str!("migrations/0005_idempotency.sql"),
    include_str!("migrations/0006_audit.sql"),
    include_str!("migrations/0007_recordings.sql"),
    include_str!("migrations/0008_run_exchanges.sql"),
    include_str!("migrations/0009_mutants.sql"),
    include_str!("migrations/0010_mutants_by_age.sql"),
    include_str!("migrations/0011_fleet.sql"),
    include_str!("migrations/0012_document_authors.sql"),
    include_str!("migrations/0013_spread_runs.sql"),
];

/// Replacements in the scripts for SQLite, which compares texts bytewise by default.
const IN_SQLITE: [(&str, &str); 4] = [
    (" COLLATE \"C\"", ""),
    ("BIGINT", "INTEGER"),
    ("BOOLEAN", "INTEGER"),
    ("BYTEA", "BLOB"),
];

/// Lock that serializes the migrations of daemons.
const LOCK: i64 = 0x7371_7561_6c6c;

/// Migrates the tables to the newest version, all or nothing.
pub(super) async fn migrate(
    connection: &mut AnyConnection,
    is_postgres: bool,
) -> Result<(), Cause> {
    const VERSION: &str = "SELECT MAX(version) FROM squall_schema";
    // Most stores are up to date and need no write.
    let found = sql(VERSION).rows::<(Option<i64>,)>(&mut *connection).await;
    if let Ok(found) = found
        && missing(newest(&found))?.is_empty()
    {
        return Ok(());
    }
    let begin = super::begin_to_write(is_postgres);
    let mut transaction = connection.begin_with(begin).await?;
    if is_postgres {
        let lock = sql("SELECT pg_advisory_xact_lock($1)").bind(LOCK);
        lock.execute(&mut *transaction).await?;
    }
    sql("CREATE TABLE IF NOT EXISTS squall_schema (version BIGINT PRIMARY KEY)")
        .execute(&mut *transaction)
        .await?;
    let found = sql(VERSION).rows(&mut *transaction).await?;
    for (version, script) in (newest(&found) + 1..).zip(missing(newest(&found))?) {
        let mut script = (*script).to_owned();
        for (word, in_sqlite) in IN_SQLITE.iter().filter(|_| !is_postgres) {
            script = script.replace(word, in_sqlite);
        }
        sqlx::raw_sql(sqlx::AssertSqlSafe(script))
            .execute(&mut *transaction)
            .await?;
        sql("INSERT INTO squall_schema (version) VALUES ($1)")
            .bind(version)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// The version of a store; 0 when it is new.
fn newest(found: &[(Option<i64>,)]) -> i64 {
    found.first().and_then(|(version,)| *version).unwrap_or(0)
}

/// The scripts that a store of version `found` lacks. Fails for an unknown version.
fn missing(found: i64) -> Result<&'static [&'static str], Cause> {
    let done = usize::try_from(found).unwrap_or_default();
    ALL.get(done..).ok_or_else(|| {
        let remedy = "use the newer Squall, or another `store.url`";
        let known = ALL.len();
        let why =
            format!("its tables have version {found}, and this Squall supports up to {known}");
        Cause::Other(StoreFailure::Unusable(remedy), why)
    })
}
