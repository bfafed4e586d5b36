//! TLS to upstreams: trusted roots, session resumption, ALPN, and error messages.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use time::OffsetDateTime;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::{FailureCause, about_alert, in_words};
use super::trust::{CertificateVerifier, SelfSigned, is_ca_as_server};
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

/// The cause of a failed handshake.
fn cause_of(error: &io::Error) -> FailureCause {
    use CertificateError as E;
    let inner = error.get_ref();
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match (tls, error.kind()) {
        (Some(rustls::Error::InvalidCertificate(certificate)), _) => {
            let why = about_certificate(certificate);
            return match certificate {
                E::Expired
                | E::ExpiredContext { .. }
                | E::NotValidYet
                | E::NotValidYetContext { .. } => FailureCause::TlsExpired(why),
                E::NotValidForName | E::NotValidForNameContext { .. } => {
                    FailureCause::TlsWrongHost(why)
                }
                E::UnknownIssuer | E::BadSignature => FailureCause::TlsUnknownIssuer(why),
                E::Other(other) if other.0.is::<SelfSigned>() => {
                    FailureCause::TlsUnknownIssuer(why)
                }
                _ => FailureCause::TlsHandshake(why),
            };
        }
        (Some(rustls::Error::InvalidMessage(_)), _) => {
            "the upstream does not speak TLS on this port".to_owned()
        }
        (Some(rustls::Error::AlertReceived(alert)), _) => about_alert(&format!("{alert:?}")),
        (Some(rustls::Error::PeerIncompatible(why)), _) => words_of(why),
        (Some(rustls::Error::PeerMisbehaved(why)), _) => words_of(why),
        (Some(other), _) => words_of(other),
        (None, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
            "the upstream reset the connection in the handshake".to_owned()
        }
        (None, io::ErrorKind::UnexpectedEof) => {
            "the upstream closed the connection in the handshake".to_owned()
        }
        (None, _) => error.to_string(),
    };
    FailureCause::TlsHandshake(why)
}

/// The error in a certificate, as a clause.
fn about_certificate(error: &CertificateError) -> String {
    use CertificateError as E;
    let date = |time: &UnixTime| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let date = OffsetDateTime::from_unix_timestamp(seconds).map(OffsetDateTime::date);
        date.map_or_else(|_| "a date out of range".to_owned(), |it| it.to_string())
    };
    match error {
        E::ExpiredContext { not_after, .. } => format!("it expired on {}", date(not_after)),
        E::NotValidYetContext { not_before, .. } => {
            format!("it is not valid before {}", date(not_before))
        }
        E::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<_> = presented.iter().map(|name| plain_name(name)).collect();
            format!("it is for {}", names.join(", "))
        }
        E::UnknownIssuer => "its issuer is not known".to_owned(),
        E::BadSignature => "its issuer has the name of a trusted root, but another key, or an \
                            RSA key of fewer than 2048 bits"
            .to_owned(),
        E::Other(other) if other.0.is::<SelfSigned>() => other.0.to_string(),
        error if is_ca_as_server(error) => "it is a CA's, and no server's".to_owned(),
        error => {
            let name = match error {
                E::Other(other) => in_words(&other.0.to_string()),
                error => words_of(error),
            };
            if name.starts_with("unsupported signature algorithm") {
                return "it, or a CA of its chain, is signed with an algorithm that is not \
                        accepted, such as SHA-1"
                    .to_owned();
            }
            format!(
                "the certificate was refused: {}",
                name.trim_end_matches(" context")
            )
        }
    }
}

/// `h` of `DnsName("h")`, as webpki writes names.
fn plain_name(name: &str) -> &str {
    let inside = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(name).trim_matches('"')
}

/// The name of an error's variant as words.
fn words_of(error: &impl fmt::Debug) -> String {
    in_words(&format!("{error:?}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::{AlertDescription, OtherError, PeerIncompatible, PeerMisbehaved};

    use super::*;
    use crate::upstream::{Scheme, UpstreamError, UpstreamOrigin};

    fn other(error: impl std::error::Error + Send + Sync + 'static) -> rustls::Error {
        let error = CertificateError::Other(OtherError(Arc::new(error)));
        rustls::Error::InvalidCertificate(error)
    }

    #[test]
    fn every_failure_is_a_sentence() {
        let id = vec![6, 7];
        let of = rustls::Error::InvalidCertificate;
        let time = UnixTime::since_unix_epoch(Duration::from_hours(24));
        for (error, expected) in [
            (
                of(CertificateError::Expired),
                "the certificate was refused: expired",
            ),
            (
                of(CertificateError::ExpiredContext {
                    time,
                    not_after: time,
                }),
                "it expired on 1970-01-02",
            ),
            (
                of(
                    CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext {
                        signature_algorithm_id: id.clone(),
                        public_key_algorithm_id: id,
                    },
                ),
                "such as SHA-1",
            ),
            (other(SelfSigned), "it is self-signed"),
            (
                other(io::Error::other("CaUsedAsEndEntity")),
                "it is a CA's, and no server's",
            ),
            (
                of(CertificateError::BadSignature),
                "an RSA key of fewer than 2048 bits",
            ),
            (
                other(io::Error::other("UnsupportedCertVersion")),
                "unsupported cert version",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "the upstream requires a client's certificate",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::HandshakeFailure),
                "the alert `handshake failure`",
            ),
            (
                rustls::Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
                "no cipher suites in common",
            ),
            (
                rustls::Error::PeerMisbehaved(PeerMisbehaved::TooManyKeyUpdateRequests),
                "too many key update requests",
            ),
            (rustls::Error::DecryptError, "decrypt error"),
        ] {
            let shown = format!("{error:?}");
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            let origin = UpstreamOrigin::new(Scheme::Https, "h", 443);
            let said = UpstreamError::new(&origin, cause_of(&error)).to_string();
            assert!(said.contains(expected), "{shown}: {said}");
            assert!(!said.contains(['{', '}', '"']), "{shown}: {said}");
        }
    }
}
