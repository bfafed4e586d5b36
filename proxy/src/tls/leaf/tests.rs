use std::collections::HashSet;
use std::sync::atomic::AtomicU64;

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

use super::*;

fn authority() -> Arc<CertificateAuthority> {
    let home = tempfile::tempdir().unwrap();
    Arc::new(CertificateAuthority::load_or_create(home.path()).unwrap())
}

fn cache() -> LeafCache {
    LeafCache::new(authority())
}

/// The leaf that would be sent for `host`.
fn der(cache: &LeafCache, host: &str) -> CertificateDer<'static> {
    let validity = cache.validity(wall_clock());
    let params = params(&canonical(host), validity).unwrap();
    params
        .signed_by(&cache.common().unwrap().key_pair, cache.authority.issuer())
        .unwrap()
        .der()
        .clone()
}

#[test]
fn a_leaf_has_what_strict_clients_ask_for() {
    let cache = cache();
    let der = der(&cache, "API.example.");
    let (_, leaf) = X509Certificate::from_der(&der).unwrap();
    let (_, ca) = X509Certificate::from_der(cache.authority.certificate()).unwrap();
    assert_eq!(leaf.issuer(), ca.subject());

    let days = (leaf.validity().not_after.timestamp() - leaf.validity().not_before.timestamp())
        / (24 * 60 * 60);
    assert!(days < 398, "{days} days");
    assert!(leaf.validity().not_before.timestamp() >= ca.validity().not_before.timestamp());
    assert!(leaf.validity().not_after.timestamp() <= ca.validity().not_after.timestamp());

    let names = &leaf
        .subject_alternative_name()
        .unwrap()
        .unwrap()
        .value
        .general_names;
    assert_eq!(names, &[GeneralName::DNSName("api.example")]);
    assert!(!leaf.is_ca());
    assert!(
        leaf.extended_key_usage()
            .unwrap()
            .unwrap()
            .value
            .server_auth
    );
    assert!(leaf.key_usage().unwrap().unwrap().value.digital_signature());
    let authority_key = leaf
        .extensions()
        .iter()
        .find_map(|e| match e.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.clone(),
            _ => None,
        });
    let subject_key = |certificate: &X509Certificate<'_>| {
        certificate
            .extensions()
            .iter()
            .find_map(|e| match e.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            })
    };
    assert_eq!(authority_key.map(|id| id.0.to_vec()), subject_key(&ca));
    assert!(subject_key(&leaf).is_some());
    assert_ne!(
        leaf.public_key().subject_public_key,
        ca.public_key().subject_public_key
    );
}

#[test]
fn an_address_is_an_address_in_its_leaf() {
    let cache = cache();
    for (host, octets) in [("127.0.0.1", &[127, 0, 0, 1][..]), ("[::1]", &[0; 16])] {
        let der = der(&cache, host);
        let (_, leaf) = X509Certificate::from_der(&der).unwrap();
        let names = leaf.subject_alternative_name().unwrap().unwrap();
        let [GeneralName::IPAddress(address)] = names.value.general_names[..] else {
            panic!("{host}: {names:?}");
        };
        let mut expected = octets.to_vec();
        if let Some(last) = expected.last_mut() {
            *last = 1;
        }
        assert_eq!(address, expected, "{host}");
    }
}

#[test]
fn no_two_leaves_share_a_serial() {
    let cache = cache();
    let serials: HashSet<_> = (0..100)
        .map(|_| {
            let der = der(&cache, "h");
            let (_, leaf) = X509Certificate::from_der(&der).unwrap();
            assert_eq!(leaf.raw_serial().len(), 16);
            leaf.raw_serial().to_vec()
        })
        .collect();
    assert_eq!(serials.len(), 100);
}

#[test]
fn what_cannot_be_a_host_is_refused() {
    let cache = cache();
    for host in ["", "a b", "a..b", "*", "h\u{e9}", "[::1", &"x".repeat(300)] {
        let error = cache.config(host, Alpn::H2).unwrap_err();
        assert!(matches!(error, LeafError::Host { .. }), "{host}: {error}");
    }
    // Longer than a common name may be, but a fine host.
    cache
        .config(&format!("{}.example", "x".repeat(60)), Alpn::H2)
        .unwrap();
}

#[test]
fn those_that_ask_at_once_get_one_leaf() {
    let cache = cache();
    let configs: Vec<_> = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| cache.config("one.example", Alpn::H2)))
            .collect();
        askers
            .into_iter()
            .map(|asker| asker.join().unwrap().unwrap())
            .collect()
    });
    assert_eq!(cache.minted(), 1);
    assert!(
        configs
            .iter()
            .all(|config| Arc::ptr_eq(config, &configs[0]))
    );
}

#[test]
fn one_leaf_serves_every_way_to_write_and_to_offer() {
    let cache = cache();
    for host in ["h.example", "H.Example", "h.example."] {
        for alpn in [Alpn::Http1, Alpn::H2] {
            let config = cache.config(host, alpn).unwrap();
            assert_eq!(config.alpn_protocols, alpn.and_older());
        }
    }
    assert_eq!(cache.minted(), 1);
}

#[test]
fn the_cache_is_bounded() {
    let cache = LeafCache::with(authority(), 64, wall_clock);
    for host in 0..500 {
        cache
            .config(&format!("h{host}.example"), Alpn::Http1)
            .unwrap();
    }
    assert!(cache.leaves.len() <= 64);
}

#[test]
fn a_leaf_is_replaced_before_it_ends() {
    /// Seconds that this test's clock is ahead.
    static AHEAD: AtomicU64 = AtomicU64::new(0);
    let clock = || wall_clock() + Duration::from_secs(AHEAD.load(Ordering::Relaxed));
    let cache = LeafCache::with(authority(), HOSTS, clock);
    let first = cache.config("h", Alpn::H2).unwrap();
    let minute = 60;
    let replacing = LIFE.as_secs().saturating_sub(SPARE.as_secs());
    AHEAD.store(replacing - minute, Ordering::Relaxed);
    assert!(Arc::ptr_eq(&first, &cache.config("h", Alpn::H2).unwrap()));
    AHEAD.store(replacing + minute, Ordering::Relaxed);
    assert!(!Arc::ptr_eq(&first, &cache.config("h", Alpn::H2).unwrap()));
    assert_eq!(cache.minted(), 2);
}

#[test]
fn a_leaf_minted_while_the_clock_was_ahead_is_replaced() {
    /// Seconds that this test's clock is ahead.
    static AHEAD: AtomicU64 = AtomicU64::new(7 * 24 * 60 * 60);
    let clock = || wall_clock() + Duration::from_secs(AHEAD.load(Ordering::Relaxed));
    let cache = LeafCache::with(authority(), HOSTS, clock);
    let ahead = cache.config("h", Alpn::H2).unwrap();
    assert!(Arc::ptr_eq(&ahead, &cache.config("h", Alpn::H2).unwrap()));
    AHEAD.store(0, Ordering::Relaxed);
    let now = cache.config("h", Alpn::H2).unwrap();
    assert!(!Arc::ptr_eq(&ahead, &now));
    assert!(Arc::ptr_eq(&now, &cache.config("h", Alpn::H2).unwrap()));
}

#[test]
fn flawed_leaves_are_never_cached_nor_resumed() {
    let cache = cache();
    for flaw in [Flaw::Expired, Flaw::WrongHost, Flaw::Untrusted] {
        let config = cache.flawed("h", flaw, Alpn::H2).unwrap();
        assert!(!config.ticketer.enabled());
        assert_eq!(config.send_tls13_tickets, 0);
    }
    assert!(cache.leaves.is_empty());
    assert!(cache.config("h", Alpn::H2).unwrap().ticketer.enabled());
}
