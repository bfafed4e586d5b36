//! Documents that users write, with their newest hundred versions.

use sqlx::any::AnyRow;
use sqlx::{FromRow, Row as _};
use squall_documents::named;
use squall_harness::digest::sha256;

use super::statement::{SqlStatement, signed, sql};
use super::{Store, StoreError, at_most, audit, can_be_there};
use crate::ledger::AuditEntry;

/// Name of the default workspace.
pub const DEFAULT_WORKSPACE: &str = "default";

/// Versions of a document that are stored, the newest ones.
const VERSIONS: i64 = 100;

named! {
    /// The kind of a document.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum DocumentKind {
        /// A profile.
        Profile = "profile",
        /// A suite.
        Suite = "suite",
        /// A suite's `contract:` block under a name of its own.
        Contract = "contract",
        /// A replay session.
        Replay = "replay",
    }
}

/// The key of a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentKey {
    /// Its workspace.
    pub workspace: String,
    /// Its kind.
    pub kind: DocumentKind,
    /// Its name.
    pub name: String,
}

/// A new version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentText {
    /// Its text.
    pub body: String,
    /// Names of the variables that it needs values for; `None` when it uses none. The values are never stored.
    pub variables: Option<Vec<String>>,
}

impl DocumentText {
    /// The names as a JSON list.
    fn variables(&self) -> Option<String> {
        let names = self.variables.as_ref()?;
        Some(serde_json::json!(names).to_string())
    }
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    /// Its workspace.
    pub workspace: String,
    /// Its name.
    pub name: String,
    /// Its number, from 1.
    pub version: i64,
    /// Its text; `None` when this version is a deletion.
    pub text: Option<DocumentText>,
    /// SHA-256 of the text, 64 hex digits.
    pub digest: String,
}

/// When and by whom a version of a document was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVersion {
    /// Its number, from 1.
    pub version: i64,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// The name of the token, `-` without tokens; `None` if it is not known.
    pub created_by: Option<String>,
    /// Whether it is a deletion.
    pub is_deletion: bool,
}

/// The columns of a [`StoredDocument`].
const COLUMNS: &str = "workspace, name, version, body, variables, digest, CAST(deleted AS INTEGER)";

impl FromRow<'_, AnyRow> for StoredDocument {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        let variables: Option<String> = row.try_get(4)?;
        let text = DocumentText {
            body: row.try_get(3)?,
            // Only this module writes the column.
            variables: variables.map(|names| serde_json::from_str(&names).unwrap_or_default()),
        };
        Ok(Self {
            workspace: row.try_get(0)?,
            name: row.try_get(1)?,
            version: row.try_get(2)?,
            text: (row.try_get::<i64, _>(6)? == 0).then_some(text),
            digest: row.try_get(5)?,
        })
    }
}

impl Store {
    /// The newest version of every document of a kind, deleted ones included, by workspace and name.
    pub async fn documents(&self, kind: DocumentKind) -> Result<Vec<StoredDocument>, StoreError> {
        let newest = sql(format!(
            "SELECT {COLUMNS} FROM documents AS newest WHERE kind = $1 AND version = (SELECT MAX(version) \
             FROM documents WHERE kind = $1 AND workspace = newest.workspace AND name = newest.name) \
             ORDER BY workspace, name"
        ));
        self.read(newest.bind(kind.as_str())).await
    }

    /// Workspace, name and bytes of the newest version of every document of a kind that is not deleted.
    pub async fn document_sizes(
        &self,
        kind: DocumentKind,
    ) -> Result<Vec<(String, String, usize)>, StoreError> {
        let sizes = sql(
            "SELECT workspace, name, CAST(OCTET_LENGTH(body) AS BIGINT) FROM documents AS newest \
             WHERE kind = $1 AND NOT deleted AND version = (SELECT MAX(version) FROM documents \
             WHERE kind = $1 AND workspace = newest.workspace AND name = newest.name)",
        );
        let rows: Vec<(String, String, i64)> = self.read(sizes.bind(kind.as_str())).await?;
        let rows = rows.into_iter();
        let size = |bytes: i64| usize::try_from(bytes).unwrap_or_default();
        Ok(rows
            .map(|(workspace, name, bytes)| (workspace, name, size(bytes)))
            .collect())
    }

    /// Name, newest version and its time (milliseconds since 1970) of at most `limit` documents of a kind in a
    /// workspace that are not deleted, by name, those whose name comes after `after` (empty: from the first).
    pub async fn listed(
        &self,
        workspace: &str,
        kind: DocumentKind,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, i64, i64)>, StoreError> {
        let listed = sql(
            "SELECT name, version, created_at FROM documents AS newest \
             WHERE workspace = $1 AND kind = $2 AND name > $3 AND NOT deleted AND version = \
             (SELECT MAX(version) FROM documents WHERE workspace = $1 AND kind = $2 AND name = newest.name) \
             ORDER BY name LIMIT $4",
        )
        .bind(workspace)
        .bind(kind.as_str())
        .bind(after)
        .bind(at_most(limit));
        self.read(listed).await
    }

    /// The stored versions of a document, the newest first.
    pub async fn versions(&self, key: &DocumentKey) -> Result<Vec<StoredVersion>, StoreError> {
        if !can_be_there(&key.name) {
            return Ok(Vec::new());
        }
        let select =
            "SELECT version, created_at, created_by, CAST(deleted AS INTEGER) FROM documents";
        let rows: Vec<(i64, i64, Option<String>, i64)> = self
            .read(key.select(select, " ORDER BY version DESC"))
            .await?;
        let rows = rows.into_iter();
        let version = |(version, created_at, created_by, deleted)| StoredVersion {
            version,
            created_at,
            created_by,
            is_deletion: deleted != 0,
        };
        Ok(rows.map(version).collect())
    }

    /// The newest version of a document, which may be a deletion; `None` when it was never put.
    pub async fn newest(&self, key: &DocumentKey) -> Result<Option<StoredDocument>, StoreError> {
        self.one(key, newest(key)).await
    }

    /// One version of a document, which may be a deletion; `None` when it does not exist.
    pub async fn document(
        &self,
        key: &DocumentKey,
        version: i64,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let select = format!("SELECT {COLUMNS} FROM documents");
        let one = key.select(select, " AND version = $4").bind(version);
        self.one(key, one).await
    }

    async fn one(
        &self,
        key: &DocumentKey,
        statement: SqlStatement,
    ) -> Result<Option<StoredDocument>, StoreError> {
        if !can_be_there(&key.name) {
            return Ok(None);
        }
        Ok(self.read(statement).await?.into_iter().next())
    }

    /// Writes a new version of a document after version `over` (0: there is none), or its deletion without a `text`,
    /// and returns its number. The newest 100 versions are kept. An identical document is not written again: the
    /// number is then `over`. `at` is milliseconds since 1970. The audit `entry` is written in the same transaction,
    /// with the digests before and after.
    pub async fn write(
        &self,
        key: &DocumentKey,
        text: Option<&DocumentText>,
        over: i64,
        at: u64,
        entry: Option<AuditEntry>,
    ) -> Result<i64, WriteError> {
        let body = text.map_or("", |text| text.body.as_str());
        if body.contains('\0') {
            return Err(WriteError::Nul);
        }
        let written = self.bounded(async {
            let mut transaction = self.begin().await?;
            let newest: Vec<StoredDocument> = newest(key).rows(&mut *transaction).await?;
            let newest = newest.into_iter().next();
            if newest.as_ref().map_or(0, |newest| newest.version) != over {
                return Ok(None);
            }
            let is_new = newest.as_ref().is_none_or(|newest| newest.text.as_ref() != text);
            if is_new {
                // If two daemons write the same version at once, one of the inserts fails.
                let insert = sql(
                    "INSERT INTO documents \
                     (workspace, kind, name, version, body, variables, digest, created_at, deleted, created_by) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
                )
                .bind(&key.workspace)
                .bind(key.kind.as_str())
                .bind(&key.name)
                .bind(over + 1)
                .bind(body)
                .bind(text.and_then(DocumentText::variables))
                .bind(sha256(body))
                .bind(signed(at))
                .bind(text.is_none())
                .bind(entry.as_ref().map(|entry| entry.actor.clone()));
                if insert.execute(&mut *transaction).await? == 0 {
                    return Ok(None);
                }
                let forget = key.select("DELETE FROM documents", " AND version <= $4");
                let forget = forget.bind(over + 1 - VERSIONS);
                forget.execute(&mut *transaction).await?;
                self.notify(&mut transaction, key.kind.as_str()).await?;
            }
            let entry = entry.map(|entry| AuditEntry {
                before: newest.and_then(|newest| newest.text.map(|_| newest.digest)),
                after: text.map(|text| sha256(&text.body)),
                ..entry
            });
            audit::append(&mut transaction, entry.as_slice()).await?;
            transaction.commit().await?;
            Ok(Some(over + i64::from(is_new)))
        });
        written.await?.ok_or(WriteError::Stale)
    }
}

impl DocumentKey {
    /// A statement about versions of this document; the next parameter is `$4`.
    fn select(&self, what: impl std::fmt::Display, which: &str) -> SqlStatement {
        sql(format!(
            "{what} WHERE workspace = $1 AND kind = $2 AND name = $3{which}"
        ))
        .bind(&self.workspace)
        .bind(self.kind.as_str())
        .bind(&self.name)
    }
}

fn newest(key: &DocumentKey) -> SqlStatement {
    key.select(
        format!("SELECT {COLUMNS} FROM documents"),
        " ORDER BY version DESC LIMIT 1",
    )
}

/// Why a document was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another writer has written a newer version.
    #[error("there is a newer version; read it again and edit that")]
    Stale,
    /// The text contains NUL, which databases do not support.
    #[error("the document holds a NUL character, which cannot be stored; remove it")]
    Nul,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
