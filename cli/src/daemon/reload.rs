//! Reloads the configuration and profiles while traffic flows.
//!
//! A broken configuration or profile keeps its last good version. The log and `/readyz` report the error until it
//! is fixed.

use std::path::Path;

use squall_control_api::BrokenFile;
use squall_control_api::audit::{AuditEntry, AuditOutcome};
use squall_proxy::chaos::DEFAULT_SCOPE;

use super::{Daemon, health, parts, profiles};
use crate::config::Config;
use crate::failure::Failure;

impl Daemon {
    /// Applies a configuration read from `file`, and reads the profiles again.
    pub(crate) fn reload(&mut self, read: Result<Config, Failure>, file: Option<&Path>) {
        // Profiles first: the configuration may name a new one.
        let config = read.as_ref().unwrap_or(&self.config).clone();
        let mut broken = self.reload_profiles(&config);
        let mut before = self.config.digest.clone();
        let applied = read.and_then(|config| self.apply(config));
        let mut after = self.config.digest.clone();
        if let Err(failure) = applied {
            (before, after) = (None, None);
            let file = file.map_or_else(String::new, |file| file.display().to_string());
            let errors = failure.to_string();
            broken.extend(errors.lines().map(|error| BrokenFile {
                file: file.clone(),
                error: error.to_owned(),
            }));
        }
        self.listening.set_broken(broken.clone());
        for one in &broken {
            tracing::error!(
                "{}; the previous version stays in force",
                health::sentence(one)
            );
        }
        let file = file.map_or_else(|| "-".to_owned(), |file| file.display().to_string());
        let (outcome, detail) = match broken.as_slice() {
            [] => (AuditOutcome::Done, "applied".to_owned()),
            broken => (
                AuditOutcome::Refused,
                format!(
                    "{} broken: the previous version of each stays in force",
                    broken.len()
                ),
            ),
        };
        self.state.audit.record(AuditEntry {
            action: "reload".to_owned(),
            target: file,
            outcome: outcome.as_str().to_owned(),
            detail,
            before,
            after,
            ..AuditEntry::default()
        });
    }

    /// Applies a configuration, or rejects all of it.
    fn apply(&mut self, mut config: Config) -> Result<(), Failure> {
        config.check_api(&self.state.access)?;
        let usage = |error: &dyn std::error::Error| Failure::Usage(error.to_string());
        // A profile that was activated since the start stays, unless the file's `chaos` has changed.
        let switch = config.chaos != self.config.chaos;
        if switch {
            parts::check_profile(&self.state.chaos, &config)?;
        }
        let tools = parts::tool_names(&config)?;
        let approval = parts::approval(&config)?;
        let mut restart = self
            .proxy
            .reload(config.proxy.clone())
            .map_err(|error| usage(&error))?;
        self.state
            .chaos
            .reconfigure(tools, parts::defaults(&config))
            .map_err(|error| usage(&error))?;
        if switch {
            self.state.chaos.end(DEFAULT_SCOPE);
            parts::put_in_force(&self.state.chaos, &config)?;
        }
        self.state.access.configure(parts::tokens(&config));
        self.state.trust.configure(config.trust.clone());
        self.state.runs.configure(approval);
        // Settings that need a restart keep their values, so that each reload reports them again.
        restart.extend(unchanged(
            "api.listen",
            &mut config.api.listen,
            &self.config.api.listen,
        ));
        restart.extend(unchanged("redact", &mut config.redact, &self.config.redact));
        restart.extend(unchanged("store", &mut config.store, &self.config.store));
        restart.extend(unchanged("fleet", &mut config.takes, &self.config.takes));
        if restart.is_empty() {
            tracing::info!("configuration reloaded");
        } else {
            let settings = restart.join(", ");
            tracing::warn!(
                settings,
                "configuration reloaded; these settings need a restart"
            );
        }
        self.config = config;
        Ok(())
    }

    fn reload_profiles(&mut self, config: &Config) -> Vec<BrokenFile> {
        let mut files = self.profiles.clone();
        let mut broken = Vec::new();
        let edited = self.state.chaos.edit(|library| {
            let reading = files.read(config, library);
            broken = reading.problems;
            Ok::<_, std::convert::Infallible>(reading.library)
        });
        match edited {
            Ok(()) => self.profiles = files,
            Err(error) => broken.push(profiles::broken(config, &error.to_string())),
        }
        broken
    }
}

/// Gives a setting its present value; returns its name if it had another.
fn unchanged<T: Clone + PartialEq>(
    name: &'static str,
    new: &mut T,
    present: &T,
) -> Option<&'static str> {
    let differs = new != present;
    new.clone_from(present);
    differs.then_some(name)
}
