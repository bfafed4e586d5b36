//! What all workers share: the configuration in force, chaos, the journal's queue, certificates.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;

use crate::body::buffer::Inspect;
use crate::chaos::Chaos;
use crate::compiled::CompiledConfig;
use crate::faults::recall::Recall;
use crate::mcp::tools::ToolLists;
use crate::metrics::{FigureSource, Metrics};
use crate::recorder::Recorder;
use crate::tls::LeafCache;
use crate::upstream;

/// What all workers share.
pub(crate) struct Engine {
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

impl Engine {
    /// The configuration in force; who holds it keeps it, whatever is loaded meanwhile.
    pub(crate) fn compiled(&self) -> Arc<CompiledConfig> {
        self.compiled.load_full()
    }
}

/// The figures that certificates and upstream connections keep themselves.
pub(crate) struct Figures(pub(crate) Arc<Engine>);

impl std::fmt::Debug for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Figures")
    }
}

impl FigureSource for Figures {
    fn leaves_minted(&self) -> u64 {
        self.0.leaves.minted()
    }

    fn upstream_connections(&self) -> u64 {
        self.0.upstream_shared.counters().open()
    }
}
