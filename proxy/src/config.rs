//! What the data plane is told, typed. Reading `squall.yaml` is the command's job.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use squall_profiles::activation::Observe;

/// Everything the proxy needs to run.
#[derive(Debug, Clone)]
pub struct ProxyConfig {
    /// Address of the main listener: forward proxy and prefix routes.
    pub listen: SocketAddr,
    /// Threads that carry traffic, at least 1; default: one per core.
    pub workers: usize,
    /// What proxy credentials mean.
    pub credentials: Credentials,
    /// Where the interception CA comes from.
    pub ca: CaSource,
    /// Which hosts are intercepted in forward mode.
    pub intercept: Intercept,
    /// Like curl's `--connect-to`: `host:port` as the agent names it → `host:port` that is dialled.
    pub connect_to: Vec<(String, String)>,
    /// PEM files with roots trusted upstream beside the system's.
    pub upstream_ca: Vec<PathBuf>,
    /// A proxy that every upstream connection goes through: `http://[user:password@]host:port`.
    pub upstream_proxy: Option<String>,
    /// Destinations that may be reached: globs over host or `host:port`, or CIDR. Default `*`.
    pub allow: Vec<String>,
    /// Destinations that may not; wins over `allow`.
    pub deny: Vec<String>,
    /// Destinations that runs reach only once somebody has approved them; beside hosts, names of suites.
    pub approval: Vec<String>,
    /// Largest body a body-level rule may hold back, bytes. Default 8 MiB.
    pub inspect_limit: u64,
    /// What the journal reads of traffic when the activation does not say.
    pub observe: Observe,
    /// Bounds on what agents may take.
    pub limits: ProxyLimits,
    /// Bounds on what upstreams may take.
    pub upstream: UpstreamTimeouts,
    /// Adds a `squall-fault` header to answers that a fault touched.
    pub annotate: bool,
    /// Reverse routes.
    pub routes: Vec<ProxyRoute>,
    /// Names for upstreams.
    pub tools: Vec<(String, Vec<String>)>,
    /// Model endpoints that cannot be recognised by themselves.
    pub llm: Vec<LlmEndpoint>,
    /// Listeners of this daemon besides the proxy's own (the control API): never a destination.
    pub own_listeners: Vec<SocketAddr>,
}

/// What a user name in proxy credentials means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// It names the scope, if given.
    Scope,
    /// It names the scope and must be given (407 otherwise).
    Required,
    /// It is ignored.
    None,
}

/// Where the CA comes from.
#[derive(Debug, Clone)]
pub enum CaSource {
    /// Made at first start in this directory (`$SQUALL_HOME`).
    Home(PathBuf),
    /// Brought by the user.
    Files {
        /// PEM certificate.
        cert: PathBuf,
        /// PEM private key.
        key: PathBuf,
    },
}

/// Which hosts' TLS is intercepted; globs over the host name. `exclude` wins.
#[derive(Debug, Clone)]
pub struct Intercept {
    /// Default `*`.
    pub hosts: Vec<String>,
    /// Tunnelled untouched; connection faults still apply.
    pub exclude: Vec<String>,
}

/// Bounds on what agents may take.
#[derive(Debug, Clone)]
pub struct ProxyLimits {
    /// Open connections; further ones wait in the kernel's queue. Default 20 000.
    pub connections: usize,
    /// Bytes of a request's head. Default 256 KiB; over it 431.
    pub header_bytes: usize,
    /// Fields in a request's head. Default 200; over it 431.
    pub header_count: usize,
    /// Time for a head to arrive once it has begun. Default 30 s.
    pub header_timeout: Duration,
    /// Time without a byte in either direction after which a connection is closed, unless an exchange
    /// waits for its upstream, or for a rule. Default 10 min.
    pub idle_timeout: Duration,
    /// Bytes held back by body-level rules in all. Default 256 MiB.
    pub inspect_memory: u64,
}

/// Bounds on what upstreams may take.
#[derive(Debug, Clone)]
pub struct UpstreamTimeouts {
    /// Resolving and connecting, TLS included. Default 10 s.
    pub connect: Duration,
    /// From the request's end to the answer's head. Default none: models think for minutes.
    pub response: Option<Duration>,
    /// How long an unused pooled connection is kept. Default 10 s.
    pub idle: Duration,
}

/// A reverse route.
#[derive(Debug, Clone)]
pub struct ProxyRoute {
    /// Name for the log.
    pub name: String,
    /// How requests reach it.
    pub entry: RouteEntry,
    /// Base URL they go to; a path here is put before the request's.
    pub upstream: http::Uri,
    /// Scope of its traffic when the request names none.
    pub scope: Option<String>,
}

/// How requests reach a route.
#[derive(Debug, Clone)]
pub enum RouteEntry {
    /// A path prefix on the main listener, stripped.
    Prefix(String),
    /// A listener of its own.
    Listen(SocketAddr),
}

/// A model endpoint named by the user.
#[derive(Debug, Clone)]
pub struct LlmEndpoint {
    /// Glob over the canonical URL.
    pub match_url: String,
    /// Dialect's name.
    pub dialect: String,
}

impl ProxyConfig {
    /// The defaults, with the CA in `home`.
    pub fn with_home(home: PathBuf) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            credentials: Credentials::Scope,
            ca: CaSource::Home(home),
            intercept: Intercept {
                hosts: vec!["*".into()],
                exclude: Vec::new(),
            },
            connect_to: Vec::new(),
            upstream_ca: Vec::new(),
            upstream_proxy: None,
            allow: vec!["*".into()],
            deny: vec!["169.254.169.254".into(), "metadata.google.internal".into()],
            approval: Vec::new(),
            inspect_limit: 8 << 20,
            observe: Observe::Model,
            limits: ProxyLimits::default(),
            upstream: UpstreamTimeouts::default(),
            annotate: false,
            routes: Vec::new(),
            tools: Vec::new(),
            llm: Vec::new(),
            own_listeners: Vec::new(),
        }
    }
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            header_bytes: 256 << 10,
            header_count: 200,
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_mins(10),
            inspect_memory: 256 << 20,
        }
    }
}

impl Default for UpstreamTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            response: None,
            idle: Duration::from_secs(10),
        }
    }
}
