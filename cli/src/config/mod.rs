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

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use std::time::Duration;

use squall_control_api::access::TokenRole;
use squall_control_api::store::StorePlace;
use squall_control_api::{ExchangeChoice, JournalOptions, TrustConfig};
use squall_documents::Variables;
use squall_proxy::chaos::Halt;
use squall_proxy::config::ProxyConfig;

use self::files::Places;
pub(crate) use self::read::schema;
pub(crate) use self::words::{address, unknown, upstream_url};
use crate::text::{self, environment};

/// The default file, which is optional.
pub(crate) const DEFAULT_FILE: &str = "squall.yaml";

/// The configuration of a daemon.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `$SQUALL_HOME`.
    pub(crate) home: PathBuf,
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
    /// Chaos in force from the start.
    pub(crate) chaos: ChaosConfig,
    /// Where its profile is named: `squall.yaml:7:18`, or a flag.
    pub(crate) chaos_place: Option<String>,
    /// The file of its profile, if it is given as a file.
    pub(crate) profile_file: Option<PathBuf>,
    /// Places of the file names in it.
    pub(crate) places: Places,
    /// Limits that end chaos.
    pub(crate) safety: Safety,
    /// What documents that arrive by API may do.
    pub(crate) trust: TrustConfig,
    /// The store.
    pub(crate) store: StoreConfig,
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
                kept: ExchangeChoice::None,
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

/// Chaos in force from the start.
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
            places: Places::default(),
            safety: Safety::default(),
            trust: TrustConfig::default(),
            redact: Vec::new(),
            passing: false,
            modules: PathBuf::from("."),
        }
    }

    /// The defaults, overridden by a file.
    pub(crate) fn from_file(home: PathBuf, file: &Path) -> Result<Self, ConfigErrors> {
        let text = text::read(file).map_err(|error| ConfigErrors(vec![error.in_file(file)]))?;
        Self::from_text(home, file, &text, environment())
    }

    fn from_text(
        home: PathBuf,
        file: &Path,
        text: &str,
        variables: Variables<'_>,
    ) -> Result<Self, ConfigErrors> {
        let mut config = Self::with_home(home);
        read::read_over(&mut config, file, text, variables)?;
        config.digest = Some(squall_harness::digest::sha256(text));
        Ok(config)
    }

    /// Settings outside the data plane that differ in `new` and need a restart.
    pub(crate) fn needs_restart(&self, new: &Self) -> Vec<&'static str> {
        let differs = [
            ("api.listen", self.api.listen != new.api.listen),
            ("redact", self.redact != new.redact),
            ("store", self.store != new.store),
        ];
        differs
            .into_iter()
            .filter_map(|(name, differs)| differs.then_some(name))
            .collect()
    }
}

/// All errors of one configuration, a sentence each, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigErrors(Vec<String>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigErrors> for crate::failure::Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self::Usage(errors.to_string())
    }
}

impl From<String> for ConfigErrors {
    fn from(error: String) -> Self {
        Self(vec![error])
    }
}

/// Parses the name of a dialect or a variant that this version supports.
fn dialect_name(name: &str) -> Result<String, String> {
    let spoken = squall_dialects::endpoint_names();
    if spoken.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(unknown("dialect", name, &spoken))
}

#[cfg(test)]
mod tests;
