//! TLS: what is trusted, what failures mean, what is agreed on.

use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A CA in a file, as `upstream_ca` names it.
struct Ca {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: tempfile::NamedTempFile,
}

impl Ca {
    fn new() -> Self {
        Self::self_signed(&[])
    }

    fn self_signed(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "Squall test CA");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), issuer.pem()).unwrap();
        Self { issuer, file }
    }

    fn path(&self) -> PathBuf {
        self.file.path().to_owned()
    }

    /// A server that has a certificate for `names` and speaks `alpn`.
    fn server(&self, names: &[&str], alpn: Option<Alpn>, expired: bool) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        if expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2020, 2, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        serving(certificate.der().clone(), &key, alpn)
    }

    /// The CA's certificate in a server's place, as `openssl req -x509` makes them.
    fn as_server(&self) -> TlsAcceptor {
        serving(self.issuer.der().clone(), self.issuer.key(), None)
    }
}

fn serving(certificate: CertificateDer<'static>, key: &KeyPair, alpn: Option<Alpn>) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = alpn.map(Alpn::and_older).unwrap_or_default();
    TlsAcceptor::from(Arc::new(config))
}

/// Upstreams that trust `ca` and find up.example at this address.
fn trusting(ca: &Ca, script: &Script) -> (Upstreams, UpstreamOrigin) {
    let mut config = config();
    config.upstream_ca = vec![ca.path()];
    config.upstream.connect = Duration::from_secs(5);
    let upstreams = upstreams_where(&config, &[("up.example", &["127.0.0.1"])]);
    (
        upstreams,
        UpstreamOrigin::new(Scheme::Https, "up.example", script.address().port()),
    )
}

async fn accept(script: &Script, server: &TlsAcceptor) -> io::Result<TlsStream<TcpStream>> {
    server.accept(script.accept().await.0).await
}

#[test]
fn a_request_goes_through_tls_under_the_agents_own_name() {
    on_worker(async {
        let (ca, script) = (Ca::new(), Script::listen().await);
        let server = ca.server(&["up.example", "sni.example"], Some(Alpn::Http1), false);
        let (upstreams, origin) = trusting(&ca, &script);
        for (origin, name) in [
            (origin.clone(), "up.example"),
            (origin.with_server_name("sni.example"), "sni.example"),
        ] {
            let sent = send(&upstreams, &origin, get(Version::HTTP_11));
            let mut peer = accept(&script, &server).await.unwrap();
            assert_eq!(peer.get_ref().1.server_name(), Some(name));
            peer.write_all(OK).await.unwrap();
            assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
        }
    });
}

#[test]
fn an_address_is_verified_as_such() {
    on_worker(async {
        let (ca, script) = (Ca::new(), Script::listen().await);
        let server = ca.server(&["127.0.0.1"], None, false);
        let (upstreams, _) = trusting(&ca, &script);
        let origin = script.origin().with_scheme(Scheme::Https);
        let sent = send(&upstreams, &origin, get(Version::HTTP_11));
        let mut peer = accept(&script, &server).await.unwrap();
        assert_eq!(peer.get_ref().1.server_name(), None, "an address is no SNI");
        peer.write_all(OK).await.unwrap();
        assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
    });
}

#[test]
fn a_self_signed_certificate_is_trusted_where_it_is_named_and_for_its_own_names() {
    on_worker(async {
        for (named, host, reason) in [
            (true, "up.example", None),
            (true, "other.example", Some("tls_wrong_host")),
            (false, "up.example", Some("tls_unknown_issuer")),
        ] {
            let (own, other) = (Ca::self_signed(&["up.example"]), Ca::new());
            let script = Script::listen().await;
            let mut config = config();
            config.upstream_ca = vec![if named { own.path() } else { other.path() }];
            let upstreams = upstreams_where(&config, &[(host, &["127.0.0.1"])]);
            let origin = UpstreamOrigin::new(Scheme::Https, host, script.address().port());
            let sent = send(&upstreams, &origin, get(Version::HTTP_11));
            let peer = accept(&script, &own.as_server()).await;
            if let Ok(mut peer) = peer {
                peer.write_all(OK).await.unwrap();
            }
            let failed = sent.await.unwrap().err();
            assert_eq!(
                failed.as_ref().map(UpstreamError::reason),
                reason,
                "{failed:?}"
            );
        }
    });
}

#[test]
fn a_bad_certificate_is_called_by_its_name() {
    on_worker(async {
        let (ca, other) = (Ca::new(), Ca::new());
        let key = KeyPair::generate().unwrap();
        let alone = CertificateParams::new(vec!["up.example".to_owned()]).unwrap();
        let alone = alone.self_signed(&key).unwrap();
        let namesake = Ca::self_signed(&["up.example"]);
        for (server, reason, why) in [
            (
                ca.server(&["up.example"], None, true),
                "tls_expired",
                "it expired on 2020-02-01",
            ),
            (
                ca.server(&["other.example"], None, false),
                "tls_wrong_host",
                "it is for other.example",
            ),
            (
                other.server(&["up.example"], None, false),
                "tls_unknown_issuer",
                "its issuer has the name of a trusted root",
            ),
            (
                serving(alone.der().clone(), &key, None),
                "tls_unknown_issuer",
                "it is self-signed",
            ),
            (
                namesake.as_server(),
                "tls_unknown_issuer",
                "it is self-signed",
            ),
        ] {
            let script = Script::listen().await;
            let (upstreams, origin) = trusting(&ca, &script);
            let sent = send(&upstreams, &origin, get(Version::HTTP_11));
            assert!(accept(&script, &server).await.is_err());
            let error = sent.await.unwrap().unwrap_err();
            assert_eq!(error.reason(), reason, "{error}");
            assert!(error.to_string().contains(why), "{error}");
            assert!(matches!(
                error.to_agent(),
                ToAgent::Problem(StatusCode::BAD_GATEWAY)
            ));
        }
    });
}

#[test]
fn an_upstream_that_wants_a_certificate_of_its_client_is_said_to() {
    on_worker(async {
        for alpn in [Alpn::Http1, Alpn::H2] {
            let (ca, script) = (Ca::new(), Script::listen().await);
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["up.example".to_owned()]).unwrap();
            let certificate = params.signed_by(&key, &ca.issuer).unwrap();
            let mut roots = rustls::RootCertStore::empty();
            roots.add(ca.issuer.der().clone()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
            let mut config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13])
                .unwrap()
                .with_client_cert_verifier(verifier.build().unwrap())
                .with_single_cert(
                    vec![certificate.der().clone()],
                    PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
                )
                .unwrap();
            config.alpn_protocols = alpn.and_older();
            let (upstreams, origin) = trusting(&ca, &script);
            let version = match alpn {
                Alpn::Http1 => Version::HTTP_11,
                Alpn::H2 => Version::HTTP_2,
            };
            let sent = send(&upstreams, &origin, get(version));
            assert!(
                accept(&script, &TlsAcceptor::from(Arc::new(config)))
                    .await
                    .is_err()
            );
            let error = sent.await.unwrap().unwrap_err();
            assert_eq!(error.reason(), "tls_handshake", "{alpn:?}: {error}");
            assert!(
                error
                    .to_string()
                    .contains("requires a client's certificate"),
                "{alpn:?}: {error}"
            );
        }
    });
}

#[test]
fn what_is_no_tls_at_all_is_a_failed_handshake() {
    on_worker(async {
        for says in ["SSH-2.0-OpenSSH\r\n", ""] {
            let (ca, script) = (Ca::new(), Script::listen().await);
            let (upstreams, origin) = trusting(&ca, &script);
            let sent = send(&upstreams, &origin, get(Version::HTTP_11));
            script.accept().await.say(says).await;
            let error = sent.await.unwrap().unwrap_err();
            assert_eq!(error.reason(), "tls_handshake", "{error}");
        }
    });
}

#[test]
fn a_handshake_that_hangs_is_a_504() {
    on_worker(async {
        let script = Script::listen().await;
        let mut config = config();
        config.upstream.connect = Duration::from_millis(50);
        let upstreams = upstreams_of(&config);
        let origin = script.origin().with_scheme(Scheme::Https);
        let sent = send(&upstreams, &origin, get(Version::HTTP_11));
        let _silent = script.accept().await;
        let error = sent.await.unwrap().unwrap_err();
        assert_eq!(error.reason(), "connect_timeout");
        assert!(matches!(
            error.to_agent(),
            ToAgent::Problem(StatusCode::GATEWAY_TIMEOUT)
        ));
    });
}

#[test]
fn what_is_offered_to_the_agent_is_what_the_upstream_speaks() {
    on_worker(async {
        for (speaks, newest, learned) in [
            (Some(Alpn::H2), Alpn::H2, Alpn::H2),
            (Some(Alpn::H2), Alpn::Http1, Alpn::Http1),
            (Some(Alpn::Http1), Alpn::H2, Alpn::Http1),
            (None, Alpn::H2, Alpn::Http1),
        ] {
            let (ca, script) = (Ca::new(), Script::listen().await);
            let server = ca.server(&["up.example"], speaks, false);
            let (upstreams, origin) = trusting(&ca, &script);
            let dialled = upstreams.connect_tcp(&origin).await.unwrap();
            let (asking, place) = (upstreams.clone(), origin.clone());
            let alpn = spawn_local(async move {
                asking
                    .learn_alpn(&place, Some(dialled), newest)
                    .await
                    .unwrap()
            });
            let _peer = accept(&script, &server).await.unwrap();
            assert_eq!(alpn.await.unwrap(), learned, "{speaks:?} {newest:?}");
            // The handshake was not for nothing: it is asked no more, and serves the first request.
            assert!(upstreams.is_reachable(&origin));
            let again = upstreams.learn_alpn(&origin, None, newest).await.unwrap();
            assert_eq!(again, learned);
            assert_eq!(upstreams.shared().counters().opened(), 1);
        }
    });
}

#[test]
fn sessions_are_resumed() {
    on_worker(async {
        let (ca, script) = (Ca::new(), Script::listen().await);
        let server = ca.server(&["up.example"], Some(Alpn::Http1), false);
        let (upstreams, origin) = trusting(&ca, &script);
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let sent = send(&upstreams, &origin, get(Version::HTTP_11));
            let mut peer = accept(&script, &server).await.unwrap();
            peer.write_all(OK).await.unwrap();
            assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
            kinds.extend(peer.get_ref().1.handshake_kind());
            upstreams.close_idle();
        }
        assert_eq!(
            kinds,
            [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed]
        );
    });
}

#[test]
fn a_root_that_cannot_be_read_is_named() {
    for text in [
        "",
        "no PEM",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut config = config();
        config.upstream_ca = vec![file.path().to_owned()];
        let error = Shared::new(&config).err().expect("refused").to_string();
        assert!(error.contains(&*file.path().to_string_lossy()), "{error}");
    }
}
