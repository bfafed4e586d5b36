//! A bearer token, and what is kept of it.

use std::fmt::{self, Write as _};
use std::hint::black_box;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use schemars::JsonSchema;
use tokio_util::sync::CancellationToken;

use super::pace::Pace;
use crate::store::{DEFAULT_WORKSPACE, StoredToken};

/// What every secret begins with that Squall makes, so that scanners of secrets know it.
const PREFIX: &str = "squall_";

/// What a token allows; each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Role {
    /// Read.
    Viewer,
    /// Switch chaos, edit profiles.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// `viewer`, `operator` or `admin`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

/// What a secret is known by: its SHA-256. Secrets that Squall makes are 256 random bits. Nobody can try
/// them out, so a hash that is slow, or salted, as passwords need it, would keep nothing safer.
#[derive(Clone, Copy, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Of a secret.
    pub fn of(secret: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
        Self(bytes)
    }

    /// 64 hex digits.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// `None` for anything but 64 hex digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl PartialEq for Digest {
    /// Takes as long wherever they differ.
    fn eq(&self, other: &Self) -> bool {
        let bytes = self.0.iter().zip(other.0);
        let different = bytes.fold(0, |seen, (one, other)| black_box(seen | (one ^ other)));
        different == 0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A new secret: 256 random bits. An error when the system has none.
pub(crate) fn new_secret() -> Result<String, NoRandomness> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| NoRandomness)?;
    Ok(format!("{PREFIX}{}", hex(&bytes)))
}

/// The system gives no random bits.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system gives no random bits to make a token of; try again")]
pub struct NoRandomness;

/// A bearer token; the secret itself is not kept.
#[derive(Debug)]
pub struct Token {
    pub(super) workspace: String,
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) digest: Digest,
    /// Milliseconds since 1970; `None` for one of the configuration.
    pub(super) created_at: Option<u64>,
    pub(super) pace: Pace,
    /// Cancelled when it is good for nothing any more.
    pub(super) ended: CancellationToken,
}

impl Token {
    /// A token named `name` that allows what `role` does to whoever knows `secret`.
    pub fn new(name: impl Into<String>, role: Role, secret: &str) -> Self {
        Self {
            workspace: DEFAULT_WORKSPACE.to_owned(),
            name: name.into(),
            role,
            digest: Digest::of(secret),
            created_at: None,
            pace: Pace::default(),
            ended: CancellationToken::new(),
        }
    }

    /// The token of a workspace, in the place of the default one; a name as
    /// [`is_workspace_name`](crate::is_workspace_name) takes it.
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

    /// What it allows.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whose it is.
    pub(crate) fn workspace(&self) -> &str {
        &self.workspace
    }

    /// Whether it is the token of that name in that workspace.
    pub(crate) fn is_named(&self, workspace: &str, name: &str) -> bool {
        self.workspace == workspace && self.name == name
    }

    /// When it was made; `None` for one of the configuration.
    pub(crate) fn created_at(&self) -> Option<u64> {
        self.created_at
    }

    /// Whether its secret has this digest.
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.digest == *digest
    }

    /// Whether it is the same, whatever has been asked with it.
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
            pace: Pace::default(),
            ended: CancellationToken::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_and_read_and_differs_in_every_bit() {
        let digest = Digest::of("secret");
        assert_eq!(Digest::from_hex(&digest.to_hex()), Some(digest));
        for bit in 0..256 {
            let mut other = digest;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(digest, other, "{bit}");
        }
        for text in ["", "00", &"0".repeat(63), &"x".repeat(64), &"é".repeat(32)] {
            assert_eq!(Digest::from_hex(text), None, "{text}");
        }
    }

    #[test]
    fn secrets_are_long_and_never_twice_the_same() {
        let (one, other) = (new_secret().unwrap(), new_secret().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), PREFIX.len() + 64);
        assert!(one.starts_with(PREFIX));
    }

    #[test]
    fn what_is_logged_of_a_token_tells_nothing() {
        let token = Token::new("ci", Role::Admin, "s3cret");
        let shown = format!("{token:?}");
        assert!(!shown.contains("s3cret") && !shown.contains(&token.digest.to_hex()[..8]));
    }
}
