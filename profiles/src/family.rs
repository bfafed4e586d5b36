//! The four families of faults.

/// The four families of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// `network_faults`
    Network,
    /// `tool_faults`
    Tool,
    /// `llm_faults`
    Llm,
    /// `context_attacks`
    Context,
}

impl Family {
    /// All families, in order of precedence.
    pub const ALL: [Self; 4] = [Self::Network, Self::Tool, Self::Llm, Self::Context];

    /// A description, for the schema.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Network => "Faults of the transport, for any exchange.",
            Self::Tool => "Faults of tools.",
            Self::Llm => "Faults of model calls.",
            Self::Context => {
                "Attacks on what the model reads: a list, or a map from type to parameters."
            }
        }
    }

    /// The field that names a rule's mode.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Network | Self::Tool | Self::Llm => "mode",
            Self::Context => "type",
        }
    }

    /// The name of a rule's schema.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Self::Network => "NetworkFault",
            Self::Tool => "ToolFault",
            Self::Llm => "LlmFault",
            Self::Context => "ContextAttack",
        }
    }

    /// The name in files, API, journal and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network_faults",
            Self::Tool => "tool_faults",
            Self::Llm => "llm_faults",
            Self::Context => "context_attacks",
        }
    }
}
