//! The certificate authority that signs for intercepted hosts.
//!
//! It lives in `$SQUALL_HOME` as `ca.pem` and `ca.key`. The key's file holds the certificate too: one
//! rename puts both in force, and what was killed before `ca.pem` followed is completed at the next
//! start. All this happens under a lock, so processes that start together end with one authority.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::{files, wall_clock};
use crate::user_file;

/// How long a new authority is valid.
const LIFE: Duration = Duration::from_hours(24 * 365 * 5);

/// How long before its making a certificate is valid already, for clocks that are late.
pub(super) const BACK_DATE: Duration = Duration::from_hours(24 * 2);

/// An authority with its key, ready to sign leaves.
#[derive(Debug)]
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// The authority's own certificate first, then what was given with it.
    chain: Vec<CertificateDer<'static>>,
    /// Whether agents know the certificate by itself, so that leaves need no chain.
    is_root: bool,
    pem: String,
    subject: String,
    validity: Validity,
}

/// From when to when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// First moment.
    pub not_before: OffsetDateTime,
    /// Last moment.
    pub not_after: OffsetDateTime,
}

/// Why there is no authority.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The key can be read by others.
    #[error(
        "{} can be read by other users, who could then sign for any host; run `chmod 600 {}`",
        path.display(),
        path.display()
    )]
    Exposed {
        /// The key.
        path: PathBuf,
    },
    /// There is a certificate, but not its key.
    #[error(
        "{} is there, but its key {} is not; put the key back, or run `squall ca rotate` for a new \
         pair",
        certificate.display(),
        key.display()
    )]
    MissingKey {
        /// The certificate.
        certificate: PathBuf,
        /// Where its key should be.
        key: PathBuf,
    },
    /// No certificate in the file.
    #[error("{} holds no certificate: {reason}; it must be X.509 in PEM", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A certificate that must not sign others.
    #[error("{} is not a CA's certificate (basicConstraints lacks CA:TRUE)", path.display())]
    NotAnAuthority {
        /// The file.
        path: PathBuf,
    },
    /// No key that can be used.
    #[error(
        "{} holds no usable private key: {reason}; it must be unencrypted PKCS #8 in PEM (convert it \
         with `openssl pkcs8 -topk8 -nocrypt -in KEY -out NEW`)",
        path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Key and certificate are no pair.
    #[error("{} is not the key of the certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// The certificate is past its time.
    #[error(
        "the CA certificate {} expired on {}; run `squall ca rotate`, or give another one",
        path.display(),
        not_after.date()
    )]
    Expired {
        /// The certificate.
        path: PathBuf,
        /// When.
        not_after: OffsetDateTime,
    },
    /// A key or a certificate cannot be made.
    #[error("cannot make a CA: {0}")]
    Make(#[from] rcgen::Error),
}

impl CertificateAuthority {
    /// The authority in `home`, made first if there is none.
    ///
    /// `home` is created with mode 0700 and the key with 0600; a key that others can read is
    /// refused. A new authority has a P-256 key and is valid for five years.
    pub fn load_or_create(home: &Path) -> Result<Self, CaError> {
        let pair = KeyFiles::in_home(home);
        // A rotation may be under way, which holds the lock until the pair fits, or was killed.
        if !pair.next().exists() {
            match pair.read(0o077) {
                Ok(Some(authority)) => return Ok(authority),
                Ok(None) | Err(CaError::Mismatch { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let _lock = lock(home)?;
        pair.clear()?;
        let read = match pair.read(0o077) {
            Ok(None) | Err(CaError::Mismatch { .. }) if pair.finish()? => pair.read(0o077),
            read => read,
        };
        match read? {
            Some(authority) => Ok(authority),
            None => pair.create(),
        }
    }

    /// An authority of the user's own: its certificate (with the chain up to what agents trust, if
    /// it is no root) and its PKCS #8 key, both in PEM.
    ///
    /// A key that everybody can read is refused; one its group can read is not, for that is how
    /// orchestrators hand secrets out.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, CaError> {
        let pair = KeyFiles {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        pair.read(0o007)?.ok_or_else(|| {
            file_error("read", certificate)(io::Error::from(io::ErrorKind::NotFound))
        })
    }

    /// Puts a new authority in place of the one in `home`. Agents must be given the new
    /// certificate; running daemons keep the old one.
    pub fn rotate(home: &Path) -> Result<Self, CaError> {
        files::create_private_directory(home).map_err(file_error("create", home))?;
        let _lock = lock(home)?;
        let pair = KeyFiles::in_home(home);
        pair.clear()?;
        pair.create()
    }

    /// The certificate, for agents to trust.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The certificate in DER.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.chain[0]
    }

    /// The certificate's SHA-256, in upper-case hexadecimal with colons, as `openssl x509
    /// -fingerprint` prints it.
    pub fn fingerprint(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.certificate());
        let bytes: Vec<_> = digest
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        bytes.join(":")
    }

    /// The certificate's subject, as in `O=Squall, CN=Squall CA 1a2b3c4d`.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// When the certificate is valid.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    pub(super) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// What is sent behind a leaf, so that agents find the way to what they trust.
    pub(super) fn intermediates(&self) -> &[CertificateDer<'static>] {
        if self.is_root { &[] } else { &self.chain }
    }

    fn parse(pair: &KeyFiles, pem: &str, key: &str, now: SystemTime) -> Result<Self, CaError> {
        let bad = |reason: String| CaError::Certificate {
            path: pair.certificate.clone(),
            reason,
        };
        let chain = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| bad(error.to_string()))?;
        let first = chain
            .first()
            .ok_or_else(|| bad("no PEM block in it".to_owned()))?;
        let (_, x509) = X509Certificate::from_der(first).map_err(|error| bad(error.to_string()))?;
        if !x509.is_ca() {
            return Err(CaError::NotAnAuthority {
                path: pair.certificate.clone(),
            });
        }
        let validity = Validity {
            not_before: x509.validity().not_before.to_datetime(),
            not_after: x509.validity().not_after.to_datetime(),
        };
        if OffsetDateTime::from(now) > validity.not_after {
            let path = pair.certificate.clone();
            return Err(CaError::Expired {
                path,
                not_after: validity.not_after,
            });
        }
        let key = KeyPair::from_pem(key).map_err(|error| CaError::Key {
            path: pair.key.clone(),
            reason: error.to_string(),
        })?;
        if x509.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            let KeyFiles { certificate, key } = pair.clone();
            return Err(CaError::Mismatch { certificate, key });
        }
        Ok(Self {
            is_root: x509.subject() == x509.issuer(),
            subject: x509.subject().to_string(),
            issuer: Issuer::from_ca_cert_der(first, key)?,
            pem: pem.to_owned(),
            validity,
            chain,
        })
    }
}

/// Where a certificate and its key are.
#[derive(Debug, Clone)]
struct KeyFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl KeyFiles {
    fn in_home(home: &Path) -> Self {
        Self {
            certificate: home.join("ca.pem"),
            key: home.join("ca.key"),
        }
    }

    /// The pair as it is on disk; `None` when there is no certificate. A key with one of the
    /// permission bits in `forbidden` is refused.
    fn read(&self, forbidden: u32) -> Result<Option<CertificateAuthority>, CaError> {
        let Some(pem) = text_of(&self.certificate)? else {
            return Ok(None);
        };
        let exposed = match files::excess_mode(&self.key, forbidden) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Self { certificate, key } = self.clone();
                return Err(CaError::MissingKey { certificate, key });
            }
            mode => mode.map_err(file_error("read", &self.key))?,
        };
        if exposed != 0 {
            return Err(CaError::Exposed {
                path: self.key.clone(),
            });
        }
        let key = user_file::read_text(&self.key).map_err(file_error("read", &self.key))?;
        CertificateAuthority::parse(self, &pem, &key, wall_clock()).map(Some)
    }

    /// Makes a new pair and puts it in place. The lock must be held.
    fn create(&self) -> Result<CertificateAuthority, CaError> {
        let now = wall_clock();
        let key = KeyPair::generate()?;
        let pem = new_root(now).self_signed(&key)?.pem();
        let key = format!("{}{pem}", key.serialize_pem());
        let next = self.next();
        files::write_new(&next, key.as_bytes(), files::PRIVATE)
            .and_then(|()| fs::rename(&next, &self.key))
            .map_err(file_error("write", &self.key))?;
        self.put_certificate(&pem)?;
        CertificateAuthority::parse(self, &pem, &key, now)
    }

    /// Puts the certificate in place that the key's file holds; whether it holds one. The lock must be held.
    fn finish(&self) -> Result<bool, CaError> {
        let key = text_of(&self.key)?.unwrap_or_default();
        let at = key.find("-----BEGIN CERTIFICATE-----");
        let pem = at.map(|at| &key[at..]);
        pem.map(|pem| self.put_certificate(pem)).transpose()?;
        Ok(pem.is_some())
    }

    /// Removes a pair that was killed before it was in force. The lock must be held.
    fn clear(&self) -> Result<(), CaError> {
        let next = self.next();
        match fs::remove_file(&next) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(file_error("remove", &next)),
        }
    }

    fn put_certificate(&self, pem: &str) -> Result<(), CaError> {
        files::replace(&self.certificate, pem.as_bytes(), files::PUBLIC)
            .map_err(file_error("write", &self.certificate))
    }

    /// A new pair that is not in force yet.
    fn next(&self) -> PathBuf {
        self.key.with_extension("next")
    }
}

/// The text of a file, if it is there.
fn text_of(path: &Path) -> Result<Option<String>, CaError> {
    match user_file::read_text(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(file_error("read", path)),
    }
}

/// What a root is made from. Its name is its own, so that two of them in one trust store are two.
pub(super) fn new_root(now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "Squall");
    let own = u32::from_be_bytes(files::random());
    name.push(DnType::CommonName, format!("Squall CA {own:08x}"));
    params.distinguished_name = name;
    params.serial_number = Some(random_serial());
    params.not_before = (now - BACK_DATE).into();
    params.not_after = (now + LIFE).into();
    // No further authority below it, and for servers only.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

/// 127 random bits: positive, and within the 20 bytes of RFC 5280 §4.1.2.2. Clients refuse two
/// certificates of one issuer with one serial.
pub(super) fn random_serial() -> SerialNumber {
    let mut serial: [u8; 16] = files::random();
    // The first bit is the sign; the second keeps the length the same.
    serial[0] = serial[0] & 0x7f | 0x40;
    SerialNumber::from_slice(&serial)
}

fn lock(home: &Path) -> Result<fs::File, CaError> {
    files::create_private_directory(home).map_err(file_error("create", home))?;
    let path = home.join("ca.lock");
    files::lock(&path).map_err(file_error("lock", &path))
}

pub(super) fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CaError {
    move |source| CaError::File {
        action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
