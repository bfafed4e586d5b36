//! What all workers share: the configuration in force, chaos, the journal's queue, certificates.

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

/// What all workers share.
pub(crate) struct ProxyEngine {
    pub(crate) compiled: ArcSwap<CompiledConfig>,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) leaves: LeafCache,
    pub(crate) upstream_shared: Arc<upstream::Shared>,
    /// One permit per connection that may be open.
    pub(crate) connections: Arc<Semaphore>,
    /// How much body-level rules may hold back, each and in all.
    pub(crate) inspect: Inspect,
    /// Answers kept for `stale` and `swapped`.
    pub(crate) recall: Recall,
    /// What MCP servers have listed.
    pub(crate) mcp_tools: ToolLists,
}

impl ProxyEngine {
    /// The configuration in force; who holds it keeps it, whatever is loaded meanwhile.
    pub(crate) fn compiled(&self) -> Arc<CompiledConfig> {
        self.compiled.load_full()
    }

    /// What certificates and upstream connections count themselves.
    pub(crate) fn figures(&self) -> Figures {
        Figures {
            leaves_minted: self.leaves.minted(),
            upstream_connections: self.upstream_shared.counters().open(),
        }
    }
}
