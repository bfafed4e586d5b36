//! The four families of faults.

squall_documents::named! {
    /// The four families of faults.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Family {
        /// `network_faults`
        Network = "network_faults",
        /// `tool_faults`
        Tool = "tool_faults",
        /// `llm_faults`
        Llm = "llm_faults",
        /// `context_attacks`
        Context = "context_attacks",
    }
}

impl Family {
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
}
