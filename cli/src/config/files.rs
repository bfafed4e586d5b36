//! Files that a configuration names: their errors have the place where they are named.

use std::path::Path;

use squall_proxy::config::CaSource;
use squall_proxy::tls::{CaError, CertificateAuthority};
use squall_proxy::upstream::check_roots;

use super::Config;
use crate::failure::Failure;
use crate::text;

impl Config {
    /// An error of a file that the configuration names, with that place.
    pub(crate) fn named(&self, file: &Path, error: impl std::fmt::Display) -> String {
        match self.places.get(file) {
            Some(place) => format!("{place}: {error}"),
            None => error.to_string(),
        }
    }

    /// Rejects unusable `upstream_ca` files. The proxy reads them again later, when their places are unknown.
    pub(crate) fn check_roots(&self) -> Result<(), Failure> {
        let files = self.proxy.upstream_ca.iter();
        let errors = files.filter_map(|file| Some(self.named(file, check_roots(file).err()?)));
        text::no_errors(&errors.collect::<Vec<_>>())
    }

    /// The interception CA: the user's own, or the one in the home directory. Errors in the user's own are
    /// configuration errors.
    pub(crate) fn authority(&self) -> Result<CertificateAuthority, Failure> {
        let (cert, key) = match &self.proxy.ca {
            CaSource::Home(home) => return Ok(CertificateAuthority::load_or_create(home)?),
            CaSource::Files { cert, key } => (cert, key),
        };
        CertificateAuthority::load(cert, key).map_err(|error| {
            let error = match error {
                // The CA's own hint is about another pair of files.
                CaError::MissingKey { key, .. } => {
                    format!("the key {} does not exist", key.display())
                }
                error => error.to_string(),
            };
            Failure::Usage(self.named(cert, format!("`proxy.ca`: {error}")))
        })
    }
}
