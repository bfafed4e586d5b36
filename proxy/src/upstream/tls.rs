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
use super::trust::{CertificateVerifier, SelfSigned};
use crate::config::ConfigError;
use crate::tls::Alpn;
use crate::user_file;

/// Most TLS sessions remembered for resumption, over all upstreams.
const SESSIONS: usize = 1024;

/// Client configurations, created on first use: reading the system's roots takes milliseconds,
/// which would slow down the start.
pub(super) struct TlsClients {
    extra: Vec<CertificateDer<'static>>,
    configs: OnceLock<ClientConfigs>,
}

struct ClientConfigs {
    http1: Arc<ClientConfig>,
    h2: Arc<ClientConfig>,
    native_roots: usize,
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
        let configs = self.configs();
        let name =
            ServerName::try_from(server_name.trim_end_matches('.').to_owned()).map_err(|_| {
                FailureCause::TlsHandshake(format!("`{server_name}` is not a name TLS can ask for"))
            })?;
        let config = match newest {
            Alpn::Http1 => &configs.http1,
            Alpn::H2 => &configs.h2,
        };
        let stream = TlsConnector::from(config.clone())
            .connect(name, socket)
            .await
            .map_err(|error| configs.cause_of(&error))?;
        let alpn = Alpn::agreed(stream.get_ref().1.alpn_protocol());
        Ok((stream, alpn))
    }

    fn configs(&self) -> &ClientConfigs {
        self.configs.get_or_init(|| ClientConfigs::new(&self.extra))
    }
}

impl ClientConfigs {
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
        let provider = crate::tls::provider();
        let trust = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map(|webpki| Arc::new(CertificateVerifier::new(webpki, extra)));
        let client = |newest| client_config(&provider, trust.as_ref().ok(), newest);
        Self {
            http1: Arc::new(client(Alpn::Http1)),
            h2: Arc::new(client(Alpn::H2)),
            native_roots,
        }
    }

    fn cause_of(&self, error: &io::Error) -> FailureCause {
        match cause_of(error) {
            FailureCause::TlsUnknownIssuer(why) if self.native_roots == 0 => {
                FailureCause::TlsUnknownIssuer(format!(
                    "{why}, and this system has no root certificates"
                ))
            }
            cause => cause,
        }
    }
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
    let Some(tls) = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
    else {
        return match error.kind() {
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                FailureCause::TlsHandshake(
                    "the upstream reset the connection in the handshake".to_owned(),
                )
            }
            io::ErrorKind::UnexpectedEof => FailureCause::TlsHandshake(
                "the upstream closed the connection in the handshake".to_owned(),
            ),
            _ => FailureCause::TlsHandshake(error.to_string()),
        };
    };
    let rustls::Error::InvalidCertificate(certificate) = tls else {
        return FailureCause::TlsHandshake(plain_words(tls));
    };
    let why = about_certificate(certificate);
    match certificate {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => FailureCause::TlsExpired(why),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            FailureCause::TlsWrongHost(why)
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            FailureCause::TlsUnknownIssuer(why)
        }
        CertificateError::Other(other) if other.0.is::<SelfSigned>() => {
            FailureCause::TlsUnknownIssuer(why)
        }
        _ => FailureCause::TlsHandshake(format!("of the upstream's certificate, {why}")),
    }
}

const SIGNATURE: &str =
    "it, or a CA of its chain, is signed with an algorithm that is not accepted, such as SHA-1";

/// Descriptions of the frequent certificate errors, by the name of rustls' or webpki's error without
/// `Context`. Others are reported by their name.
const FLAWS: [(&str, &str); 9] = [
    (
        "BadSignature",
        "its issuer has the name of a trusted root, but another key, or an RSA key of fewer than 2048 bits",
    ),
    ("CaUsedAsEndEntity", "it is a CA's, and no server's"),
    ("Expired", "it has expired"),
    ("InvalidPurpose", "it is not for servers"),
    ("NotValidForName", "it names no host that matches"),
    ("NotValidYet", "it is not valid yet"),
    ("UnknownIssuer", "its issuer is not known"),
    ("UnsupportedSignatureAlgorithm", SIGNATURE),
    ("UnsupportedSignatureAlgorithmForPublicKey", SIGNATURE),
];

/// The error in a certificate, as a clause.
fn about_certificate(error: &CertificateError) -> String {
    use CertificateError as E;
    let date = |time: UnixTime| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let date = OffsetDateTime::from_unix_timestamp(seconds).map(OffsetDateTime::date);
        date.map_or_else(
            |_| "a date out of range".to_owned(),
            |date| date.to_string(),
        )
    };
    let written = match error {
        E::ExpiredContext { not_after, .. } => {
            return format!("it expired on {}", date(*not_after));
        }
        E::NotValidYetContext { not_before, .. } => {
            return format!("it is not valid before {}", date(*not_before));
        }
        E::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            let names: Vec<_> = presented.iter().map(|name| plain_name(name)).collect();
            return format!("it is for {}", names.join(", "));
        }
        E::Other(other) if other.0.is::<SelfSigned>() => return other.0.to_string(),
        // webpki's own errors.
        E::Other(other) => other.0.to_string(),
        error => format!("{error:?}"),
    };
    let name = first_word(&written).trim_end_matches("Context");
    let known = FLAWS.iter().find(|(known, _)| *known == name);
    known.map_or_else(
        || format!("the check says: {}", in_words(name)),
        |(_, flaw)| (*flaw).to_owned(),
    )
}

/// `h` of `DnsName("h")`, as webpki writes names.
fn plain_name(name: &str) -> &str {
    let inside = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(name).trim_matches('"')
}

fn plain_words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => {
            "the upstream does not speak TLS on this port".to_owned()
        }
        rustls::Error::AlertReceived(alert) => about_alert(&format!("{alert:?}")),
        rustls::Error::PeerIncompatible(why) => format!(
            "the upstream and Squall have no TLS in common: {}",
            words_of(why)
        ),
        rustls::Error::PeerMisbehaved(why) => {
            format!("the upstream broke the rules of TLS: {}", words_of(why))
        }
        rustls::Error::NoApplicationProtocol => {
            "the upstream speaks none of the protocols that were offered".to_owned()
        }
        rustls::Error::General(why) => why.clone(),
        error => words_of(error),
    }
}

/// The name of an error's variant as words: rustls prints most errors in debug format.
fn words_of(error: &impl fmt::Debug) -> String {
    in_words(first_word(&format!("{error:?}")))
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric());
    &text[..end.unwrap_or(text.len())]
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
            (of(CertificateError::Expired), "it has expired"),
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
