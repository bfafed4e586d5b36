//! How the daemon does, for `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use squall_control_api::{Broken, Listening, Readiness};
use squall_proxy::Proxy;

/// What listens where, and which files are broken; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    listeners: Arc<[Listening]>,
    broken: Arc<ArcSwap<Vec<Broken>>>,
}

impl Health {
    pub(super) fn new(proxy: &Proxy, api: SocketAddr) -> Self {
        let listening = |name: &str, address| Listening {
            name: name.to_owned(),
            address,
        };
        let own = [listening("proxy", proxy.address()), listening("api", api)];
        let routes = proxy
            .routes()
            .iter()
            .map(|(name, address)| listening(name, *address));
        Self {
            listeners: own.into_iter().chain(routes).collect(),
            broken: Arc::default(),
        }
    }

    /// Replaces the list of broken files.
    pub(super) fn set_broken(&self, broken: Vec<Broken>) {
        self.broken.store(Arc::new(broken));
    }

    /// The daemon is ready from the moment its listeners are bound, before anybody can ask.
    /// `stored` is what the store holds and cannot be used.
    pub(super) fn readiness(&self, stored: &[Broken]) -> Readiness {
        Readiness {
            ready: true,
            listeners: self.listeners.to_vec(),
            broken: [&self.broken.load()[..], stored].concat(),
        }
    }
}

/// A broken file in a sentence; most errors name their file themselves, with line and column.
pub(super) fn sentence(broken: &Broken) -> String {
    if broken.error.starts_with(&broken.file) {
        broken.error.clone()
    } else {
        format!("{}: {}", broken.file, broken.error)
    }
}
