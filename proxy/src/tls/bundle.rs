//! One file with everything an agent may trust, for clients that replace their store by it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::ca::{CaError, CertificateAuthority, file_error};
use super::files;

/// A file with the system's roots and the interception CA, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Where it is, in the home directory.
    pub path: PathBuf,
    /// How many roots of the system are in it. None: the system has no store (a slim container),
    /// so a client that uses the bundle trusts intercepted hosts only.
    pub system_roots: usize,
}

impl CertificateAuthority {
    /// Writes the bundle for this authority into `home`; see [`Bundle::of`].
    pub fn bundle(&self, home: &Path) -> Result<Bundle, CaError> {
        Bundle::of(self.pem(), home)
    }
}

impl Bundle {
    /// Writes the bundle for the CA with this certificate into `home`, unless it is there with that
    /// content: as `ca-bundle.pem` for the CA of `home` itself, under a name of its own for any
    /// other, so that the bundles of two daemons do not replace each other.
    ///
    /// Reads every root of the system: some milliseconds of disk and CPU.
    pub fn of(certificate: &str, home: &Path) -> Result<Self, CaError> {
        let loaded = rustls_native_certs::load_native_certs();
        for error in &loaded.errors {
            tracing::debug!(%error, "a root of the system cannot be read");
        }
        let own = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| {
            let reason = error.to_string();
            CaError::Certificate {
                path: home.join(NAME),
                reason,
            }
        })?;
        // A bundle of ours may be the "system's" here, through SSL_CERT_FILE.
        let mut seen = HashSet::from([&own]);
        let mut text = String::new();
        let mut system_roots = 0;
        for root in loaded.certs.iter().filter(|root| seen.insert(root)) {
            text.push_str(&pem::encode(&pem::Pem::new("CERTIFICATE", root.as_ref())));
            system_roots += 1;
        }
        text.push_str(certificate);

        let path = home.join(name(certificate, &own, home));
        if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(Self { path, system_roots });
        }
        files::create_private_directory(home).map_err(file_error("create", home))?;
        files::replace(&path, text.as_bytes(), files::PUBLIC)
            .map_err(file_error("write", &path))?;
        Ok(Self { path, system_roots })
    }
}

/// Name of the bundle for the CA of the home directory itself.
const NAME: &str = "ca-bundle.pem";

fn name(certificate: &str, own: &CertificateDer<'_>, home: &Path) -> String {
    if fs::read_to_string(home.join("ca.pem")).is_ok_and(|pem| pem == certificate) {
        return NAME.to_owned();
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, own);
    let [a, b, c, d, ..] = *digest.as_ref() else {
        unreachable!("a SHA-256 has 32 bytes")
    };
    format!("ca-bundle-{:08x}.pem", u32::from_be_bytes([a, b, c, d]))
}
