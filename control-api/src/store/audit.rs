//! The audit log in the store.

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, FromRow, Row as _};

use super::error::Cause;
use super::statement::{signed, sql};
use super::{Store, StoreError, at_most};
use crate::ledger::AuditEntry;
use crate::ledger::chain::ChainHead;

/// A filter of entries; every part that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Workspace of what was changed.
    pub workspace: Option<String>,
    /// Name of the token, or `squall`.
    pub actor: Option<String>,
    /// Method and route, or a word for a change without a call.
    pub action: Option<String>,
    /// The path, or the changed object.
    pub target: Option<String>,
    /// `done`, `refused` or `failed`.
    pub outcome: Option<String>,
    /// At or after this time, milliseconds since 1970.
    pub since_ms: Option<u64>,
}

/// The columns of an [`AuditEntry`].
const COLUMNS: &str = "number, at, workspace, actor, source, action, target, before, after, outcome, \
                       detail, previous, hash";

impl FromRow<'_, AnyRow> for AuditEntry {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            number: row.try_get(0)?,
            at: row.try_get(1)?,
            workspace: row.try_get(2)?,
            actor: row.try_get(3)?,
            source: row.try_get(4)?,
            action: row.try_get(5)?,
            target: row.try_get(6)?,
            before: row.try_get(7)?,
            after: row.try_get(8)?,
            outcome: row.try_get(9)?,
            detail: row.try_get(10)?,
            previous: row.try_get(11)?,
            hash: row.try_get(12)?,
        })
    }
}

impl Store {
    /// Appends entries to the audit log, in order and all or none.
    pub async fn append_audit(&self, entries: &[AuditEntry]) -> Result<(), StoreError> {
        self.bounded(async {
            let mut transaction = self.begin().await?;
            append(&mut transaction, entries).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await
    }

    /// At most `limit` entries that match `filter`, newest first, with numbers below `before`.
    pub async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let mut page = sql(format!("SELECT {COLUMNS} FROM audit WHERE TRUE"));
        if let Some(before) = before {
            page.push(" AND number < ").push_bind(before);
        }
        if let Some(since) = filter.since_ms {
            page.push(" AND at >= ").push_bind(signed(since));
        }
        for (column, filter) in [
            ("workspace", &filter.workspace),
            ("actor", &filter.actor),
            ("action", &filter.action),
            ("target", &filter.target),
            ("outcome", &filter.outcome),
        ] {
            if let Some(filter) = filter {
                page.push(" AND ").push(column).push(" = ");
                page.push_bind(filter.replace('\0', "\u{fffd}"));
            }
        }
        page.push(" ORDER BY number DESC LIMIT ")
            .push_bind(at_most(limit));
        self.read(page).await
    }

    /// At most `limit` entries of the audit log with a number greater than `number`, oldest first.
    pub async fn audit_after(
        &self,
        number: i64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let following = sql(format!(
            "SELECT {COLUMNS} FROM audit WHERE number > $1 ORDER BY number LIMIT $2"
        ));
        (self.read(following.bind(number).bind(at_most(limit)))).await
    }

    /// The head of the chain, from its own row; `None` if that was deleted.
    pub async fn audit_head(&self) -> Result<Option<ChainHead>, StoreError> {
        let head = sql("SELECT number, hash FROM audit_head WHERE one = 1");
        // An unused in-memory store has a head, too.
        let rows = self.bounded(head.rows(&self.reader)).await?.into_iter();
        let mut heads = rows.map(|(number, hash)| ChainHead { number, hash });
        Ok(heads.next())
    }
}

/// Appends entries to the audit log. It writes the head's row first, which locks it until the transaction ends,
/// so that entries of several daemons are ordered.
pub(super) async fn append(
    connection: &mut AnyConnection,
    entries: &[AuditEntry],
) -> Result<(), Cause> {
    if entries.is_empty() {
        return Ok(());
    }
    let head = sql("UPDATE audit_head SET number = number WHERE one = 1 RETURNING number, hash");
    let heads: Vec<(i64, String)> = head.rows(&mut *connection).await?;
    let (mut number, mut hash) = heads.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
    let insert = format!(
        "INSERT INTO audit ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
    );
    for entry in entries {
        let entry = entry.clone().after(number, &hash);
        (number, hash) = (entry.number, entry.hash.clone());
        sql(&insert)
            .bind(entry.number)
            .bind(entry.at)
            .bind(entry.workspace)
            .bind(entry.actor)
            .bind(entry.source)
            .bind(entry.action)
            .bind(entry.target)
            .bind(entry.before)
            .bind(entry.after)
            .bind(entry.outcome)
            .bind(entry.detail)
            .bind(entry.previous)
            .bind(entry.hash)
            .execute(&mut *connection)
            .await?;
    }
    let head = sql("UPDATE audit_head SET number = $1, hash = $2 WHERE one = 1");
    head.bind(number).bind(hash).execute(connection).await?;
    Ok(())
}
