//! Places of file names in a configuration: errors in a named file point to that place.

use std::path::{Path, PathBuf};

use squall_documents::Position;
use squall_proxy::config::CaSource;
use squall_proxy::tls::{CaError, CertificateAuthority};
use squall_proxy::upstream::check_roots;

use super::{Config, ConfigErrors};
use crate::failure::Failure;

/// The places where files are named.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// The configuration's own file.
    pub(super) file: PathBuf,
    /// `profiles`.
    pub(super) profiles: Option<Position>,
    /// `proxy.upstream_ca`, entry by entry.
    pub(super) upstream_ca: Vec<Position>,
    /// `proxy.ca.cert` and `proxy.ca.key`.
    pub(super) ca: Option<(Position, Position)>,
}

impl Places {
    /// The place of `profiles`, and the configuration's file.
    pub(crate) fn of_profiles(&self) -> Option<(String, String)> {
        let place = self.at(self.profiles?);
        Some((place, self.file.display().to_string()))
    }

    /// `squall.yaml:7:18`.
    pub(super) fn at(&self, Position { line, column }: Position) -> String {
        format!("{}:{line}:{column}", self.file.display())
    }
}

impl Config {
    /// Rejects unusable `upstream_ca` files. The proxy reads them again later, when their places are unknown.
    pub(crate) fn check_roots(&self) -> Result<(), ConfigErrors> {
        let files = self.proxy.upstream_ca.iter().zip(&self.places.upstream_ca);
        let wrong = |(path, at): (&PathBuf, &Position)| {
            let error = check_roots(path).err()?;
            Some(format!("{}: {error}", self.places.at(*at)))
        };
        let errors: Vec<_> = files.filter_map(wrong).collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ConfigErrors(errors))
        }
    }

    /// The interception CA: the user's own, or the one in the home directory. Errors in the user's own are
    /// configuration errors.
    pub(crate) fn authority(&self) -> Result<CertificateAuthority, Failure> {
        let (cert, key) = match &self.proxy.ca {
            CaSource::Home(home) => return Ok(CertificateAuthority::load_or_create(home)?),
            CaSource::Files { cert, key } => (cert, key),
        };
        CertificateAuthority::load(cert, key).map_err(|error| match self.places.ca {
            Some((at_cert, at_key)) => {
                let (at, message) = if is_about_key(&error, key) {
                    (at_key, said_of_key(&error))
                } else {
                    (at_cert, format!("`proxy.ca.cert`: {error}"))
                };
                Failure::Usage(format!("{}: {message}", self.places.at(at)))
            }
            None => error.into(),
        })
    }
}

fn is_about_key(error: &CaError, key: &Path) -> bool {
    match error {
        CaError::MissingKey { .. }
        | CaError::Exposed { .. }
        | CaError::Key { .. }
        | CaError::Mismatch { .. } => true,
        CaError::File { path, .. } => path == key,
        CaError::Certificate { .. }
        | CaError::NotAnAuthority { .. }
        | CaError::Expired { .. }
        | CaError::Make(_) => false,
    }
}

fn said_of_key(error: &CaError) -> String {
    match error {
        // The CA's own hint is about another pair of files.
        CaError::MissingKey { key, .. } => format!(
            "`proxy.ca.key`: {} is not there; put it there, or name the key's file",
            key.display()
        ),
        error => format!("`proxy.ca.key`: {error}"),
    }
}
