//! Credentials: roles, digests, and new secrets.

use std::fmt;
use std::hint::black_box;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use schemars::JsonSchema;
use squall_documents::named;
use squall_harness::digest::hex;

/// Prefix of every secret that Squall creates, so that secret scanners recognise it.
const PREFIX: &str = "squall_";

named! {
    /// The role of a token; each role includes the previous ones.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
    #[schemars(rename = "Role", rename_all = "snake_case")]
    pub enum TokenRole {
        /// May read.
        Viewer = "viewer",
        /// May also activate chaos and edit profiles.
        Operator = "operator",
        /// May do everything.
        Admin = "admin",
    }
}

/// The SHA-256 of a secret. Squall's secrets are 256 random bits and cannot be guessed, so a slow or salted hash,
/// as for passwords, would add no safety.
#[derive(Clone, Copy, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a secret.
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
    /// In constant time.
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

/// A new secret: 256 random bits.
pub(crate) fn new_secret() -> Result<String, NoRandomness> {
    Ok(format!("{PREFIX}{}", random_hex::<32>()?))
}

/// `BYTES` random bytes as hex digits. An error when the system has none.
pub fn random_hex<const BYTES: usize>() -> Result<String, NoRandomness> {
    let mut bytes = [0; BYTES];
    let random = SystemRandom::new().fill(&mut bytes);
    random.map(|()| hex(&bytes)).map_err(|_| NoRandomness)
}

/// The system provides no random bits.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system gives no random bits; try again")]
pub struct NoRandomness;

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
}
