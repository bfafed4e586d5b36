//! Tokens that were made by the API: what the store keeps of them, which is never the secret.

use crate::credential::{Digest, Role};

/// A token that is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// Whose.
    pub workspace: String,
    /// Its name; no other good token of the workspace has it.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// What its secret is known by.
    pub digest: Digest,
    /// When it was made, milliseconds since 1970.
    pub created_at: u64,
}

/// What a row of `tokens` is read as.
pub(super) type Row = (String, String, String, String, i64);

/// The columns of [`Row`].
pub(super) const COLUMNS: &str = "workspace, name, role, digest, created_at";

impl StoredToken {
    /// `None` for a row that was written by hand and makes no sense: it opens nothing.
    pub(super) fn read((workspace, name, role, digest, created_at): Row) -> Option<Self> {
        Some(Self {
            workspace,
            name,
            role: Role::parse(&role)?,
            digest: Digest::from_hex(&digest)?,
            created_at: u64::try_from(created_at).unwrap_or_default(),
        })
    }
}
