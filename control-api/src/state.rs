//! The state that all routes share.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use squall_profiles::library::Library;
use squall_proxy::chaos::Chaos;
use squall_proxy::metrics::Metrics;
use squall_proxy::recorder::Recorder;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::audit::AuditLog;
use crate::clients::Clients;
use crate::collected_traces::CollectedTraces;
use crate::fleet::Fleet;
use crate::readiness::Readiness;
use crate::recordings::Recordings;
use crate::runs::Runs;
use crate::store::Store;
use crate::stored_journal::StoredJournal;
use crate::stored_profiles::{StoredProfiles, view};
use crate::stored_tokens::StoredTokens;
use crate::switchers::Switchers;
use crate::tasks;
use crate::trust::Trust;

/// The state that all routes share; clones share it too.
#[derive(Clone)]
pub struct ApiState {
    /// Chaos in force.
    pub chaos: Arc<Chaos>,
    /// The store.
    pub store: Store,
    /// Profiles that were put by API.
    pub profiles: Arc<StoredProfiles>,
    /// Its place in the fleet; `None` without a shared store.
    pub fleet: Option<Arc<Fleet>>,
    /// Runs of agents.
    pub runs: Arc<Runs>,
    /// The programs that have sent requests to the proxy.
    pub clients: Arc<Clients>,
    /// Recordings, running and stored.
    pub recordings: Arc<Recordings>,
    /// The journal in memory.
    pub recorder: Recorder,
    /// The journal in the store; `None` when no exchanges are stored.
    pub journal: Option<Arc<StoredJournal>>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Access control.
    pub access: Arc<Access>,
    /// Tokens that were created by API, in the store.
    pub tokens: Arc<StoredTokens>,
    /// Traces that arrive span by span.
    pub traces: Arc<CollectedTraces>,
    /// The audit log.
    pub audit: Arc<AuditLog>,
    /// Who switched what is in force.
    pub switchers: Arc<Switchers>,
    /// What documents that arrive by API may do.
    pub trust: Arc<Trust>,
    /// Returns the interception CA's certificate as PEM. Called for each request: the CA may be rotated.
    pub ca_pem: Arc<dyn Fn() -> Bytes + Send + Sync>,
    /// Returns the daemon's readiness. Called for each request.
    pub readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
    /// Address of the proxy, for `/proxy.pac`.
    pub proxy: SocketAddr,
    /// Runtime that answers all but urgent requests. The runtime that accepts connections answers those.
    pub work: Handle,
    /// Cancelled when the daemon stops: streams of events end.
    pub stopping: CancellationToken,
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState")
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

impl ApiState {
    /// The profiles that a workspace sees.
    pub(crate) fn library(&self, workspace: &str) -> Library {
        view(&self.chaos.library(), workspace)
    }

    /// Waits until the journal holds all earlier exchanges, so that a client can read what it has just done.
    pub(crate) async fn settled(&self) {
        tasks::flushed(&self.recorder).await;
    }
}
