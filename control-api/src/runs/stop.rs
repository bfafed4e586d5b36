//! Why a run is stopped early.

/// Why a run is stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// A client cancelled it.
    Cancelled,
    /// It took longer than `safety.ttl` allows.
    Ttl(String),
    /// It waited too long before it began; for what.
    Waited(&'static str),
    /// `safety.halt`: too many failures.
    Halt(String),
    /// A client ended or replaced its chaos.
    Chaos(String),
    /// The daemon is stopping.
    Stopping,
    /// Another daemon marked it as errored, because this one had not renewed its lease.
    Lease,
    /// The run that it is part of is over, or another daemon executes the scenario.
    Unneeded,
}

/// The proxy's reason when an activation expires.
const TIME_IS_OVER: &str = "its time to live is over";

/// Prefix of the reasons of `safety.halt`.
const HALT: &str = "safety.halt";

/// The reason for closing the scopes of a finished run.
pub(super) const OVER: &str = "the run is over";

/// The proxy's reason when the daemon stops.
pub(crate) const STOPPING: &str = "the daemon is stopping";

impl StopReason {
    /// From the proxy's reason for the end of its chaos.
    pub(crate) fn of_chaos(why: &str) -> Self {
        match why {
            STOPPING => Self::Stopping,
            TIME_IS_OVER => {
                Self::Ttl("safety.ttl: its chaos was in force for as long as it may be".to_owned())
            }
            halt if halt.starts_with(HALT) => Self::Halt(halt.to_owned()),
            other => Self::Chaos(other.to_owned()),
        }
    }

    /// The label in metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Cancelled => "cancel",
            Self::Ttl(_) => "ttl",
            Self::Waited(_) => "waited",
            Self::Halt(_) => "halt",
            Self::Chaos(_) => "chaos",
            Self::Stopping => "stopping",
            Self::Lease => "lease",
            Self::Unneeded => "unneeded",
        }
    }

    /// The reason, as text.
    pub(crate) fn why(&self) -> &str {
        match self {
            Self::Cancelled => "it was cancelled",
            Self::Waited(why) => why,
            Self::Ttl(why) | Self::Halt(why) | Self::Chaos(why) => why,
            Self::Stopping => STOPPING,
            Self::Unneeded => {
                "the run that it is part of is over, or another daemon executes the scenario"
            }
            Self::Lease => "another daemon has given it up: this one did not renew it for too long",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_proxy_says_tells_who_ended_a_run() {
        for (why, label) in [
            ("its time to live is over", "ttl"),
            ("safety.halt: 31 faults within 60 s", "halt"),
            ("the daemon is stopping", "stopping"),
            ("all chaos was ended", "chaos"),
        ] {
            assert_eq!(StopReason::of_chaos(why).label(), label, "{why}");
        }
    }
}
