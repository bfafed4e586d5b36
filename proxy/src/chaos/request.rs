//! What is asked to be put in force, and what is so where nobody says.

use std::sync::Arc;
use std::time::Duration;

use squall_documents::DocumentError;
use squall_journal::quota::OverQuota;
use squall_profiles::activation::Observe;
use squall_profiles::profile::Profile;
use squall_profiles::tools::ToolNames;

use super::{Halt, INLINE};

/// What is asked to be put in force.
#[derive(Debug, Clone)]
pub struct ChaosRequest {
    /// The rules.
    pub rules: RuleSource,
    /// Seed of every draw; absent: the config's.
    pub seed: Option<u64>,
    /// How long it holds, at least a millisecond; absent: until it is ended.
    pub ttl: Option<Duration>,
    /// Stands for the scope in the draws; absent: the scope's name.
    pub key: Option<String>,
    /// What the journal reads; absent: the config's.
    pub observe: Option<Observe>,
    /// Names for upstreams that hold for the scope as long, beside the config's.
    pub tools: ToolNames,
}

impl ChaosRequest {
    /// A profile by its name, everything else by default.
    pub fn profile(name: impl Into<String>) -> Self {
        Self {
            rules: RuleSource::Profile(name.into()),
            seed: None,
            ttl: None,
            key: None,
            observe: None,
            tools: ToolNames::default(),
        }
    }
}

/// Where the rules come from.
#[derive(Debug, Clone)]
pub enum RuleSource {
    /// A profile by its name; `none` for no chaos.
    Profile(String),
    /// A profile by its name, as a workspace sees it; `none` for no chaos.
    OfWorkspace {
        /// The workspace.
        workspace: String,
        /// The profile's name.
        profile: String,
    },
    /// Given with the request.
    Inline(Arc<Profile>),
}

impl RuleSource {
    /// The profile's name, or [`INLINE`] where it has none.
    pub fn name(&self) -> &str {
        match self {
            Self::Profile(name) | Self::OfWorkspace { profile: name, .. } => name,
            Self::Inline(profile) => profile.name.as_deref().unwrap_or(INLINE),
        }
    }
}

/// What is so unless a request says otherwise, and the limits that end chaos by themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defaults {
    /// Seed. Default 42.
    pub seed: u64,
    /// What the journal reads.
    pub observe: Observe,
    /// Longest time to live of any activation; `None`: no limit.
    pub ttl: Option<Duration>,
    /// When chaos is ended because too much goes wrong; `None`: never.
    pub halt: Option<Halt>,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            seed: 42,
            observe: Observe::default(),
            ttl: None,
            halt: None,
        }
    }
}

/// Why chaos could not be put in force.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// No profile has that name.
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    /// The profile cannot be compiled.
    #[error(transparent)]
    Profile(#[from] DocumentError),
    /// Too many scopes have chaos of their own.
    #[error(transparent)]
    Quota(#[from] OverQuota),
}
