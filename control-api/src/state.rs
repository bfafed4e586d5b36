//! What the routes share.

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
use crate::readiness::Readiness;
use crate::recordings::Recordings;
use crate::runs::Runs;
use crate::store::DEFAULT_WORKSPACE;
use crate::stored_documents::StoredDocuments;
use crate::stored_journal::StoredJournal;
use crate::stored_profiles::StoredProfiles;
use crate::stored_tokens::StoredTokens;
use crate::tasks;
use crate::trust::Trust;

/// What the routes share; clones share it too.
#[derive(Clone)]
pub struct ApiState {
    /// What is in force.
    pub chaos: Arc<Chaos>,
    /// Profiles that were put, in the store.
    pub profiles: Arc<StoredProfiles>,
    /// Suites and contracts that were put, in the store.
    pub documents: Arc<StoredDocuments>,
    /// What is demanded of agents, tried and judged.
    pub runs: Arc<Runs>,
    /// Traffic that is recorded, and what was.
    pub recordings: Arc<Recordings>,
    /// What went through.
    pub recorder: Recorder,
    /// What of it is in the store; `None` when nothing is kept there.
    pub journal: Option<Arc<StoredJournal>>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Who may ask.
    pub access: Arc<Access>,
    /// Tokens that were made by the API, in the store.
    pub tokens: Arc<StoredTokens>,
    /// Who changed what.
    pub audit: Arc<AuditLog>,
    /// What documents that arrive may do.
    pub trust: Arc<Trust>,
    /// The interception CA's certificate as PEM, asked for each time: it may be rotated.
    pub ca_pem: Arc<dyn Fn() -> Bytes + Send + Sync>,
    /// How the daemon does, asked for each time.
    pub readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
    /// Where the proxy listens, for `/proxy.pac`.
    pub proxy: SocketAddr,
    /// Answers all requests but the urgent ones, which the runtime answers that serves the API.
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
    /// The profiles that a workspace knows.
    pub(crate) fn library(&self, workspace: &str) -> Library {
        let library = self.chaos.library();
        match workspace {
            DEFAULT_WORKSPACE => library,
            workspace => library.of_workspace(workspace),
        }
    }

    /// Waits until everything that was written down before is in the journal, so that a client reads
    /// what it has just done.
    pub(crate) async fn settled(&self) {
        tasks::flushed(&self.recorder).await;
    }
}
