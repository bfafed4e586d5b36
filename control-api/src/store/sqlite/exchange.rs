//! Exchanges in SQLite.

use sqlx::sqlite::{Sqlite as Sql, SqliteConnection};
use squall_journal::id::ExchangeId;
use squall_journal::ring::Filter;

use super::{Sqlite, finish};
use crate::store::error::Cause;
use crate::store::exchange::{AT_ONCE, ExchangeRow, Keeping, Takes as _};

impl Sqlite {
    pub(in crate::store) async fn keep(&self, rows: &[ExchangeRow]) -> Result<u64, Cause> {
        let mut writer = self.begin().await?;
        let kept = insert(&mut writer, rows).await;
        finish(writer, kept).await
    }

    pub(in crate::store) async fn exchanges(
        &self,
        filter: &Filter,
        before: Option<ExchangeId>,
        limit: usize,
    ) -> Result<Vec<(String, String)>, Cause> {
        let mut query = Sql::page(filter, before, limit);
        let query = query.build_query_as().persistent(false);
        Ok(query.fetch_all(self.readers()).await?)
    }

    pub(in crate::store) async fn exchange(&self, id: ExchangeId) -> Result<Option<String>, Cause> {
        let entry = sqlx::query_scalar("SELECT entry FROM exchanges WHERE id = ?1");
        Ok(entry
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await?)
    }

    /// Deletes what is not to be kept, the oldest first, a bounded number; how many.
    pub(in crate::store) async fn prune(&self, keeping: Keeping) -> Result<u64, Cause> {
        let mut query = Sql::prune(keeping);
        let pruned = query.build().execute(self.writers()).await?;
        Ok(pruned.rows_affected())
    }
}

/// Writes rows; how many were not there yet.
async fn insert(writer: &mut SqliteConnection, rows: &[ExchangeRow]) -> Result<u64, Cause> {
    let mut kept = 0;
    for rows in rows.chunks(AT_ONCE) {
        let full = rows.len() == AT_ONCE;
        let mut query = Sql::insert(rows);
        let query = query.build().persistent(full);
        kept += query.execute(&mut *writer).await?.rows_affected();
    }
    Ok(kept)
}
