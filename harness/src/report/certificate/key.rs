//! The key that signs certificates, and its file.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

const FIRST_LINE: &str = "-----BEGIN PRIVATE KEY-----";
const LAST_LINE: &str = "-----END PRIVATE KEY-----";

/// An Ed25519 key.
pub struct SigningKey {
    pair: Ed25519KeyPair,
}

/// Why the key is not available.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(String);

impl KeyError {
    fn of(file: &Path, why: impl fmt::Display) -> Self {
        Self(format!("{}: {why}", file.display()))
    }

    fn unread(file: &Path, error: &io::Error) -> Self {
        let why = format!("the key that signs certificates cannot be read or written: {error}");
        Self::of(file, why)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey")
            .field(&self.fingerprint())
            .finish()
    }
}

impl SigningKey {
    /// The key in `home`, created if necessary: `certificate-key.pem`, readable only by its owner.
    pub fn of_home(home: &Path) -> Result<Self, KeyError> {
        let file = home.join("certificate-key.pem");
        match fs::read_to_string(&file) {
            Ok(text) => Self::read(&file, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::make(&file),
            Err(error) => Err(KeyError::unread(&file, &error)),
        }
    }

    fn read(file: &Path, text: &str) -> Result<Self, KeyError> {
        if is_open(file) {
            let why = "others than its owner may read the key that signs certificates; chmod 600 it, or remove it if \
                       somebody may have";
            return Err(KeyError::of(file, why));
        }
        let body: String = text
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let document = STANDARD.decode(body).ok();
        let pair = document.and_then(|document| Ed25519KeyPair::from_pkcs8(&document).ok());
        let pair = pair.ok_or_else(|| {
            let why = "this is no Ed25519 key as PEM; remove it, and another is made";
            KeyError::of(file, why)
        })?;
        Ok(Self { pair })
    }

    fn make(file: &Path) -> Result<Self, KeyError> {
        let failed = |error: io::Error| KeyError::unread(file, &error);
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| {
            KeyError::of(
                file,
                "no key can be made: the machine gives no random bytes",
            )
        })?;
        let text = format!(
            "{FIRST_LINE}\n{}\n{LAST_LINE}\n",
            STANDARD.encode(document.as_ref())
        );
        if let Some(path) = file.parent() {
            let mut home = fs::DirBuilder::new();
            let created = home.recursive(true).mode(0o700).create(path);
            created.map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options.open(file).and_then(|mut key| {
            key.write_all(text.as_bytes())?;
            key.sync_all()
        });
        match written {
            Ok(()) => Self::read(file, &text),
            // Another process has created it in the meantime.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let text = fs::read_to_string(file).map_err(failed)?;
                Self::read(file, &text)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// The signature of a message, 64 bytes.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }

    /// The public key, 32 bytes.
    pub(super) fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The fingerprint to compare a key by: `SHA256:` and the digest of the public key, base64.
    pub fn fingerprint(&self) -> String {
        fingerprint(self.public())
    }
}

pub(super) fn fingerprint(public: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(digest(&SHA256, public)))
}

fn is_open(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}
