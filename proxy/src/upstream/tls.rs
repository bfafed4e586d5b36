//! TLS to upstreams: trusted roots, session resumption, ALPN, and error messages.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::FailureCause;
use super::trust::{CertificateVerifier, is_ca_as_server};
use crate::config::ConfigError;
use crate::tls::Alpn;
use crate::user_file;

/// Most TLS sessions remembered for resumption, over all upstreams.
const SESSIONS: usize = 1024;

/// Client configurations by their newest protocol, created on first use: reading the system's roots
/// takes milliseconds, which would slow down the start.
pub(super) struct TlsClients {
    extra: Vec<CertificateDer<'static>>,
    configs: OnceLock<[Arc<ClientConfig>; 2]>,
}

impl TlsClients {
    /// Reads the `upstream_ca` files.
    pub(super) fn new(files: &[PathBuf]) -> Result<Self, ConfigError> {
        let mut extra = Vec::new();
        for path in files {
            extra.extend(read_roots(path)?);
        }
        Ok(Self {
            extra,
            configs: OnceLock::new(),
        })
    }

    /// Does the handshake on a connected socket.
    pub(super) async fn handshake(
        &self,
        server_name: &str,
        newest: Alpn,
        socket: TcpStream,
    ) -> Result<(TlsStream<TcpStream>, Alpn), FailureCause> {
        let configs = self.configs.get_or_init(|| client_configs(&self.extra));
        let name =
            ServerName::try_from(server_name.trim_end_matches('.').to_owned()).map_err(|_| {
                FailureCause::TlsHandshake(format!("`{server_name}` is not a name TLS can ask for"))
            })?;
        let stream = TlsConnector::from(Arc::clone(&configs[newest as usize]))
            .connect(name, socket)
            .await
            .map_err(|error| cause_of(&error))?;
        let alpn = Alpn::agreed(stream.get_ref().1.alpn_protocol());
        Ok((stream, alpn))
    }
}

fn client_configs(extra: &[CertificateDer<'static>]) -> [Arc<ClientConfig>; 2] {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in &native.errors {
        tracing::warn!(%error, "some of the system's roots could not be read");
    }
    let (native_roots, _unusable) = roots.add_parsable_certificates(native.certs);
    if native_roots == 0 && extra.is_empty() {
        tracing::warn!(
            "no root certificates found on this system: every TLS upstream will be refused; \
             install ca-certificates or name roots in proxy.upstream_ca"
        );
    }
    roots.add_parsable_certificates(extra.iter().cloned());
    let provider = crate::tls::provider();
    let trust = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map(|webpki| Arc::new(CertificateVerifier::new(webpki, extra)));
    [Alpn::Http1, Alpn::H2]
        .map(|newest| Arc::new(client_config(&provider, trust.as_ref().ok(), newest)))
}

/// Without `trust` there are no roots, and no certificate is trusted.
fn client_config(
    provider: &Arc<CryptoProvider>,
    trust: Option<&Arc<CertificateVerifier>>,
    newest: Alpn,
) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring has cipher suites for the default versions");
    let mut config = match trust {
        Some(trust) => builder
            .dangerous()
            .with_custom_certificate_verifier(trust.clone()),
        None => builder.with_root_certificates(RootCertStore::empty()),
    }
    .with_no_client_auth();
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    config.alpn_protocols = newest.and_older();
    config
}

/// Checks whether a file is valid for `upstream_ca`.
pub fn check_roots(path: &Path) -> Result<(), ConfigError> {
    read_roots(path).map(drop)
}

fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let bad = |why| ConfigError(format!("`proxy.upstream_ca`: {}: {why}", path.display()));
    let text = user_file::read(path).map_err(|error| bad(error.to_string()))?;
    let certificates = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad(error.to_string()))?;
    if certificates.is_empty() {
        return Err(bad(
            "no certificate in it; a PEM file is expected".to_owned()
        ));
    }
    let mut store = RootCertStore::empty();
    for certificate in &certificates {
        store
            .add(certificate.clone())
            .map_err(|error| bad(error.to_string()))?;
    }
    Ok(certificates)
}

/// The cause of a failed handshake, in rustls' words.
fn cause_of(error: &io::Error) -> FailureCause {
    use CertificateError as E;
    let inner = error.get_ref();
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match (tls, error.kind()) {
        (Some(rustls::Error::InvalidMessage(_)), _) => {
            "the upstream does not speak TLS on this port"
        }
        (None, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
            "the upstream reset the connection in the handshake"
        }
        (None, io::ErrorKind::UnexpectedEof) => {
            "the upstream closed the connection in the handshake"
        }
        _ => &error.to_string(),
    };
    let why = why.to_owned();
    let Some(rustls::Error::InvalidCertificate(certificate)) = tls else {
        return FailureCause::TlsHandshake(why);
    };
    match certificate {
        E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. } => {
            FailureCause::TlsExpired(why)
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => FailureCause::TlsWrongHost(why),
        E::UnknownIssuer | E::BadSignature => FailureCause::TlsUnknownIssuer(why),
        other if is_ca_as_server(other) => FailureCause::TlsUnknownIssuer(why),
        _ => FailureCause::TlsHandshake(why),
    }
}
