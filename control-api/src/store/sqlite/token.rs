//! Tokens in SQLite.

use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use super::audit::append;
use super::{Sqlite, finish};
use crate::ledger::Draft;
use crate::store::document::signed;
use crate::store::error::Cause;
use crate::store::{StoredToken, token};

impl Sqlite {
    pub(in crate::store) async fn tokens(&self) -> Result<Vec<token::Row>, Cause> {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        let rows = sqlx::query_as(AssertSqlSafe(format!(
            "SELECT {} FROM tokens WHERE revoked_at IS NULL ORDER BY workspace, name",
            token::COLUMNS
        )));
        Ok(rows.fetch_all(self.readers()).await?)
    }

    /// `false` when the name is taken.
    pub(in crate::store) async fn add_token(
        &self,
        token: &StoredToken,
        entry: Option<&Draft>,
    ) -> Result<bool, Cause> {
        let mut writer = self.begin().await?;
        let added = add_token(&mut writer, token, entry).await;
        finish(writer, added).await
    }

    /// `false` when there is none.
    pub(in crate::store) async fn revoke_token(
        &self,
        workspace: &str,
        name: &str,
        at: u64,
        entry: Option<&Draft>,
    ) -> Result<bool, Cause> {
        let mut writer = self.begin().await?;
        let revoked = revoke_token(&mut writer, workspace, name, at, entry).await;
        finish(writer, revoked).await
    }
}

async fn add_token(
    writer: &mut SqliteConnection,
    token: &StoredToken,
    entry: Option<&Draft>,
) -> Result<bool, Cause> {
    let added = sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO tokens ({}) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        token::COLUMNS
    )))
    .bind(&token.workspace)
    .bind(&token.name)
    .bind(token.role.as_str())
    .bind(token.digest.to_hex())
    .bind(signed(token.created_at))
    .execute(&mut *writer)
    .await?;
    let added = added.rows_affected() > 0;
    append(
        writer,
        entry.filter(|_| added).map_or(&[], std::slice::from_ref),
    )
    .await?;
    Ok(added)
}

async fn revoke_token(
    writer: &mut SqliteConnection,
    workspace: &str,
    name: &str,
    at: u64,
    entry: Option<&Draft>,
) -> Result<bool, Cause> {
    let revoked = sqlx::query(
        "UPDATE tokens SET revoked_at = ?3 \
         WHERE workspace = ?1 AND name = ?2 AND revoked_at IS NULL",
    )
    .bind(workspace)
    .bind(name)
    .bind(signed(at))
    .execute(&mut *writer)
    .await?;
    let revoked = revoked.rows_affected() > 0;
    append(
        writer,
        entry.filter(|_| revoked).map_or(&[], std::slice::from_ref),
    )
    .await?;
    Ok(revoked)
}
