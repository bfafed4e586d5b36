use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, CipherSuite, ClientConfig, HandshakeKind, RootCertStore};
use tokio::io::{DuplexStream, duplex};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as ClientStream;

use super::*;
use crate::tls::{Alpn, CertificateAuthority, Flaw, LeafCache, provider};

fn cache() -> LeafCache {
    let home = tempfile::tempdir().unwrap();
    LeafCache::new(Arc::new(
        CertificateAuthority::load_or_create(home.path()).unwrap(),
    ))
}

/// A client that trusts `authority`'s CA and offers `alpn`.
fn client(authority: &CertificateAuthority, alpn: &[&[u8]]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config
}

type Handshaken = (
    io::Result<ClientStream<DuplexStream>>,
    Result<TlsStream<Rewind<DuplexStream>>, HandshakeError>,
);

/// A handshake for `host` in which the server takes its config from `choose`.
async fn handshake(
    client: &Arc<ClientConfig>,
    host: &str,
    choose: impl FnOnce(&ClientHello) -> Arc<ServerConfig>,
) -> Handshaken {
    let (near, far) = duplex(1 << 16);
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let connect = TlsConnector::from(Arc::clone(client)).connect(name, near);
    let serve = async {
        let started = accept(far).await?;
        let config = choose(started.hello());
        let mut stream = started.finish(config).await?;
        stream
            .write_all(b"hello")
            .await
            .map_err(HandshakeError::Io)?;
        stream.flush().await.map_err(HandshakeError::Io)?;
        Ok(stream)
    };
    let receive = async {
        let mut stream = connect.await?;
        let mut hello = [0; 5];
        stream.read_exact(&mut hello).await?;
        Ok(stream)
    };
    tokio::join!(receive, serve)
}

#[tokio::test]
async fn the_agent_gets_a_leaf_for_the_host_it_means() {
    let cache = cache();
    for (host, sni) in [
        ("api.example", Some("api.example")),
        ("127.0.0.1", None),
        ("::1", None),
    ] {
        let config = Arc::new(client(&cache.authority, &[b"h2", b"http/1.1"]));
        let (client, server) = handshake(&config, host, |hello| {
            assert_eq!(hello.server_name.as_deref(), sni);
            assert_eq!(hello.alpn, [&b"h2"[..], b"http/1.1"]);
            assert!(hello.offers_http2());
            cache.config(host, Alpn::H2).unwrap()
        })
        .await;
        assert_eq!(
            client.unwrap().get_ref().1.alpn_protocol(),
            Some(&b"h2"[..])
        );
        server.unwrap();
    }
}

#[tokio::test]
async fn the_cipher_suite_with_sha_256_is_preferred_to_the_client_s_order() {
    let cache = cache();
    let client = client(&cache.authority, &[]);
    let first = client.crypto_provider().cipher_suites[0].suite();
    assert_eq!(first, CipherSuite::TLS13_AES_256_GCM_SHA384);
    let choose = |_: &ClientHello| cache.config("up.example", Alpn::Http1).unwrap();
    let (near, _) = handshake(&Arc::new(client), "up.example", choose).await;
    let suite = near.unwrap().get_ref().1.negotiated_cipher_suite().unwrap();
    assert_eq!(suite.suite(), CipherSuite::TLS13_AES_128_GCM_SHA256);
}

#[tokio::test]
async fn what_is_offered_bounds_what_is_agreed_on() {
    let cache = cache();
    for (wanted, offered, agreed) in [
        (
            &[&b"h2"[..], b"http/1.1"][..],
            Alpn::Http1,
            Some(&b"http/1.1"[..]),
        ),
        (&[b"h2", b"http/1.1"], Alpn::H2, Some(b"h2")),
        (&[b"http/1.1"], Alpn::H2, Some(b"http/1.1")),
        (&[], Alpn::H2, None),
    ] {
        let config = Arc::new(client(&cache.authority, wanted));
        let choose = |_: &ClientHello| cache.config("h", offered).unwrap();
        let (client, _) = handshake(&config, "h", choose).await;
        assert_eq!(
            client.unwrap().get_ref().1.alpn_protocol(),
            agreed,
            "{offered:?}"
        );
    }
    let config = Arc::new(client(&cache.authority, &[b"h2"]));
    let (_, server) = handshake(&config, "h", |_| cache.config("h", Alpn::Http1).unwrap()).await;
    let error = server.unwrap_err();
    let none = rustls::Error::NoApplicationProtocol;
    assert!(
        matches!(&error, HandshakeError::Impossible(why) if *why == none),
        "{error}"
    );
}

#[tokio::test]
async fn a_second_connection_resumes_but_not_onto_a_flawed_leaf() {
    let cache = cache();
    let mut config = client(&cache.authority, &[]);
    config.resumption = Resumption::in_memory_sessions(8);
    let config = Arc::new(config);
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let (client, server) =
            handshake(&config, "h", |_| cache.config("h", Alpn::H2).unwrap()).await;
        kinds.push(server.unwrap().get_ref().1.handshake_kind());
        client.unwrap();
    }
    assert_eq!(
        kinds,
        [Some(HandshakeKind::Full), Some(HandshakeKind::Resumed)]
    );
    let (client, _) = handshake(&config, "h", |_| {
        cache.flawed("h", Flaw::Expired, Alpn::H2).unwrap()
    })
    .await;
    client.unwrap_err();
}

#[tokio::test]
async fn every_flaw_is_what_the_agent_complains_about() {
    let cache = cache();
    let config = Arc::new(client(&cache.authority, &[]));
    for flaw in [Flaw::Expired, Flaw::WrongHost, Flaw::Untrusted] {
        let choose = |_: &ClientHello| cache.flawed("h", flaw, Alpn::H2).unwrap();
        let (client, server) = handshake(&config, "h", choose).await;
        let error = client.unwrap_err();
        let Some(rustls::Error::InvalidCertificate(complaint)) =
            error.get_ref().and_then(|inside| inside.downcast_ref())
        else {
            panic!("{flaw:?}: {error}");
        };
        match flaw {
            Flaw::Expired => {
                assert!(
                    matches!(complaint, CertificateError::ExpiredContext { .. }),
                    "{complaint:?}"
                );
            }
            Flaw::WrongHost => assert!(
                matches!(complaint, CertificateError::NotValidForNameContext { .. }),
                "{complaint:?}"
            ),
            Flaw::Untrusted => assert_eq!(*complaint, CertificateError::UnknownIssuer),
        }
        let error = server.unwrap_err();
        assert!(
            matches!(error, HandshakeError::CertificateRejected { .. }),
            "{flaw:?}: {error}"
        );
    }
}

#[tokio::test]
async fn an_agent_that_was_not_given_the_ca_is_recognised() {
    let (cache, other) = (cache(), cache());
    let config = Arc::new(client(&other.authority, &[]));
    let (_, server) = handshake(&config, "h", |_| cache.config("h", Alpn::H2).unwrap()).await;
    insta::assert_snapshot!(server.unwrap_err(), @"the client refused our certificate (UnknownCA)");
}

#[tokio::test]
async fn a_failed_handshake_is_an_alert() {
    let cache = cache();
    let (near, far) = duplex(1 << 16);
    let name = ServerName::try_from("h").unwrap();
    let config = Arc::new(client(&cache.authority, &[]));
    let connect = TlsConnector::from(config).connect(name, near);
    let fail = async { accept(far).await.unwrap().fail().await.unwrap() };
    let (client, ()) = tokio::join!(connect, fail);
    let error = client.unwrap_err();
    let alert = rustls::Error::AlertReceived(AlertDescription::HandshakeFailure);
    assert_eq!(
        error.get_ref().and_then(|inside| inside.downcast_ref()),
        Some(&alert)
    );
}

#[tokio::test]
async fn what_is_no_hello_is_answered_with_an_alert() {
    let (mut near, far) = duplex(1 << 16);
    near.write_all(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
        .await
        .unwrap();
    let error = accept(far).await.err().unwrap();
    assert!(matches!(error, HandshakeError::Impossible(_)), "{error}");
    let mut alert = Vec::new();
    near.read_to_end(&mut alert).await.unwrap();
    assert_eq!(alert[0], 21);

    let (near, far) = duplex(1 << 16);
    drop(near);
    assert!(matches!(
        accept(far).await.err().unwrap(),
        HandshakeError::Closed
    ));
}

/// The bytes that a client opens with.
fn hello_bytes() -> Vec<u8> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let write = || {
        let config = Arc::new(client(&cache().authority, &[b"h2"]));
        let name = ServerName::try_from("host.example").unwrap();
        let mut connection = rustls::ClientConnection::new(config, name).unwrap();
        let mut bytes = Vec::new();
        connection.write_tls(&mut bytes).unwrap();
        bytes
    };
    BYTES.get_or_init(write).clone()
}

#[tokio::test]
async fn a_connection_can_be_left_untouched_after_its_hello() {
    let bytes = [hello_bytes(), b"and more".to_vec()].concat();
    let (mut near, far) = duplex(1 << 16);
    for piece in bytes.chunks(100) {
        near.write_all(piece).await.unwrap();
    }
    near.shutdown().await.unwrap();
    let started = accept(far).await.unwrap();
    assert_eq!(started.hello().server_name.as_deref(), Some("host.example"));
    let mut all = Vec::new();
    started
        .into_untouched()
        .read_to_end(&mut all)
        .await
        .unwrap();
    assert_eq!(all, bytes);
}

proptest! {
    #[test]
    fn a_hello_is_read_alike_for_every_chunking(
        cuts in prop::collection::vec(1usize..300, 0..10),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut bytes = hello_bytes();
        if let Some((at, byte)) = damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = HelloReader::new().push(&bytes);
        let mut reader = HelloReader::new();
        let mut verdict = Ok(None);
        let mut rest = &bytes[..];
        for cut in cuts.into_iter().chain([bytes.len()]) {
            let (piece, more) = rest.split_at(cut.min(rest.len()));
            verdict = reader.push(piece);
            rest = more;
            if !matches!(verdict, Ok(None)) {
                break;
            }
        }
        prop_assert_eq!(verdict, whole);
    }
}
