//! What went over the wire during one invocation of an agent.

use squall_journal::reach::Seen;

/// The exchanges of one invocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    seen: Seen,
}

impl Trace {
    /// Of what the proxy has seen.
    pub fn of(seen: Seen) -> Self {
        Self { seen }
    }
}
