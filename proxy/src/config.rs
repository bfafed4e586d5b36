//! The typed configuration of the data plane. The CLI parses `squall.yaml`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use squall_profiles::activation::Observe;
use squall_profiles::tools::ToolNames;

/// An invalid configuration: a sentence that names the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

/// The configuration of the proxy.
#[derive(Debug, Clone)]
pub struct ProxyConfig {
    /// Address of the main listener: forward proxy and prefix routes.
    pub listen: SocketAddr,
    /// Worker threads, at least 1; default: one per core.
    pub workers: usize,
    /// How proxy credentials are used.
    pub credentials: Credentials,
    /// Source of the interception CA.
    pub ca: CaSource,
    /// Which hosts are intercepted in forward mode.
    pub intercept: Intercept,
    /// Like curl's `--connect-to`: the `host:port` that the agent uses → the `host:port` to dial.
    pub connect_to: Vec<(String, String)>,
    /// PEM files with additional trusted roots for upstreams.
    pub upstream_ca: Vec<PathBuf>,
    /// A proxy that every upstream connection goes through: `http://[user:password@]host:port`.
    pub upstream_proxy: Option<String>,
    /// Allowed destinations: globs over host or `host:port`, or CIDR. Default `*`.
    pub allow: Vec<String>,
    /// Denied destinations; takes precedence over `allow`.
    pub deny: Vec<String>,
    /// Destinations that runs reach only after approval; names of suites next to hosts.
    pub approval: Vec<String>,
    /// Largest body that a body-level rule may buffer, bytes. Default 8 MiB.
    pub inspect_limit: u64,
    /// Default capture level of the journal, for activations that do not set it.
    pub observe: Observe,
    /// Limits for agents.
    pub limits: ProxyLimits,
    /// Timeouts for upstreams.
    pub upstream: UpstreamTimeouts,
    /// Adds a `squall-fault` header to responses that a fault changed.
    pub annotate: bool,
    /// Reverse routes.
    pub routes: Vec<ProxyRoute>,
    /// Tool names for upstreams, each with URL globs.
    pub tools: Vec<(String, Vec<String>)>,
    /// Names of agents, each with URL globs.
    pub agents: Vec<(String, Vec<String>)>,
    /// Model endpoints that are not recognised automatically.
    pub llm: Vec<LlmEndpoint>,
    /// Other listeners of this daemon (the control API); never valid as a destination.
    pub own_listeners: Vec<SocketAddr>,
}

squall_documents::named! {
    /// How the user name in proxy credentials is used.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Credentials {
        /// It names the scope; optional.
        Scope = "scope",
        /// It names the scope and is required (407 otherwise).
        Required = "required",
        /// It is ignored.
        None = "none",
    }
}

/// Source of the CA.
#[derive(Debug, Clone)]
pub enum CaSource {
    /// Created at first start in this directory (`$SQUALL_HOME`).
    Home(PathBuf),
    /// Provided by the user.
    Files {
        /// PEM certificate.
        cert: PathBuf,
        /// PEM private key.
        key: PathBuf,
    },
}

/// Hosts whose TLS is intercepted, as globs over the host name. `exclude` takes precedence.
#[derive(Debug, Clone)]
pub struct Intercept {
    /// Default `*`.
    pub hosts: Vec<String>,
    /// Tunnelled without interception; connection faults still apply.
    pub exclude: Vec<String>,
}

/// Limits for agents.
#[derive(Debug, Clone)]
pub struct ProxyLimits {
    /// Open connections; more wait in the kernel's queue. Default 20 000.
    pub connections: usize,
    /// Bytes of a request's head; more get 431. Default 256 KiB.
    pub header_bytes: usize,
    /// Fields in a request's head; more get 431. Default 200.
    pub header_count: usize,
    /// Longest time from the first to the last byte of a head. Default 30 s.
    pub header_timeout: Duration,
    /// Closes a connection after this time without a byte, unless an exchange waits for its
    /// upstream or a rule. Default 10 min.
    pub idle_timeout: Duration,
    /// Total bytes that body-level rules may buffer. Default 256 MiB.
    pub inspect_memory: u64,
}

/// Timeouts for upstreams.
#[derive(Debug, Clone)]
pub struct UpstreamTimeouts {
    /// Resolving and connecting, including TLS. Default 10 s.
    pub connect: Duration,
    /// From the request's end to the response's head. Default none: models may take minutes.
    pub response: Option<Duration>,
    /// Lifetime of an unused pooled connection. Default 10 s.
    pub idle: Duration,
}

/// A reverse route.
#[derive(Debug, Clone)]
pub struct ProxyRoute {
    /// Name for the log.
    pub name: String,
    /// How requests reach it.
    pub entry: RouteEntry,
    /// Base URL of the upstream; its path is prepended to the request's path.
    pub upstream: http::Uri,
    /// Scope of requests that name none.
    pub scope: Option<String>,
}

/// How requests reach a route.
#[derive(Debug, Clone)]
pub enum RouteEntry {
    /// A path prefix on the main listener; it is removed.
    Prefix(String),
    /// A separate listener.
    Listen(SocketAddr),
}

/// A model endpoint configured by the user.
#[derive(Debug, Clone)]
pub struct LlmEndpoint {
    /// Glob over the canonical URL.
    pub match_url: String,
    /// Name of the dialect; `None`: Squall recognises it.
    pub dialect: Option<String>,
    /// What to do with WebSockets of model calls.
    pub websocket: WebSocketCalls,
}

squall_documents::named! {
    /// What to do with an upgrade to a WebSocket of model calls.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum WebSocketCalls {
        /// Each call is an exchange.
        #[default]
        Fault = "fault",
        /// Its bytes pass unread.
        Pass = "pass",
        /// It is answered with 426, so that agents that can use HTTP do.
        Refuse = "refuse",
    }
}

impl ProxyConfig {
    /// The names of upstreams for rules.
    pub fn names(&self) -> Result<ToolNames, ConfigError> {
        let compiled = |place, names: &[(String, Vec<String>)]| {
            let names = names.iter();
            ToolNames::new(names.map(|(name, globs)| (name.as_str(), globs.as_slice())))
                .map_err(|error| ConfigError(format!("{place}: {}", error.message)))
        };
        let agents = compiled("agents", &self.agents)?;
        Ok(compiled("tools", &self.tools)?.with_agents(agents))
    }

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
            agents: Vec::new(),
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
