//! A bearer token in memory.

use tokio_util::sync::CancellationToken;

use super::rate::RateLimiter;
use super::{Digest, TokenRole};
use crate::audit::RESERVED;
use crate::store::{DEFAULT_WORKSPACE, StoredToken};

/// The format of a token's name, in words.
pub const TOKEN_NAMES: &str = "1 to 64 characters of a-z, A-Z, 0-9, `.`, `_` and `-`, the first of them a letter or a \
                               digit, and not `squall`, which is reserved for the audit log";

/// Whether this is a valid token name.
pub fn is_token_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=64).contains(&name.len())
        && name.bytes().all(fits)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !RESERVED.contains(&name)
}

/// A bearer token; only the secret's digest is stored.
#[derive(Debug)]
pub struct Token {
    pub(super) workspace: String,
    pub(super) name: String,
    pub(super) role: TokenRole,
    pub(super) digest: Digest,
    /// Milliseconds since 1970; `None` for a token of the configuration.
    pub(super) created_at: Option<u64>,
    pub(super) rate: RateLimiter,
    /// Cancelled when it is revoked.
    pub(super) ended: CancellationToken,
}

impl Token {
    /// A token that grants `role` to clients that present `secret`.
    pub fn new(name: impl Into<String>, role: TokenRole, secret: &str) -> Self {
        Self {
            workspace: DEFAULT_WORKSPACE.to_owned(),
            name: name.into(),
            role,
            digest: Digest::of(secret),
            created_at: None,
            rate: RateLimiter::of_token(),
            ended: CancellationToken::new(),
        }
    }

    /// The token in this workspace instead of the default one. [`is_workspace_name`](crate::is_workspace_name)
    /// defines valid names.
    #[must_use]
    pub fn of_workspace(self, workspace: impl Into<String>) -> Self {
        Self {
            workspace: workspace.into(),
            ..self
        }
    }

    /// Its name, for the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its role.
    pub fn role(&self) -> TokenRole {
        self.role
    }

    /// Its workspace.
    pub(crate) fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Whether it has this name in this workspace.
    pub(crate) fn is_named(&self, workspace: &str, name: &str) -> bool {
        self.workspace == workspace && self.name == name
    }

    /// When it was created; `None` for a token of the configuration.
    pub(crate) fn created_at(&self) -> Option<u64> {
        self.created_at
    }

    /// Whether its secret has this digest.
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.digest == *digest
    }

    /// Whether it is the same token; its use so far does not count.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.digest == other.digest
            && (&self.workspace, &self.name, self.role)
                == (&other.workspace, &other.name, other.role)
    }
}

impl From<StoredToken> for Token {
    fn from(stored: StoredToken) -> Self {
        Self {
            workspace: stored.workspace,
            name: stored.name,
            role: stored.role,
            digest: stored.digest,
            created_at: Some(stored.created_at),
            rate: RateLimiter::of_token(),
            ended: CancellationToken::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_of_a_token_tells_nothing() {
        let token = Token::new("ci", TokenRole::Admin, "s3cret");
        let shown = format!("{token:?}");
        assert!(!shown.contains("s3cret") && !shown.contains(&token.digest.to_hex()[..8]));
    }
}
