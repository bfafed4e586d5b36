//! The audit log in SQLite.

use sqlx::sqlite::{Sqlite as Sql, SqliteConnection};

use super::{Sqlite, finish};
use crate::ledger::Draft;
use crate::store::audit::{self, AuditFilter, TakesAudit};
use crate::store::error::Cause;

impl Sqlite {
    pub(in crate::store) async fn append_audit(&self, drafts: &[Draft]) -> Result<(), Cause> {
        let mut writer = self.begin().await?;
        let appended = append(&mut writer, drafts).await;
        finish(writer, appended).await
    }

    pub(in crate::store) async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: i64,
    ) -> Result<Vec<audit::Row>, Cause> {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        let mut query = <Sql as TakesAudit>::entries(filter, before, limit);
        let query = query.build_query_as().persistent(false);
        Ok(query.fetch_all(self.readers()).await?)
    }

    pub(in crate::store) async fn audit_after(
        &self,
        number: i64,
        limit: i64,
    ) -> Result<Vec<audit::Row>, Cause> {
        let mut query = <Sql as TakesAudit>::following(number, limit);
        Ok(query.build_query_as().fetch_all(self.readers()).await?)
    }

    pub(in crate::store) async fn audit_head(&self) -> Result<Option<(i64, String)>, Cause> {
        Ok(sqlx::query_as(audit::HEAD)
            .fetch_optional(self.readers())
            .await?)
    }
}

/// Appends entries to the audit log. Nobody else writes meanwhile.
pub(super) async fn append(writer: &mut SqliteConnection, drafts: &[Draft]) -> Result<(), Cause> {
    if drafts.is_empty() {
        return Ok(());
    }
    let head: (i64, String) = sqlx::query_as(audit::HEAD).fetch_one(&mut *writer).await?;
    let entries = audit::chained(drafts, head);
    let mut query = <Sql as TakesAudit>::append(&entries);
    query
        .build()
        .persistent(false)
        .execute(&mut *writer)
        .await?;
    if let Some(last) = entries.last() {
        Sql::move_head(last).build().execute(&mut *writer).await?;
    }
    Ok(())
}
