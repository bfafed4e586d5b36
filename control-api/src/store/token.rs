//! Tokens that were created by API: stored without the secret.

use super::statement::{SqlStatement, signed, sql};
use super::{Store, StoreError, audit, can_be_there};
use crate::credential::{Digest, TokenRole};
use crate::ledger::AuditEntry;

/// A valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// Its workspace.
    pub workspace: String,
    /// Its name, unique among the valid tokens of the workspace.
    pub name: String,
    /// Its role.
    pub role: TokenRole,
    /// The digest of its secret.
    pub digest: Digest,
    /// When it was created, milliseconds since 1970.
    pub created_at: u64,
}

/// A row of `tokens`.
type Row = (String, String, String, String, i64);

/// The columns of [`Row`].
const COLUMNS: &str = "workspace, name, role, digest, created_at";

/// Text of a notice of a change to tokens.
const NOTICE: &str = "token";

impl StoredToken {
    /// `None` for an invalid row, which was written by hand: it grants no access.
    fn read((workspace, name, role, digest, created_at): Row) -> Option<Self> {
        Some(Self {
            workspace,
            name,
            role: TokenRole::parse(&role)?,
            digest: Digest::from_hex(&digest)?,
            created_at: u64::try_from(created_at).unwrap_or_default(),
        })
    }
}

impl Store {
    /// Every token that is valid, by workspace and name.
    pub async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        let valid = sql(format!(
            "SELECT {COLUMNS} FROM tokens WHERE revoked_at IS NULL ORDER BY workspace, name"
        ));
        let rows = self.read(valid).await?.into_iter();
        Ok(rows.filter_map(StoredToken::read).collect())
    }

    /// Adds a token, with an audit entry; `false` when its workspace has a valid one of this name.
    pub async fn add_token(
        &self,
        token: &StoredToken,
        entry: Option<&AuditEntry>,
    ) -> Result<bool, StoreError> {
        let insert = sql(format!(
            "INSERT INTO tokens ({COLUMNS}) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
        ))
        .bind(&token.workspace)
        .bind(&token.name)
        .bind(token.role.as_str())
        .bind(token.digest.to_hex())
        .bind(signed(token.created_at));
        self.change_tokens(insert, entry).await
    }

    /// Revokes a token permanently, at `at` (milliseconds since 1970), with an audit entry; `false` when no valid one
    /// has this name. Its row remains.
    pub async fn revoke_token(
        &self,
        workspace: &str,
        name: &str,
        at: u64,
        entry: Option<&AuditEntry>,
    ) -> Result<bool, StoreError> {
        if !can_be_there(name) {
            return Ok(false);
        }
        let revoke = sql("UPDATE tokens SET revoked_at = $3 \
             WHERE workspace = $1 AND name = $2 AND revoked_at IS NULL")
        .bind(workspace)
        .bind(name)
        .bind(signed(at));
        self.change_tokens(revoke, entry).await
    }

    async fn change_tokens(
        &self,
        statement: SqlStatement,
        entry: Option<&AuditEntry>,
    ) -> Result<bool, StoreError> {
        self.bounded(async {
            let mut transaction = self.begin().await?;
            if statement.execute(&mut *transaction).await? == 0 {
                return Ok(false);
            }
            audit::append(&mut transaction, entry.map_or(&[], std::slice::from_ref)).await?;
            self.notify(&mut transaction, NOTICE).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}
