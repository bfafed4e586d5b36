//! The edges of a crew.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What crossed an edge: messages to an agent, and all calls of a known one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CrewEdge {
    /// The calling agent; `null` if it is unknown.
    pub from: Option<String>,
    /// The called agent or tool by its name, else the model, else the host.
    pub to: String,
    /// Calls, retries included.
    pub calls: u64,
    /// Calls that failed, as the caller sees it.
    pub failed: u64,
    /// Faults that were injected.
    pub faults: u64,
}

impl CrewEdge {
    /// The name of the calling agent, `?` if it is unknown.
    pub fn caller(&self) -> &str {
        self.from.as_deref().unwrap_or("?")
    }
}
