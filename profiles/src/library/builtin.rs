//! The profiles that are part of Squall: each is read when it is first asked for, since most daemons
//! use one or none.

use std::sync::{Arc, OnceLock};

use crate::profile::{self, Profile};

/// A profile that is part of Squall.
struct Builtin {
    name: &'static str,
    text: &'static str,
    read: OnceLock<Arc<Profile>>,
}

/// A file of `profiles/src/builtin`.
macro_rules! builtin {
    ($($name:literal)*) => { [$( Builtin {
        name: $name,
        text: include_str!(concat!("../builtin/", $name, ".yaml")),
        read: OnceLock::new(),
    } ),*] };
}

/// All of them, in order of their names.
static ALL: [Builtin; 12] = builtin! {
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

/// Their names.
pub(super) fn names<'a>() -> impl Iterator<Item = &'a str> {
    ALL.iter().map(|builtin| builtin.name)
}

/// The one of that name.
pub(super) fn get(name: &str) -> Option<&'static Arc<Profile>> {
    let builtin = ALL.iter().find(|builtin| builtin.name == name)?;
    Some(builtin.read.get_or_init(|| builtin.parse()))
}

impl Builtin {
    fn parse(&self) -> Arc<Profile> {
        let file = format!("{}.yaml", self.name);
        let profile = profile::parse(&file, self.text).expect("built-in profiles are sound");
        Arc::new(profile)
    }
}
