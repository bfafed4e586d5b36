//! The daemon's readiness, for `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use squall_control_api::{
    BrokenFile, ListenerAddress, Readiness, Recordings, StoredJournal, StoredProfiles,
};
use squall_proxy::Proxy;

/// Listeners and broken files; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Listening {
    listeners: Arc<[ListenerAddress]>,
    broken: Arc<ArcSwap<Vec<BrokenFile>>>,
}

impl Listening {
    pub(super) fn new(proxy: &Proxy, api: SocketAddr) -> Self {
        let listener = |name: &str, address| ListenerAddress {
            name: name.to_owned(),
            address,
        };
        let own = [listener("proxy", proxy.address()), listener("api", api)];
        let routes = proxy.routes().iter();
        let routes = routes.map(|(name, address)| listener(name, *address));
        Self {
            listeners: own.into_iter().chain(routes).collect(),
            broken: Arc::default(),
        }
    }

    /// Replaces the list of broken files.
    pub(super) fn set_broken(&self, broken: Vec<BrokenFile>) {
        self.broken.store(Arc::new(broken));
    }

    /// The daemon is ready once its listeners are bound, which is before the API answers.
    pub(super) fn readiness(
        &self,
        profiles: &Arc<StoredProfiles>,
        journal: Option<&Arc<StoredJournal>>,
        recordings: &Arc<Recordings>,
    ) -> Arc<dyn Fn() -> Readiness + Send + Sync> {
        let (own, profiles) = (self.clone(), Arc::clone(profiles));
        let (journal, recordings) = (journal.cloned(), Arc::clone(recordings));
        Arc::new(move || {
            let mut broken = own.broken.load().to_vec();
            broken.extend(profiles.broken());
            broken.extend(journal.as_ref().and_then(|journal| journal.broken()));
            broken.extend(recordings.broken());
            Readiness {
                ready: true,
                listeners: own.listeners.to_vec(),
                broken,
            }
        })
    }
}

/// A broken file as a sentence; most errors contain file, line and column already.
pub(super) fn sentence(broken: &BrokenFile) -> String {
    if broken.error.starts_with(&broken.file) {
        broken.error.clone()
    } else {
        format!("{}: {}", broken.file, broken.error)
    }
}
