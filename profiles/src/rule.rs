//! A rule: a match, a trigger and a fault.

/// One rule of a profile, checked and typed.
#[derive(Debug)]
pub struct Rule {
    /// Unique in its profile: given, or mode and eight hex digits.
    pub id: String,
    /// Name of the profile it was written in.
    pub profile: String,
    /// `network_faults`, `tool_faults`, `llm_faults` or `context_attacks`.
    pub family: Family,
    /// The mode as written in files.
    pub mode: &'static str,
}

impl Rule {
    /// The fault's parameters as they are used, defaults filled in: for the journal.
    pub fn parameters(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}

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
