//! The daemon's readiness, for `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use squall_control_api::{Broken, Listening, Readiness};
use squall_proxy::Proxy;

/// Listeners and broken files; clones share them.
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

    /// The daemon is ready once its listeners are bound, which is before the API answers. `stored`: unusable
    /// objects of the store.
    pub(super) fn readiness(&self, stored: &[Broken]) -> Readiness {
        Readiness {
            ready: true,
            listeners: self.listeners.to_vec(),
            broken: [&self.broken.load()[..], stored].concat(),
        }
    }
}

/// A broken file as a sentence; most errors contain file, line and column already.
pub(super) fn sentence(broken: &Broken) -> String {
    if broken.error.starts_with(&broken.file) {
        broken.error.clone()
    } else {
        format!("{}: {}", broken.file, broken.error)
    }
}
