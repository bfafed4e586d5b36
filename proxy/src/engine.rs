//! State that all workers share: configuration, chaos, the journal's queue and certificates.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;

use crate::body::buffer::Inspect;
use crate::chaos::Chaos;
use crate::compiled::CompiledConfig;
use crate::faults::recall::Recall;
use crate::mcp::tools::ToolLists;
use crate::metrics::{Figures, Metrics};
use crate::recorder::Recorder;
use crate::tls::LeafCache;
use crate::upstream;

/// State that all workers share.
pub(crate) struct ProxyEngine {
    pub(crate) compiled: ArcSwap<CompiledConfig>,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) leaves: LeafCache,
    pub(crate) upstream_shared: Arc<upstream::Shared>,
    /// One permit per open connection.
    pub(crate) connections: Arc<Semaphore>,
    /// Memory limits of body-level rules, per body and in total.
    pub(crate) inspect: Inspect,
    /// Responses stored for `stale` and `swapped`.
    pub(crate) recall: Recall,
    /// Tool lists of MCP servers.
    pub(crate) mcp_tools: ToolLists,
}

impl ProxyEngine {
    /// The current configuration. A reload does not change the returned one.
    pub(crate) fn compiled(&self) -> Arc<CompiledConfig> {
        self.compiled.load_full()
    }

    /// Counters kept by certificates and upstream connections.
    pub(crate) fn figures(&self) -> Figures {
        Figures {
            leaves_minted: self.leaves.minted(),
            upstream_connections: self.upstream_shared.counters().open(),
        }
    }
}
