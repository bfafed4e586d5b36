//! Certificates for the hosts that are intercepted, minted on demand.
//!
//! One leaf key serves all hosts of a process and is never written down; the CA's key signs and
//! does nothing else. Signing takes some tens of microseconds, so it is done where it is needed:
//! askers for the same host wait for one mint.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use quick_cache::sync::Cache;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{DnsName, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};
use rustls::{CipherSuite, ServerConfig};

use super::ca::{BACK_DATE, CertificateAuthority, Validity, new_root, random_serial};
use super::{Alpn, provider, wall_clock};

const DAY: Duration = Duration::from_hours(24);

/// How long a leaf is valid after its making. With the back-dating well below the 398 days that
/// clients accept at most.
const LIFE: Duration = Duration::from_hours(24 * 90);

/// A leaf is replaced when it is valid for less than this.
const SPARE: Duration = DAY;

/// Hosts whose leaves are kept.
const HOSTS: usize = 4096;

/// The longest common name (RFC 5280, ub-common-name).
const LONGEST_NAME: usize = 64;

/// Where a leaf for the wrong host is valid: nowhere (RFC 2606).
const WRONG_HOST: &str = "wrong-host.invalid";

/// What is wrong with a leaf that must not be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Its validity ended a day ago.
    Expired,
    /// It is for another host.
    WrongHost,
    /// Its CA is unknown.
    Untrusted,
}

/// Why there is no leaf.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeafError {
    /// No certificate can be for this name.
    #[error("`{host}` is neither a host name nor an IP address, so no certificate can be for it")]
    Host {
        /// The name.
        host: String,
    },
    /// Signing failed.
    #[error("cannot mint a certificate: {0}")]
    Mint(#[from] rcgen::Error),
    /// The TLS library refused what was minted.
    #[error("cannot use a minted certificate: {0}")]
    Use(#[from] rustls::Error),
}

/// Leaves of this process, by host, with a config to serve each.
pub(crate) struct LeafCache {
    pub(super) authority: Arc<CertificateAuthority>,
    /// An authority that no agent knows.
    stranger: OnceLock<Issuer<'static, KeyPair>>,
    /// Made when the first leaf is: a daemon that intercepts nothing needs none.
    common: OnceLock<LeafParameters>,
    leaves: Cache<String, Arc<Leaf>>,
    minted: AtomicU64,
    clock: fn() -> SystemTime,
}

/// What all leaves have in common.
struct LeafParameters {
    key_pair: KeyPair,
    key: Arc<dyn SigningKey>,
    /// What configs are copied from: one ticketer for all of them, so sessions resume.
    resuming: ServerConfig,
    /// As above, but every handshake is a full one.
    forgetful: ServerConfig,
}

impl LeafParameters {
    fn new() -> Result<Self, LeafError> {
        let key_pair = KeyPair::generate()?;
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key_pair.serialize_der()));
        let key = rustls::crypto::ring::sign::any_ecdsa_type(&der)?;

        let nothing = CertifiedKey::new(Vec::new(), Arc::clone(&key));
        let mut forgetful = ServerConfig::builder_with_provider(preferring_sha256())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(nothing)));
        forgetful.session_storage = Arc::new(NoServerSessionStorage {});
        forgetful.send_tls13_tickets = 0;
        forgetful.ignore_client_order = true;
        let mut resuming = forgetful.clone();
        resuming.ticketer = rustls::crypto::ring::Ticketer::new()?;
        // One is enough for clients that resume at all, and each costs its encryption.
        resuming.send_tls13_tickets = 1;
        Ok(Self {
            key_pair,
            key,
            resuming,
            forgetful,
        })
    }
}

/// The leaf for one host.
#[derive(Debug)]
struct Leaf {
    resolver: Arc<SingleCertAndKey>,
    minted_at: SystemTime,
    replace_at: SystemTime,
    configs: [OnceLock<Arc<ServerConfig>>; 2],
}

impl Leaf {
    /// Whether it is valid, and will be for a while. A clock that was set back leaves it in the future.
    fn serves_at(&self, now: SystemTime) -> bool {
        self.minted_at <= now + BACK_DATE && now < self.replace_at
    }
}

impl LeafCache {
    /// An empty cache of leaves signed by `authority`. Their key is made with the first of them.
    pub(crate) fn new(authority: Arc<CertificateAuthority>) -> Self {
        Self::with(authority, HOSTS, wall_clock)
    }

    fn with(authority: Arc<CertificateAuthority>, hosts: usize, clock: fn() -> SystemTime) -> Self {
        Self {
            authority,
            stranger: OnceLock::new(),
            common: OnceLock::new(),
            leaves: Cache::new(hosts),
            minted: AtomicU64::new(0),
            clock,
        }
    }

    /// The config that serves `host` (a name, or an IP address with or without brackets), minting
    /// its leaf if need be.
    ///
    /// Callers that ask for the same host at the same time wait for one mint. A leaf is replaced a
    /// day before it ends.
    pub(crate) fn config(&self, host: &str, alpn: Alpn) -> Result<Arc<ServerConfig>, LeafError> {
        let host = canonical(host);
        let leaf = self.leaf(&host)?;
        let resuming = &self.common()?.resuming;
        let config = leaf.configs[alpn as usize]
            .get_or_init(|| Arc::new(serving(resuming, Arc::clone(&leaf.resolver), alpn)));
        Ok(Arc::clone(config))
    }

    /// A config that serves `host` with a leaf no careful client accepts. Sessions are not resumed
    /// and none can be resumed later, so that the leaf is looked at each time.
    pub(crate) fn flawed(
        &self,
        host: &str,
        flaw: Flaw,
        alpn: Alpn,
    ) -> Result<Arc<ServerConfig>, LeafError> {
        let host = canonical(host);
        let now = (self.clock)();
        let validity = self.validity(now);
        let resolver = match flaw {
            Flaw::Expired => {
                let validity = Validity {
                    not_before: (now - LIFE).into(),
                    not_after: (now - DAY).into(),
                };
                self.mint(&host, validity, self.authority.issuer())?
            }
            Flaw::WrongHost => self.mint(WRONG_HOST, validity, self.authority.issuer())?,
            Flaw::Untrusted => self.mint(&host, validity, self.stranger(now)?)?,
        };
        Ok(Arc::new(serving(&self.common()?.forgetful, resolver, alpn)))
    }

    /// How many leaves were minted so far, flawed ones included.
    pub(crate) fn minted(&self) -> u64 {
        self.minted.load(Ordering::Relaxed)
    }

    fn leaf(&self, host: &str) -> Result<Arc<Leaf>, LeafError> {
        let now = (self.clock)();
        if let Some(leaf) = self.leaves.get(host) {
            if leaf.serves_at(now) {
                return Ok(leaf);
            }
            self.leaves.remove_if(host, |leaf| !leaf.serves_at(now));
        }
        self.leaves.get_or_insert_with(host, || {
            let validity = self.validity(now);
            let resolver = self.mint(host, validity, self.authority.issuer())?;
            let replace_at = SystemTime::from(validity.not_after) - SPARE;
            Ok(Arc::new(Leaf {
                resolver,
                minted_at: now,
                replace_at,
                configs: Default::default(),
            }))
        })
    }

    /// Never beyond the CA's own, which some clients insist on.
    fn validity(&self, now: SystemTime) -> Validity {
        let authority = self.authority.validity();
        Validity {
            not_before: authority.not_before.max((now - BACK_DATE).into()),
            not_after: authority.not_after.min((now + LIFE).into()),
        }
    }

    fn mint(
        &self,
        host: &str,
        validity: Validity,
        issuer: &Issuer<'_, KeyPair>,
    ) -> Result<Arc<SingleCertAndKey>, LeafError> {
        let common = self.common()?;
        let certificate = params(host, validity)?.signed_by(&common.key_pair, issuer)?;
        let mut chain = vec![certificate.der().clone()];
        chain.extend_from_slice(self.authority.intermediates());
        self.minted.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(
            CertifiedKey::new(chain, Arc::clone(&common.key)).into(),
        ))
    }

    fn common(&self) -> Result<&LeafParameters, LeafError> {
        if let Some(common) = self.common.get() {
            return Ok(common);
        }
        // Made twice when two ask at once; the second is thrown away.
        let common = LeafParameters::new()?;
        Ok(self.common.get_or_init(|| common))
    }

    fn stranger(&self, now: SystemTime) -> Result<&Issuer<'static, KeyPair>, LeafError> {
        if let Some(stranger) = self.stranger.get() {
            return Ok(stranger);
        }
        // Made twice when two ask at once; the second is thrown away.
        let stranger = Issuer::new(new_root(now), KeyPair::generate()?);
        Ok(self.stranger.get_or_init(|| stranger))
    }
}

/// The provider with TLS 1.3's cipher suites of SHA-256 first: most processors hash it in hardware
/// and none SHA-384, which is what most clients name first.
fn preferring_sha256() -> Arc<CryptoProvider> {
    let mut provider = CryptoProvider::clone(&provider());
    provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

fn serving(base: &ServerConfig, resolver: Arc<SingleCertAndKey>, alpn: Alpn) -> ServerConfig {
    let mut config = base.clone();
    config.cert_resolver = resolver;
    config.alpn_protocols = alpn.and_older();
    config
}

/// One way to write each host: lower case, without a final dot or brackets.
fn canonical(host: &str) -> Cow<'_, str> {
    let host = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.bytes().any(|b| b.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

fn params(host: &str, validity: Validity) -> Result<CertificateParams, LeafError> {
    let bad_host = || LeafError::Host {
        host: host.to_owned(),
    };
    let name = if let Ok(address) = host.parse::<IpAddr>() {
        SanType::IpAddress(address)
    } else {
        DnsName::try_from(host).map_err(|_| bad_host())?;
        SanType::DnsName(host.try_into().map_err(|_| bad_host())?)
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let common_name = if host.len() > LONGEST_NAME {
        "Squall leaf"
    } else {
        host
    };
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.subject_alt_names = vec![name];
    params.serial_number = Some(random_serial());
    params.not_before = validity.not_before;
    params.not_after = validity.not_after;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

#[cfg(test)]
mod tests;
