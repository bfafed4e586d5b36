//! TLS towards upstreams: the roots that are trusted, session resumption, ALPN, and what went
//! wrong in words.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::Cause;
use super::settings::SettingsError;
use super::trust::{Trust, is_ca_as_server};

/// TLS sessions remembered for resumption, over all upstreams.
const SESSIONS: usize = 1024;

/// The protocol an upstream speaks behind TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alpn {
    /// HTTP/1.1, or nothing was agreed on.
    Http1,
    /// HTTP/2.
    H2,
}

impl Alpn {
    /// The protocol's name in a handshake (RFC 7301 §6).
    pub fn id(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::H2 => b"h2",
        }
    }
}

/// What is offered to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// `http/1.1` only.
    Http1,
    /// `h2`, then `http/1.1`.
    Both,
}

/// Client configurations, made when first needed: reading the system's roots takes milliseconds
/// that start-up does not have.
pub(super) struct TlsClients {
    extra: Vec<CertificateDer<'static>>,
    made: OnceLock<Made>,
    /// Somebody makes them.
    preparing: AtomicBool,
}

struct Made {
    http1: Arc<ClientConfig>,
    both: Arc<ClientConfig>,
    native_roots: usize,
}

impl TlsClients {
    /// Reads the `upstream_ca` files.
    pub(super) fn new(files: &[PathBuf]) -> Result<Self, SettingsError> {
        let mut extra = Vec::new();
        for path in files {
            extra.extend(read_roots(path)?);
        }
        Ok(Self {
            extra,
            made: OnceLock::new(),
            preparing: AtomicBool::new(false),
        })
    }

    /// Whether the caller is the first who wants them made beforehand.
    pub(super) fn is_to_prepare(&self) -> bool {
        !self.preparing.load(Ordering::Relaxed) && !self.preparing.swap(true, Ordering::Relaxed)
    }

    /// Makes the configurations now, on the caller's thread, unless they are there.
    pub(super) fn prepare(&self) {
        let _: &Made = self.made();
    }

    /// Does the handshake on a connected socket.
    pub(super) async fn handshake(
        &self,
        server_name: &str,
        offer: Offer,
        socket: TcpStream,
    ) -> Result<(TlsStream<TcpStream>, Alpn), Cause> {
        let made = self.made();
        let name =
            ServerName::try_from(server_name.trim_end_matches('.').to_owned()).map_err(|_| {
                Cause::TlsHandshake(format!("`{server_name}` is not a name TLS can ask for"))
            })?;
        let config = match offer {
            Offer::Http1 => &made.http1,
            Offer::Both => &made.both,
        };
        let stream = TlsConnector::from(config.clone())
            .connect(name, socket)
            .await
            .map_err(|error| made.cause_of(&error))?;
        let alpn = match stream.get_ref().1.alpn_protocol() {
            Some(id) if id == Alpn::H2.id() => Alpn::H2,
            _ => Alpn::Http1,
        };
        Ok((stream, alpn))
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(|| Made::new(&self.extra))
    }
}

impl fmt::Debug for TlsClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClients")
            .field("extra", &self.extra.len())
            .finish_non_exhaustive()
    }
}

impl Made {
    fn new(extra: &[CertificateDer<'static>]) -> Self {
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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trust = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map(|webpki| Arc::new(Trust::new(webpki, extra)));
        let client = |alpn: &[Alpn]| client_config(&provider, trust.as_ref().ok(), alpn);
        Self {
            http1: Arc::new(client(&[Alpn::Http1])),
            both: Arc::new(client(&[Alpn::H2, Alpn::Http1])),
            native_roots,
        }
    }

    fn cause_of(&self, error: &io::Error) -> Cause {
        match cause_of(error) {
            Cause::TlsUnknownIssuer(why) if self.native_roots == 0 => {
                Cause::TlsUnknownIssuer(format!("{why}, and this system has no root certificates"))
            }
            cause => cause,
        }
    }
}

/// Without `trust` there is not a single root, and nothing is trusted.
fn client_config(
    provider: &Arc<CryptoProvider>,
    trust: Option<&Arc<Trust>>,
    alpn: &[Alpn],
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
    config.alpn_protocols = alpn.iter().map(|alpn| alpn.id().to_vec()).collect();
    config
}

/// Whether a file can be one of `upstream_ca`, read as they are.
pub fn check_roots(path: &Path) -> Result<(), SettingsError> {
    read_roots(path).map(drop)
}

fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let bad = |why: String| SettingsError::UpstreamCa {
        path: path.to_owned(),
        why,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
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

/// What a failed handshake means.
fn cause_of(error: &io::Error) -> Cause {
    let Some(tls) = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    else {
        return match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Cause::TlsHandshake("the upstream reset the connection in the handshake".to_owned())
            }
            io::ErrorKind::UnexpectedEof => Cause::TlsHandshake(
                "the upstream closed the connection in the handshake".to_owned(),
            ),
            _ => Cause::TlsHandshake(error.to_string()),
        };
    };
    let rustls::Error::InvalidCertificate(certificate) = tls else {
        return Cause::TlsHandshake(plain_words(tls));
    };
    let why = certificate.to_string();
    match certificate {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => Cause::TlsExpired(why),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Cause::TlsWrongHost(why)
        }
        CertificateError::UnknownIssuer => {
            Cause::TlsUnknownIssuer("its issuer is not known".to_owned())
        }
        CertificateError::BadSignature => Cause::TlsUnknownIssuer(
            "its issuer has the name of a trusted root, but another key".to_owned(),
        ),
        error if is_ca_as_server(error) => Cause::TlsUnknownIssuer("it is self-signed".to_owned()),
        _ => Cause::TlsHandshake(why),
    }
}

fn plain_words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => {
            "the upstream does not speak TLS on this port".to_owned()
        }
        rustls::Error::AlertReceived(alert) => format!("the upstream sent the alert {alert:?}"),
        error => error.to_string(),
    }
}
