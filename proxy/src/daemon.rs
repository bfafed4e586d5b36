//! A running data plane: it binds listeners, starts workers, and drains them at shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;

use crate::body::buffer::Inspect;
use crate::chaos::Chaos;
use crate::compiled::{CompiledConfig, ListenerRole};
use crate::config::{ConfigError, ProxyConfig, RouteEntry};
use crate::descriptors;
use crate::engine::ProxyEngine;
use crate::faults::recall::Recall;
use crate::mcp::tools::ToolLists;
use crate::metrics::Metrics;
use crate::recorder::Recorder;
use crate::server::listener::BoundListener;
use crate::server::workers::WorkerThreads;
use crate::tls::{CertificateAuthority, LeafCache};
use crate::upstream::{self, OwnListeners};

/// The parts that data plane and control API share.
pub struct ProxyParts {
    /// The activations, by scope.
    pub chaos: Arc<Chaos>,
    /// Records exchanges.
    pub recorder: Recorder,
    /// The metrics for Prometheus.
    pub metrics: Arc<Metrics>,
    /// The interception CA.
    pub ca: Arc<CertificateAuthority>,
}

/// Why the data plane could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A listener could not bind its address.
    #[error("{who} cannot listen on {address}: {error}")]
    Listen {
        /// The listener: the proxy, or a route by its name.
        who: String,
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The system could not start a thread.
    #[error("cannot start a worker: {0}")]
    Worker(io::Error),
}

/// A running data plane.
pub struct Proxy {
    pub(crate) engine: Arc<ProxyEngine>,
    workers: Arc<WorkerThreads>,
    threads: Vec<JoinHandle<()>>,
    address: SocketAddr,
    routes: Vec<(String, SocketAddr)>,
    connections: usize,
}

impl Proxy {
    /// Binds every listener, then starts the workers. Connections are served from then on.
    pub fn start(config: ProxyConfig, parts: ProxyParts) -> Result<Self, StartError> {
        let main = bind("the proxy", config.listen, ListenerRole::Main)?;
        let address = main.address;
        let mut listeners = vec![main];
        let mut routes = Vec::new();
        for (place, route) in config.routes.iter().enumerate() {
            if let RouteEntry::Listen(wanted) = route.entry {
                let listener = bind(
                    &format!("route `{}`", route.name),
                    wanted,
                    ListenerRole::Route(place),
                )?;
                routes.push((route.name.clone(), listener.address));
                listeners.push(listener);
            }
        }
        let upstream_shared = upstream::Shared::new(&config)?;
        let (limits, workers) = (config.limits.clone(), config.workers.max(1));
        let most = descriptors::of_proxy(descriptors::limit());
        let connections = limits.connections.min(most);
        let inspect_limit = config.inspect_limit;
        let bound = listeners.iter().map(|one| (one.address, one.role));
        let mut compiled = CompiledConfig::new(config, bound.collect())?;
        compiled.config.listen = address;
        let engine = Arc::new(ProxyEngine {
            compiled: ArcSwap::from_pointee(compiled),
            chaos: parts.chaos,
            recorder: parts.recorder,
            leaves: LeafCache::new(parts.ca),
            metrics: parts.metrics,
            upstream_shared,
            connections: Arc::new(Semaphore::new(connections)),
            inspect: Inspect::new(inspect_limit, limits.inspect_memory),
            recall: Recall::new(inspect_limit, limits.inspect_memory),
            mcp_tools: ToolLists::default(),
        });
        let counting = Arc::clone(&engine);
        engine.metrics.ask(move || counting.figures());
        let (workers, threads) =
            WorkerThreads::start(&engine, workers).map_err(StartError::Worker)?;
        let proxy = Self {
            engine,
            workers,
            threads,
            address,
            routes,
            connections,
        };
        proxy.refuse_loops([]);
        for listener in listeners {
            proxy.workers.listen(listener);
        }
        Ok(proxy)
    }

    /// Address of the main listener, with the actual port if 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Names and addresses of routes with their own listener.
    pub fn routes(&self) -> &[(String, SocketAddr)] {
        &self.routes
    }

    /// Most open connections: as configured, or fewer if the process may open few descriptors.
    pub fn connections(&self) -> usize {
        self.connections
    }

    /// Decides allowed destinations, by the current configuration.
    pub fn upstreams(&self) -> Arc<upstream::Shared> {
        Arc::clone(&self.engine.upstream_shared)
    }

    /// Rejects forwarding to the proxy's own listeners and to `others` of this daemon.
    pub fn refuse_loops(&self, others: impl IntoIterator<Item = SocketAddr>) {
        let own = self
            .routes
            .iter()
            .map(|(_, address)| *address)
            .chain([self.address]);
        self.engine
            .upstream_shared
            .set_own_listeners(OwnListeners::new(own.chain(others)));
    }

    /// Applies another configuration to exchanges that start later. Returns the names of changed
    /// settings that need a restart; on an error nothing changes.
    pub fn reload(&self, mut config: ProxyConfig) -> Result<Vec<&'static str>, ConfigError> {
        let old = self.engine.compiled();
        let needs_restart = needs_restart(&old.config, &config);
        config.listen = self.address;
        let compiled = CompiledConfig::new(config, old.listeners.clone())?;
        self.engine.upstream_shared.reload(&compiled.config)?;
        self.engine.compiled.store(Arc::new(compiled));
        Ok(needs_restart)
    }

    /// Stops accepting, lets exchanges end for `grace`, then aborts the rest. Blocks.
    pub fn drain(self, grace: Duration) {
        self.workers.draining.cancel();
        let deadline = std::time::Instant::now() + grace;
        while !self.threads.iter().all(JoinHandle::is_finished)
            && std::time::Instant::now() < deadline
        {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        self.workers.stopping.cancel();
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a worker had panicked");
            }
        }
        self.engine.recorder.flush();
    }
}

fn bind(who: &str, address: SocketAddr, role: ListenerRole) -> Result<BoundListener, StartError> {
    BoundListener::bind(address, role).map_err(|error| StartError::Listen {
        who: who.to_owned(),
        address,
        error,
    })
}

/// Settings that only a restart changes.
fn needs_restart(old: &ProxyConfig, new: &ProxyConfig) -> Vec<&'static str> {
    let listens = |config: &ProxyConfig| -> Vec<(usize, SocketAddr)> {
        let own = config
            .routes
            .iter()
            .enumerate()
            .filter_map(|(place, route)| match route.entry {
                RouteEntry::Listen(address) => Some((place, address)),
                RouteEntry::Prefix(_) => None,
            });
        own.collect()
    };
    let mut changed = Vec::new();
    // Port 0 matches any assigned port.
    let same =
        new.listen == old.listen || (new.listen.port() == 0 && new.listen.ip() == old.listen.ip());
    if !same {
        changed.push("proxy.listen");
    }
    if listens(old) != listens(new) {
        changed.push("routes with `listen`");
    }
    if format!("{:?}", old.ca) != format!("{:?}", new.ca) {
        changed.push("proxy.ca");
    }
    if old.limits.connections != new.limits.connections {
        changed.push("proxy.limits.connections");
    }
    if old.inspect_limit != new.inspect_limit
        || old.limits.inspect_memory != new.limits.inspect_memory
    {
        changed.push("proxy.inspect_limit, proxy.limits.inspect_memory");
    }
    changed
}
