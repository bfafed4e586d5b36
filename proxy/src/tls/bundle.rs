//! One file with everything an agent may trust, for clients that replace their store by it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::ca::{CaError, CertificateAuthority, file_error};
use super::files;

/// A file with the system's roots and the interception CA, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Where it is: `ca-bundle.pem` in the home directory.
    pub path: PathBuf,
    /// How many roots of the system are in it. None: the system has no store (a slim container),
    /// so a client that uses the bundle trusts intercepted hosts only.
    pub system_roots: usize,
}

impl CertificateAuthority {
    /// Writes the bundle into `home`, unless it is there with that content.
    ///
    /// Reads every root of the system: some milliseconds of disk and CPU.
    pub fn bundle(&self, home: &Path) -> Result<Bundle, CaError> {
        let loaded = rustls_native_certs::load_native_certs();
        for error in &loaded.errors {
            tracing::debug!(%error, "a root of the system cannot be read");
        }
        // A bundle of ours may be the "system's" here, through SSL_CERT_FILE.
        let mut seen = HashSet::from([self.certificate().as_ref()]);
        let mut text = String::new();
        let mut system_roots = 0;
        for root in loaded.certs.iter().filter(|root| seen.insert(root)) {
            text.push_str(&pem::encode(&pem::Pem::new("CERTIFICATE", root.as_ref())));
            system_roots += 1;
        }
        text.push_str(self.pem());

        let path = home.join("ca-bundle.pem");
        if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(Bundle { path, system_roots });
        }
        files::create_private_directory(home).map_err(file_error("create", home))?;
        files::replace(&path, text.as_bytes(), files::PUBLIC)
            .map_err(file_error("write", &path))?;
        Ok(Bundle { path, system_roots })
    }
}
