//! `squall.yaml`: from its text to the configuration of the daemon.
//!
//! ```text
//! text ──read──▶ Config ──flags──▶ Config ──check──▶ daemon
//! ```

mod exposure;
mod files;
mod private;
pub(crate) mod quantity;
mod read;
mod words;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use squall_control_api::access::TokenRole;
use squall_control_api::store::StorePlace;
use squall_control_api::{ExchangeChoice, JournalOptions, TrustConfig};
use squall_documents::Variables;
use squall_profiles::glob::Glob;
use squall_proxy::chaos::Halt;
use squall_proxy::config::ProxyConfig;

pub(crate) use self::read::schema;
pub(crate) use self::words::{address, unknown, upstream_url};
use crate::failure::Failure;
use crate::text::{self, environment};

/// The default file, which is optional.
pub(crate) const DEFAULT_FILE: &str = "squall.yaml";

/// The configuration of a daemon.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `$SQUALL_HOME`.
    pub(crate) home: PathBuf,
    /// Its file; empty without one.
    pub(crate) file: PathBuf,
    /// The data plane.
    pub(crate) proxy: ProxyConfig,
    /// Digest of the file's text, for the audit log; `None` without a file.
    pub(crate) digest: Option<String>,
    /// Whether a listener outside loopback may reach every destination.
    pub(crate) open: bool,
    /// The control API.
    pub(crate) api: ApiConfig,
    /// Directory of profile files.
    pub(crate) profiles: Option<PathBuf>,
    /// The chaos that is active from the start.
    pub(crate) chaos: ChaosConfig,
    /// Where its profile is named: `squall.yaml:7:18`, or a flag.
    pub(crate) chaos_place: Option<String>,
    /// The file of its profile, if it is given as a file.
    pub(crate) profile_file: Option<PathBuf>,
    /// The files that it names → where: `squall.yaml:7:18`.
    pub(super) places: BTreeMap<PathBuf, String>,
    /// Limits that end chaos.
    pub(crate) safety: Safety,
    /// What documents that arrive by API may do.
    pub(crate) trust: TrustConfig,
    /// The store.
    pub(crate) store: StoreConfig,
    /// Suites whose scenarios the daemon executes in spread runs.
    pub(crate) takes: Vec<Glob>,
    /// Regular expressions whose whole match is a secret.
    pub(crate) redact: Vec<String>,
    /// Whether the daemon runs for one command, possibly beside another daemon on the same store.
    pub(crate) passing: bool,
    /// Where Python modules of agents are searched. Default: the daemon's working directory.
    pub(crate) modules: PathBuf,
}

/// The store.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoreConfig {
    /// Its place. Default: a file in `$SQUALL_HOME`.
    pub(crate) place: StorePlace,
    /// Options of the journal in the store.
    pub(crate) journal: JournalOptions,
}

impl StoreConfig {
    /// In memory: nothing outlives the daemon.
    pub(crate) fn in_memory() -> Self {
        Self {
            place: StorePlace::Memory,
            journal: JournalOptions {
                exchanges: ExchangeChoice::None,
                ..JournalOptions::default()
            },
        }
    }
}

/// Limits that end chaos.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Safety {
    /// Longest time to live of an activation.
    pub(crate) ttl: Option<Duration>,
    /// Ends chaos after too many failures.
    pub(crate) halt: Option<Halt>,
}

/// Configuration of the control API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiConfig {
    /// Its address. Default `127.0.0.1:7071`.
    pub(crate) listen: SocketAddr,
    /// Its tokens; without any, all local clients have access, and only loopback is allowed.
    pub(crate) tokens: Vec<ConfiguredToken>,
}

/// A bearer token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredToken {
    /// Its name.
    pub(crate) name: String,
    /// Its role.
    pub(crate) role: TokenRole,
    /// Its workspace.
    pub(crate) workspace: String,
    /// The secret.
    pub(crate) secret: String,
}

impl std::fmt::Debug for ConfiguredToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfiguredToken")
            .field("name", &self.name)
            .field("role", &self.role)
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}

/// The chaos that is active from the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChaosConfig {
    /// A profile's name or file; absent or `none`: no chaos.
    pub(crate) profile: Option<String>,
    /// Random seed. Default 42.
    pub(crate) seed: Option<u64>,
}

impl Config {
    /// The defaults, with this home directory.
    pub(crate) fn with_home(home: PathBuf) -> Self {
        Self {
            proxy: ProxyConfig::with_home(home.clone()),
            store: StoreConfig {
                place: StorePlace::in_home(&home),
                journal: JournalOptions::default(),
            },
            home,
            file: PathBuf::new(),
            digest: None,
            open: false,
            api: ApiConfig {
                listen: SocketAddr::from(([127, 0, 0, 1], 7071)),
                tokens: Vec::new(),
            },
            profiles: None,
            chaos: ChaosConfig::default(),
            chaos_place: None,
            profile_file: None,
            places: BTreeMap::new(),
            safety: Safety::default(),
            trust: TrustConfig::default(),
            takes: Vec::new(),
            redact: Vec::new(),
            passing: false,
            modules: PathBuf::from("."),
        }
    }

    /// The defaults, overridden by a file.
    pub(crate) fn from_file(home: PathBuf, file: &Path) -> Result<Self, Failure> {
        let text = text::read(file).map_err(Failure::Usage)?;
        Self::from_text(home, file, &text, environment())
    }

    fn from_text(
        home: PathBuf,
        file: &Path,
        text: &str,
        variables: Variables<'_>,
    ) -> Result<Self, Failure> {
        let mut config = Self {
            file: file.to_owned(),
            ..Self::with_home(home)
        };
        read::read_over(&mut config, file, text, variables)?;
        config.digest = Some(squall_harness::digest::sha256(text));
        Ok(config)
    }
}

#[cfg(test)]
mod tests;
