//! The parts of a daemon, each built from its section of the configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use squall_control_api::DaemonId;
use squall_control_api::access::Token;
use squall_control_api::store::{Store, StorePlace};
use squall_harness::agents::pointing::ProxyVariables;
use squall_harness::dial::{Destinations, Dialler};
use squall_harness::reach::Pending;
use squall_harness::runner::Executor;
use squall_journal::redact::Redactor;
use squall_profiles::library::Library;
use squall_profiles::tools::ToolNames;
use squall_proxy::Proxy;
use squall_proxy::chaos::{Chaos, ChaosRequest, DEFAULT_SCOPE, Defaults, NO_CHAOS};
use squall_proxy::metrics::Metrics;
use squall_proxy::recorder::{Recorder, RecorderOptions};
use squall_proxy::tls::CertificateAuthority;
use squall_proxy::upstream::{self, HostPatterns, Scheme, UpstreamOrigin};

use crate::config::{Config, unknown};
use crate::failure::Failure;
use crate::pointing;

/// Default random seed.
const SEED: u64 = 42;

/// The journal, with the configuration's secrets redacted before anything is stored.
pub(super) fn recorder(config: &Config, metrics: &Arc<Metrics>) -> Result<Recorder, Failure> {
    let redactor = Redactor::with_patterns(&config.redact)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let options = RecorderOptions {
        redactor,
        ..RecorderOptions::default()
    };
    Recorder::start(options, Arc::clone(metrics))
        .map_err(|error| Failure::could_not("the journal's thread", error))
}

/// The CA's certificate, for clients of the API.
pub(super) fn ca_pem(ca: &CertificateAuthority) -> Arc<dyn Fn() -> Bytes + Send + Sync> {
    let pem = Bytes::copy_from_slice(ca.pem().as_bytes());
    Arc::new(move || pem.clone())
}

/// The names that rules can use for upstreams.
pub(super) fn tool_names(config: &Config) -> Result<ToolNames, Failure> {
    let names = config.proxy.names();
    names.map_err(|error| Failure::Usage(error.to_string()))
}

/// Suites and hosts that need approval.
pub(super) fn approval(config: &Config) -> Result<HostPatterns, Failure> {
    HostPatterns::new(&config.proxy.approval)
        .map_err(|error| Failure::Usage(format!("approval: {error}")))
}

/// Defaults of requests to activate chaos.
pub(super) fn defaults(config: &Config) -> Defaults {
    Defaults {
        seed: config.chaos.seed.unwrap_or(SEED),
        observe: config.proxy.observe,
        ttl: config.safety.ttl,
        halt: config.safety.halt,
    }
}

/// Activates the configuration's profile in the default scope.
pub(super) fn put_in_force(chaos: &Chaos, config: &Config) -> Result<(), Failure> {
    check_profile(chaos, config)?;
    let library = chaos.library();
    let Some(name) = active_profile(config, &library) else {
        return Ok(());
    };
    match chaos.put(DEFAULT_SCOPE, ChaosRequest::profile(name)) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Usage(error.to_string())),
    }
}

/// Checks that the configuration's profile exists.
pub(super) fn check_profile(chaos: &Chaos, config: &Config) -> Result<(), Failure> {
    let library = chaos.library();
    let Some(name) = active_profile(config, &library) else {
        return Ok(());
    };
    if library.get(name).is_some() {
        return Ok(());
    }
    let listed = library.list();
    let names: Vec<&str> = listed.iter().map(|profile| profile.name.as_str()).collect();
    let place = config
        .chaos_place
        .as_ref()
        .map(|place| format!("{place}: "))
        .unwrap_or_default();
    Err(Failure::Usage(format!(
        "{place}{}",
        unknown("profile", name, &names)
    )))
}

/// The profile that the configuration activates.
fn active_profile<'a>(config: &'a Config, library: &'a Library) -> Option<&'a str> {
    let name = config.chaos.profile.as_deref();
    let of_file = |file: &PathBuf| library.name_of_file(&file.display().to_string());
    let name = config.profile_file.as_ref().and_then(of_file).or(name);
    name.filter(|name| *name != NO_CHAOS)
}

/// The configuration's tokens for the control API.
pub(super) fn tokens(config: &Config) -> Vec<Token> {
    let tokens = config.api.tokens.iter();
    tokens
        .map(|token| {
            Token::new(&token.name, token.role, &token.secret).of_workspace(&token.workspace)
        })
        .collect()
}

/// The daemon's id among those that share its store: the same after a restart, unless another daemon holds its
/// home. Commands with the same home find its API by it.
pub(super) fn daemon_id(config: &Config, api: SocketAddr) -> Result<DaemonId, Failure> {
    let home = match config.store.place {
        // Its data end with it, so it needs no lasting id.
        StorePlace::Memory => None,
        // With the id of the home, the home's daemon would take these runs for its own.
        _ if config.passing => None,
        StorePlace::Sqlite(_) | StorePlace::Postgres { .. } => Some(config.home.as_path()),
    };
    let written = DaemonId::of(home).and_then(|mut id| {
        id.write_address(reachable(api))?;
        Ok(id)
    });
    written.map_err(|error| Failure::could_not("the daemon's id", error))
}

/// The store, as its owner; a daemon for one command opens it beside the owner.
pub(super) async fn store(config: &Config) -> Result<Store, Failure> {
    let place = config.store.place.clone();
    let opened = if config.passing {
        Store::open(place).await
    } else {
        Store::move_in(place).await
    };
    Ok(opened?)
}

/// The executor of runs.
pub(super) fn executor(ca: &Arc<CertificateAuthority>, config: &Config, proxy: &Proxy) -> Executor {
    let authority = reachable(proxy.address()).to_string();
    let (ca, home, bundle) = (Arc::clone(ca), config.home.clone(), OnceLock::new());
    // The bundle is created when the first agent is started, since most daemons start none.
    let variables: ProxyVariables = Arc::new(move |scope| {
        let bundle = bundle.get_or_init(|| match ca.bundle(&home) {
            Ok(bundle) => bundle.path,
            Err(error) => {
                tracing::error!("agents that are started here cannot trust the proxy: {error}");
                PathBuf::new()
            }
        });
        pointing::variables(&authority, scope, bundle)
    });
    Executor {
        variables,
        dialler: dialler(proxy.upstreams()),
        folder: config.modules.clone(),
    }
}

/// Reaches the destinations that a proxy may reach.
pub(crate) fn dialler(shared: Arc<upstream::Shared>) -> Dialler {
    Dialler::new(Arc::new(OfProxy {
        shared,
        unapproved: false,
    }))
}

/// The proxy's rules for destinations, for suites.
struct OfProxy {
    shared: Arc<upstream::Shared>,
    /// For runs without approval.
    unapproved: bool,
}

impl OfProxy {
    fn origin(&self, host: &str, port: u16) -> UpstreamOrigin {
        UpstreamOrigin::new(Scheme::Http, host, port).unapproved(self.unapproved)
    }
}

impl Destinations for OfProxy {
    fn check(&self, host: &str, port: u16) -> Result<(), String> {
        let checked = self.shared.check(&self.origin(host, port));
        checked.map_err(|error| error.to_string())
    }

    fn addresses<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pending<'a, Result<Vec<SocketAddr>, String>> {
        Box::pin(async move {
            let found = self.shared.addresses(&self.origin(host, port)).await;
            found.map_err(|error| error.to_string())
        })
    }

    fn unapproved(&self) -> Arc<dyn Destinations> {
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            unapproved: true,
        })
    }
}

/// The address at which local programs reach a listener on `address`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The control API's listener, for another runtime to accept from, and its address with the port it really has.
pub(super) async fn listen(
    address: SocketAddr,
) -> Result<(std::net::TcpListener, SocketAddr), Failure> {
    let bound = async {
        let listener = tokio::net::TcpListener::bind(address).await?.into_std()?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|error: std::io::Error| {
        Failure::could_not(
            format!("the control API cannot listen on {address}"),
            format!("{error}; choose another address with `--api`, port 0 takes a free one"),
        )
    })
}
