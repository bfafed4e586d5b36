//! The profiles that are part of Squall.

use crate::profile::{self, Profile};

/// The text of each file of `profiles/src/builtin`, with its name.
macro_rules! builtin {
    ($($name:literal)*) => { [$(
        ($name, include_str!(concat!("../builtin/", $name, ".yaml")))
    ),*] };
}

/// Names and texts.
const ALL: [(&str, &str); 12] = builtin! {
    "api_outage"
    "brownout"
    "cascading_failure"
    "degraded_llm"
    "flaky_network"
    "high_latency"
    "hostile_tools"
    "indirect_injection"
    "mid_stream_failure"
    "model_version_drift"
    "provider_overload"
    "rate_limit_storm"
};

/// All of them, with their names.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Profile)> {
    ALL.iter().map(|(name, text)| {
        let profile = profile::parse(&format!("{name}.yaml"), text);
        (*name, profile.expect("built-in profiles are sound"))
    })
}
