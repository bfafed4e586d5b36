//! The files that a configuration names, and where it names them: what is wrong with one of them is
//! said of the value that led there.

use std::path::{Path, PathBuf};

use squall_documents::Position;
use squall_proxy::config::CaSource;
use squall_proxy::tls::{CaError, CertificateAuthority};
use squall_proxy::upstream::check_roots;

use super::{Config, ConfigErrors};
use crate::failure::Failure;

/// Where each file is named.
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
    /// Where `profiles` is named, and the file that names it.
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
    /// Refuses `upstream_ca` files that cannot be used. The proxy reads them once more when it takes
    /// the configuration over; here their places are still known.
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

    /// The interception CA: the user's own, or the one in the home directory. A mistake in the
    /// user's own is one of the configuration.
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
        // The way out that the CA knows of leads to another pair than the user's own.
        CaError::MissingKey { key, .. } => format!(
            "`proxy.ca.key`: {} is not there; put it there, or name the key's file",
            key.display()
        ),
        error => format!("`proxy.ca.key`: {error}"),
    }
}
