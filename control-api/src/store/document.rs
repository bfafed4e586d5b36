//! Documents that users write, with their newest hundred versions.

use sqlx::any::AnyRow;
use sqlx::{FromRow, Row as _};
use squall_harness::digest::sha256;

use super::statement::{Statement, signed, sql};
use super::{Store, StoreError, at_most, audit, can_be_there};
use crate::ledger::Draft;

/// Name of the default workspace.
pub const DEFAULT_WORKSPACE: &str = "default";

/// Versions of a document that are stored, the newest ones.
const VERSIONS: i64 = 100;

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// A profile.
    Profile,
    /// A suite.
    Suite,
    /// A suite's `contract:` block under a name of its own.
    Contract,
    /// A replay session.
    Replay,
}

impl DocumentKind {
    /// The name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Suite => "suite",
            Self::Contract => "contract",
            Self::Replay => "replay",
        }
    }
}

/// The key of a document.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// Its workspace.
    pub workspace: &'a str,
    /// Its kind.
    pub kind: DocumentKind,
    /// Its name.
    pub name: &'a str,
}

/// A change of a document.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Puts it.
    Put {
        /// Its text.
        body: &'a str,
        /// Names of the variables that it needs values for; `None` when it uses none. The values are never
        /// stored.
        variables: Option<&'a [String]>,
    },
    /// Deletes it.
    Delete,
}

impl<'a> Change<'a> {
    pub(crate) fn body(self) -> &'a str {
        match self {
            Self::Put { body, .. } => body,
            Self::Delete => "",
        }
    }

    fn deletes(self) -> bool {
        matches!(self, Self::Delete)
    }

    /// The audit entry of this change, with the digests before and after.
    fn entry(self, entry: Option<&Draft>, newest: Option<&Document>) -> Option<Draft> {
        let held = newest.filter(|newest| !newest.deleted);
        Some(Draft {
            before: held.map(|held| held.digest.clone()),
            after: (!self.deletes()).then(|| self.digest()),
            ..entry?.clone()
        })
    }

    /// The names as a JSON list.
    fn variables(self) -> Option<String> {
        match self {
            Self::Put { variables, .. } => {
                variables.map(|names| serde_json::json!(names).to_string())
            }
            Self::Delete => None,
        }
    }

    /// SHA-256 of the text, 64 hex digits.
    fn digest(self) -> String {
        sha256(self.body())
    }
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Its number, from 1.
    pub version: i64,
    /// Its text; empty when this version is a deletion.
    pub body: String,
    /// Names of the variables that it needs values for; `None` when it uses none.
    pub variables: Option<Vec<String>>,
    /// SHA-256 of the text, 64 hex digits.
    pub digest: String,
    /// When it was written, milliseconds since 1970.
    pub created_at: u64,
    /// Whether this version is a deletion.
    pub deleted: bool,
}

/// The columns of a [`Document`].
const COLUMNS: &str =
    "name, version, body, variables, digest, created_at, CAST(deleted AS INTEGER)";

impl FromRow<'_, AnyRow> for Document {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        let variables: Option<String> = row.try_get(3)?;
        Ok(Self {
            name: row.try_get(0)?,
            version: row.try_get(1)?,
            body: row.try_get(2)?,
            // Only this module writes the column.
            variables: variables.map(|names| serde_json::from_str(&names).unwrap_or_default()),
            digest: row.try_get(4)?,
            created_at: u64::try_from(row.try_get::<i64, _>(5)?).unwrap_or_default(),
            deleted: row.try_get::<i64, _>(6)? != 0,
        })
    }
}

/// The newest version of a document, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDocument {
    /// Its name.
    pub name: String,
    /// Its number, from 1.
    pub version: i64,
    /// When it was written, milliseconds since 1970.
    pub created_at: u64,
}

impl FromRow<'_, AnyRow> for ListedDocument {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            name: row.try_get(0)?,
            version: row.try_get(1)?,
            created_at: u64::try_from(row.try_get::<i64, _>(2)?).unwrap_or_default(),
        })
    }
}

impl Document {
    /// Whether `change` would change nothing.
    fn is(&self, change: Change<'_>) -> bool {
        let names = |list: &Option<Vec<String>>| {
            list.as_ref()
                .map(|names| serde_json::json!(names).to_string())
        };
        self.deleted == change.deletes()
            && self.body == change.body()
            && names(&self.variables) == change.variables()
    }
}

impl Store {
    /// The newest version of every document of a kind in a workspace, deleted ones included, by name.
    pub async fn documents(
        &self,
        workspace: &str,
        kind: DocumentKind,
    ) -> Result<Vec<Document>, StoreError> {
        let newest = sql(format!(
            "SELECT {COLUMNS} FROM documents AS newest WHERE workspace = $1 AND kind = $2 AND version = \
             (SELECT MAX(version) FROM documents WHERE workspace = $1 AND kind = $2 AND name = newest.name) \
             ORDER BY name"
        ));
        (self.read(newest.bind(workspace).bind(kind.as_str()))).await
    }

    /// At most `limit` documents of a kind in a workspace that are not deleted, by name, those whose name
    /// comes after `after` (empty: from the first).
    pub async fn listed(
        &self,
        workspace: &str,
        kind: DocumentKind,
        after: &str,
        limit: usize,
    ) -> Result<Vec<ListedDocument>, StoreError> {
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

    /// The newest version of a document, which may be a deletion; `None` when it was never put.
    pub async fn newest(&self, key: Key<'_>) -> Result<Option<Document>, StoreError> {
        if !can_be_there(key.name) {
            return Ok(None);
        }
        Ok(self.read(newest(key)).await?.into_iter().next())
    }

    /// The workspaces that have, or once had, a document of this kind, by name.
    pub async fn workspaces(&self, kind: DocumentKind) -> Result<Vec<String>, StoreError> {
        let names =
            sql("SELECT DISTINCT workspace FROM documents WHERE kind = $1 ORDER BY workspace");
        let rows: Vec<(String,)> = self.read(names.bind(kind.as_str())).await?;
        Ok(rows.into_iter().map(|(name,)| name).collect())
    }

    /// One version of a document, which may be a deletion; `None` when it does not exist.
    pub async fn document(
        &self,
        key: Key<'_>,
        version: i64,
    ) -> Result<Option<Document>, StoreError> {
        if !can_be_there(key.name) {
            return Ok(None);
        }
        let one = key.select(
            format!("SELECT {COLUMNS} FROM documents"),
            " AND version = $4",
        );
        Ok(self.read(one.bind(version)).await?.into_iter().next())
    }

    /// Writes a new version of a document after version `over` (0: there is none), and returns its number. The
    /// newest 100 versions are kept. An identical document is not written again: the number is then `over`. `at`
    /// is milliseconds since 1970.
    pub async fn write(
        &self,
        key: Key<'_>,
        change: Change<'_>,
        over: i64,
        at: u64,
    ) -> Result<i64, WriteError> {
        self.write_with(key, change, over, at, None).await
    }

    /// [`Self::write`], with an audit entry in the same transaction, to which it adds the digests.
    pub async fn write_with(
        &self,
        key: Key<'_>,
        change: Change<'_>,
        over: i64,
        at: u64,
        entry: Option<&Draft>,
    ) -> Result<i64, WriteError> {
        if change.body().contains('\0') {
            return Err(WriteError::Nul);
        }
        let written = self.bounded(async {
            let mut transaction = self.begin().await?;
            let newest: Vec<Document> = newest(key).rows(&mut *transaction).await?;
            let newest = newest.into_iter().next();
            if newest.as_ref().map_or(0, |newest| newest.version) != over {
                return Ok(None);
            }
            let entry = change.entry(entry, newest.as_ref());
            let is_new = !newest.is_some_and(|newest| newest.is(change));
            if is_new {
                // If two daemons write the same version at once, one of the inserts fails.
                let insert = sql(
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
                .bind(change.deletes());
                if insert.execute(&mut *transaction).await? == 0 {
                    return Ok(None);
                }
                let forget = key.select("DELETE FROM documents", " AND version <= $4");
                let forget = forget.bind(over + 1 - VERSIONS);
                forget.execute(&mut *transaction).await?;
                self.notify(&mut transaction, key.kind.as_str()).await?;
            }
            audit::append(&mut transaction, entry.as_slice()).await?;
            transaction.commit().await?;
            Ok(Some(over + i64::from(is_new)))
        });
        written.await?.ok_or(WriteError::Stale)
    }
}

impl Key<'_> {
    /// A statement about versions of this document; the next parameter is `$4`.
    fn select(self, what: impl std::fmt::Display, which: &str) -> Statement {
        sql(format!(
            "{what} WHERE workspace = $1 AND kind = $2 AND name = $3{which}"
        ))
        .bind(self.workspace)
        .bind(self.kind.as_str())
        .bind(self.name)
    }
}

fn newest(key: Key<'_>) -> Statement {
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
    #[error("the document holds a NUL character, which cannot be stored; take it out")]
    Nul,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
