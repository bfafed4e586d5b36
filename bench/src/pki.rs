//! A certificate authority for one run: the upstream's leaf and hudsucker's issuer come from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Where the files of one run's authority lie.
#[derive(Debug, Clone)]
pub struct Pki {
    /// The authority's certificate, PEM.
    pub ca: PathBuf,
    /// The authority's key, PEM.
    pub ca_key: PathBuf,
    /// The upstream's leaf, PEM: `127.0.0.1`, `localhost`, `*.bench.test`.
    pub leaf: PathBuf,
    /// The leaf's key, PEM.
    pub leaf_key: PathBuf,
}

impl Pki {
    /// The files' places below `dir`, whether or not they exist yet.
    pub fn at(dir: &Path) -> Self {
        Self {
            ca: dir.join("ca.pem"),
            ca_key: dir.join("ca.key"),
            leaf: dir.join("upstream.pem"),
            leaf_key: dir.join("upstream.key"),
        }
    }

    /// Makes an authority and a leaf and writes both below `dir`.
    pub fn create(dir: &Path) -> Result<Self> {
        let pki = Self::at(dir);
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "Squall bench CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_key = KeyPair::generate()?;
        let ca = params.self_signed(&ca_key)?;
        fs::write(&pki.ca, ca.pem())?;
        fs::write(&pki.ca_key, ca_key.serialize_pem())?;
        let issuer = Issuer::new(params, ca_key);

        let names = ["127.0.0.1", "localhost", "*.bench.test"].map(String::from);
        let mut leaf = CertificateParams::new(names)?;
        leaf.use_authority_key_identifier_extension = true;
        let leaf_key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&leaf_key, &issuer)?;
        fs::write(&pki.leaf, certificate.pem())?;
        fs::write(&pki.leaf_key, leaf_key.serialize_pem())?;
        Ok(pki)
    }

    /// A server that presents the leaf and speaks HTTP/1.1 only.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>> {
        let chain = CertificateDer::pem_file_iter(&self.leaf)?.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_file(&self.leaf_key)?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// A client that trusts `ca` alone, offers HTTP/1.1, and never resumes a session: every connection
/// pays for a whole handshake, as those of most agents' HTTP libraries do.
pub fn client_config(ca: &Path) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca)
        .with_context(|| format!("{} cannot be read", ca.display()))?
    {
        roots.add(certificate?)?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The one TLS provider of every process in the run, so that no proxy wins by its cipher code.
pub fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
