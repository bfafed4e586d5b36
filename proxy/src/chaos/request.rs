//! Requests to activate chaos, and the defaults for them.

use std::sync::Arc;
use std::time::Duration;

use squall_documents::DocumentError;
use squall_journal::quota::OverQuota;
use squall_profiles::activation::Observe;
use squall_profiles::profile::Profile;
use squall_profiles::tools::ToolNames;

use super::{Halt, INLINE};

/// A request to activate chaos.
#[derive(Debug, Clone)]
pub struct ChaosRequest {
    /// The rules.
    pub rules: RuleSource,
    /// Seed of draws; `None`: the config's.
    pub seed: Option<u64>,
    /// Time to live, at least a millisecond; `None`: until it is ended.
    pub ttl: Option<Duration>,
    /// Replaces the scope's name in draws; `None`: the scope's name.
    pub key: Option<String>,
    /// Capture level of the journal; `None`: the config's.
    pub observe: Option<Observe>,
    /// Additional tool names for upstreams, for the lifetime of the activation.
    pub tools: ToolNames,
}

impl ChaosRequest {
    /// A profile by its name, with defaults for everything else.
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

/// Source of the rules.
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
    /// Inline rules.
    Inline(Arc<Profile>),
    /// Some firings of other rules: each a rule's id and the number of one of its matching calls.
    Limited {
        /// The rules.
        rules: Box<Self>,
        /// The firings.
        firings: Vec<(String, u64)>,
    },
}

impl RuleSource {
    /// The profile's name, or [`INLINE`] without one.
    pub fn name(&self) -> &str {
        match self {
            Self::Profile(name) | Self::OfWorkspace { profile: name, .. } => name,
            Self::Inline(profile) => profile.name.as_deref().unwrap_or(INLINE),
            Self::Limited { rules, .. } => rules.name(),
        }
    }
}

/// Defaults for requests, and the limits that end chaos automatically.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defaults {
    /// Seed. Default 42.
    pub seed: u64,
    /// Capture level of the journal.
    pub observe: Observe,
    /// Longest time to live of any activation; `None`: no limit.
    pub ttl: Option<Duration>,
    /// Limits of the safety halt; `None`: no halt.
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

/// Why chaos could not be activated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// No profile has that name.
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    /// The profile cannot be compiled.
    #[error(transparent)]
    Profile(#[from] DocumentError),
    /// Too many scopes have their own activation.
    #[error(transparent)]
    Quota(#[from] OverQuota),
}
