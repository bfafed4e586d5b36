//! Documents that people write, the newest hundred of their versions kept.

use ring::digest::{SHA256, digest};

use super::StoreError;
use crate::ledger::Draft;

/// The workspace of everybody who has no other.
pub const DEFAULT_WORKSPACE: &str = "default";

/// Versions of a document that are kept, the newest ones.
pub(super) const VERSIONS: i64 = 100;

/// Deletes versions of a document up to a number. In the words of both databases.
pub(super) const FORGET: &str = "DELETE FROM documents WHERE workspace = $1 AND kind = $2 AND name = $3 \
     AND version <= $4";

/// What a document is.
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

/// Which document.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// Whose.
    pub workspace: &'a str,
    /// What.
    pub kind: DocumentKind,
    /// Its name.
    pub name: &'a str,
}

/// What becomes of a document.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// It is put.
    Put {
        /// Its text.
        body: &'a str,
        /// Names of the variables that it needs values for; `None` when it expands none. The values
        /// are never stored.
        variables: Option<&'a [String]>,
    },
    /// It is deleted.
    Delete,
}

impl<'a> Change<'a> {
    pub(super) fn body(self) -> &'a str {
        match self {
            Self::Put { body, .. } => body,
            Self::Delete => "",
        }
    }

    pub(super) fn deletes(self) -> bool {
        matches!(self, Self::Delete)
    }

    /// The entry of the audit log that goes with it, over what is there now.
    pub(super) fn entry(self, entry: Option<&Draft>, newest: Option<&Document>) -> Option<Draft> {
        let held = newest.filter(|newest| !newest.deleted);
        Some(Draft {
            before: held.map(|held| held.digest.clone()),
            after: (!self.deletes()).then(|| self.digest()),
            ..entry?.clone()
        })
    }

    /// The names as a JSON list.
    pub(super) fn variables(self) -> Option<String> {
        match self {
            Self::Put { variables, .. } => {
                variables.map(|names| serde_json::json!(names).to_string())
            }
            Self::Delete => None,
        }
    }

    /// SHA-256 of the text, 64 hex digits.
    pub(super) fn digest(self) -> String {
        digest_of(self.body())
    }
}

/// What a text is known by: its SHA-256 as 64 hex digits.
pub(crate) fn digest_of(text: impl AsRef<[u8]>) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in digest(&SHA256, text.as_ref()).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Which version, from 1.
    pub version: i64,
    /// Its text; empty when this version is a deletion.
    pub body: String,
    /// Names of the variables that it needs values for; `None` when it expands none.
    pub variables: Option<Vec<String>>,
    /// SHA-256 of the text, 64 hex digits.
    pub digest: String,
    /// When it was written, milliseconds since 1970.
    pub created_at: u64,
    /// Whether this version is a deletion.
    pub deleted: bool,
}

/// What a row of `documents` is read as: version, body, variables, digest, created at, deleted.
pub(super) type Row = (String, i64, String, Option<String>, String, i64, bool);

impl From<Row> for Document {
    fn from((name, version, body, variables, digest, created_at, deleted): Row) -> Self {
        Self {
            name,
            version,
            body,
            // Only this module writes the column.
            variables: variables.map(|names| serde_json::from_str(&names).unwrap_or_default()),
            digest,
            created_at: u64::try_from(created_at).unwrap_or_default(),
            deleted,
        }
    }
}

/// The newest version of a document, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDocument {
    /// Its name.
    pub name: String,
    /// Which version, from 1.
    pub version: i64,
    /// SHA-256 of the text, 64 hex digits.
    pub digest: String,
    /// When it was written, milliseconds since 1970.
    pub created_at: u64,
}

impl From<(String, i64, String, i64)> for ListedDocument {
    fn from((name, version, digest, created_at): (String, i64, String, i64)) -> Self {
        Self {
            name,
            version,
            digest,
            created_at: u64::try_from(created_at).unwrap_or_default(),
        }
    }
}

/// Reads documents that are not deleted, by name, without their texts. In the words of both databases.
pub(super) const LISTED: &str = "SELECT name, version, digest, created_at FROM documents AS newest \
     WHERE workspace = $1 AND kind = $2 AND name > $3 AND NOT deleted AND version = \
     (SELECT MAX(version) FROM documents WHERE workspace = $1 AND kind = $2 AND name = newest.name) \
     ORDER BY name LIMIT $4";

impl Document {
    /// Whether `change` would leave it as it is.
    pub(super) fn is(&self, change: Change<'_>) -> bool {
        let names = |list: &Option<Vec<String>>| {
            list.as_ref()
                .map(|names| serde_json::json!(names).to_string())
        };
        self.deleted == change.deletes()
            && self.body == change.body()
            && names(&self.variables) == change.variables()
    }
}

/// Why a document was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Somebody else has written a newer version.
    #[error("there is a newer version; read it again and edit that")]
    Stale,
    /// No database keeps it in a text.
    #[error("the document holds a NUL character, which cannot be stored; take it out")]
    Nul,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Milliseconds as databases count them.
pub(super) fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
