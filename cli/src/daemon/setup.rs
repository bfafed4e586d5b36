//! The sources of a daemon's configuration: the file, flags and variables.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use squall_control_api::store::StorePlace;
use squall_proxy::config::RouteEntry;

use crate::args::DaemonArgs;
use crate::config::{Config, DEFAULT_FILE, StoreConfig};
use crate::failure::Failure;
use crate::text;

/// The sources of a configuration, to be read at start and on every reload.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    home: PathBuf,
    file: Option<PathBuf>,
    flags: DaemonArgs,
    /// Place of the store; overrides the file.
    store: Option<StorePlace>,
    lives: Lives,
}

/// The purpose of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lives {
    /// Serves all clients until it is stopped.
    Long,
    /// Serves one program: on free ports of loopback by default, without a store.
    ForProgram,
    /// Serves one command, without the file's chaos; may start programs, and keeps its runs in the store.
    ForCommand {
        /// Whether it is on free ports of loopback by default, instead of those of the file.
        free_ports: bool,
    },
}

impl Setup {
    /// The sources of a daemon's configuration.
    pub(crate) fn new(flags: DaemonArgs, lives: Lives) -> Result<Self, Failure> {
        let default = || Some(PathBuf::from(DEFAULT_FILE)).filter(|file| file.is_file());
        let file = flags.config.clone().or_else(default);
        Ok(Self {
            home: crate::home::home()?,
            file,
            flags,
            store: None,
            lives,
        })
    }

    /// With the store of a flag; a relative path is relative to the working directory.
    pub(crate) fn with_store(self, url: Option<&str>) -> Result<Self, Failure> {
        let Some(url) = url else {
            return Ok(self);
        };
        let here = std::env::current_dir()
            .map_err(|error| Failure::could_not("the working directory", error))?;
        let place = StorePlace::parse(url, &self.home, &here)
            .map_err(|error| Failure::Usage(format!("--store: {error}")))?;
        Ok(Self {
            store: Some(place),
            ..self
        })
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Reads the file and applies the flags. Rejects a configuration that exposes too much or names unreadable
    /// certificates.
    pub(crate) fn read(&self) -> Result<Config, Failure> {
        let mut config = match &self.file {
            Some(file) => Config::from_file(self.home.clone(), file)?,
            None => Config::with_home(self.home.clone()),
        };
        match self.lives {
            Lives::Long => {}
            Lives::ForProgram => {
                config.store = StoreConfig::in_memory();
                on_free_ports(&mut config);
            }
            Lives::ForCommand { free_ports } => {
                config.passing = true;
                config.trust.commands = true;
                config.chaos.profile = None;
                config.profile_file = None;
                if free_ports {
                    on_free_ports(&mut config);
                }
            }
        }
        if let Some(store) = &self.store {
            config.store.place = store.clone();
        }
        let flags = &self.flags;
        config.proxy.listen = flags.proxy.unwrap_or(config.proxy.listen);
        config.api.listen = flags.api.unwrap_or(config.api.listen);
        if let Some(profile) = &flags.profile {
            config.chaos.profile = Some(profile.clone());
            config.chaos_place = Some("--profile".to_owned());
            config.profile_file = text::as_file(profile).map(Path::to_owned);
        }
        config.chaos.seed = flags.seed.or(config.chaos.seed);
        config.proxy.workers = flags.workers.map_or(config.proxy.workers, usize::from);
        config.check_exposure()?;
        config.check_roots()?;
        Ok(config)
    }
}

fn on_free_ports(config: &mut Config) {
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    config.proxy.listen = free;
    config.api.listen = free;
    for route in &mut config.proxy.routes {
        if let RouteEntry::Listen(address) = &mut route.entry {
            *address = free;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(text: &str, flags: DaemonArgs, lives: Lives) -> (tempfile::TempDir, Setup) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("squall.yaml");
        std::fs::write(&file, text).unwrap();
        let setup = Setup {
            home: "/home/squall".into(),
            file: Some(file),
            flags,
            store: None,
            lives,
        };
        (directory, setup)
    }

    #[test]
    fn flags_beat_the_file_and_the_file_beats_the_default() {
        let text = "proxy: { listen: 127.0.0.1:1111 }\nchaos: { profile: brownout, seed: 7 }\n";
        let flags = DaemonArgs {
            seed: Some(8),
            ..DaemonArgs::default()
        };
        let (_directory, setup) = setup(text, flags, Lives::Long);
        let config = setup.read().unwrap();
        assert_eq!(config.proxy.listen.port(), 1111);
        assert_eq!(config.api.listen.port(), 7071);
        assert_eq!(config.chaos.profile.as_deref(), Some("brownout"));
        assert_eq!(config.chaos.seed, Some(8));
    }

    #[test]
    fn a_private_daemon_takes_free_ports_of_loopback() {
        let (_directory, setup) = setup(
            "proxy: { listen: 0.0.0.0:1111 }\nroutes: [{ name: own, listen: 127.0.0.1:1112, upstream: http://a.example }]\n",
            DaemonArgs::default(),
            Lives::ForProgram,
        );
        let config = setup.read().unwrap();
        assert!(
            matches!(config.proxy.routes[0].entry, RouteEntry::Listen(address) if address.port() == 0)
        );
        assert_eq!(config.proxy.listen.to_string(), "127.0.0.1:0");
        assert_eq!(config.api.listen.to_string(), "127.0.0.1:0");
    }

    #[test]
    fn a_daemon_for_one_command_keeps_its_store_and_no_chaos() {
        let text = "proxy: { listen: 127.0.0.1:1111 }\nchaos: { profile: brownout }\n";
        for (free_ports, port) in [(false, 1111), (true, 0)] {
            let lives = Lives::ForCommand { free_ports };
            let (_directory, setup) = setup(text, DaemonArgs::default(), lives);
            let config = setup.read().unwrap();
            assert_eq!(config.proxy.listen.port(), port);
            assert_eq!(
                config.store.place,
                StorePlace::in_home(Path::new("/home/squall"))
            );
            assert_eq!(config.chaos.profile, None);
            assert!(config.trust.commands && config.passing);
        }
    }

    #[test]
    fn a_flag_cannot_expose_what_the_file_could_not() {
        let flags = DaemonArgs {
            proxy: Some(([0, 0, 0, 0], 1).into()),
            ..DaemonArgs::default()
        };
        let (_directory, setup) = setup("", flags, Lives::Long);
        let complaint = setup.read().unwrap_err().to_string();
        assert!(complaint.contains("narrow `proxy.allow`"), "{complaint}");
    }
}
