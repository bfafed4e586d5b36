//! The cast of one run: upstream, floors and Squall, and the ways that lead through them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::ClientConfig;

use crate::Run;
use crate::pki::{Pki, client_config};
use crate::process::{Process, Said};
use crate::route::Route;
use crate::squall::{Squall, Store};

/// The name that handshakes are for. hudsucker has no certificates for addresses.
const NAME: &str = "upstream.bench.test";

/// Everything that runs while a row is measured.
#[derive(Debug)]
pub struct Stage {
    /// How many turns each contestant gets.
    pub rounds: usize,
    /// How long a turn lasts.
    pub stretch: Duration,
    /// A minute instead of ten.
    pub smoke: bool,
    /// Where Squall's binary is, if it is measured.
    pub binary: Option<PathBuf>,
    /// The run's scratch directory, removed at the end.
    pub dir: PathBuf,
    /// The run's authority.
    pub pki: Pki,
    /// The plain upstream.
    pub http: SocketAddr,
    https: SocketAddr,
    roots: Arc<ClientConfig>,
    floor: Process,
    hudsucker: Process,
    squall: Option<(Squall, Arc<ClientConfig>)>,
    _upstream: Process,
}

/// One way to the upstream and the process whose costs count on it.
#[derive(Debug)]
pub struct Contestant<'a> {
    /// `direct`, `H`, `hudsucker` or `Squall`.
    pub name: &'static str,
    /// How its traffic goes.
    pub route: Route,
    /// The proxy; none on the direct way.
    pub process: Option<&'a Process>,
}

impl<'a> Contestant<'a> {
    /// One whose process is this.
    pub fn through(name: &'static str, route: Route, process: &'a Process) -> Self {
        Self {
            name,
            route,
            process: Some(process),
        }
    }
}

/// How traffic reaches a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The proxy stands in for the upstream.
    Reverse,
    /// Absolute-form requests.
    Forward,
    /// CONNECT and TLS, intercepted; direct is TLS straight to the upstream.
    Intercept,
}

impl Stage {
    /// Starts everything.
    pub fn set(run: &Run) -> Result<Self> {
        raise_file_limit()?;
        let stretch = run.seconds.unwrap_or(if run.smoke { 0.5 } else { 3.0 });
        let rounds = run.rounds.unwrap_or(if run.smoke { 1 } else { 3 });
        Self::start(
            run.squall.clone(),
            rounds,
            Duration::from_secs_f64(stretch),
            run.smoke,
        )
    }

    /// Everything but a Squall: whoever asks starts its own.
    pub fn bare(rounds: usize, stretch: Duration) -> Result<Self> {
        raise_file_limit()?;
        Self::start(None, rounds, stretch, false)
    }

    /// The same with new processes, for one round.
    pub fn again(&self) -> Result<Self> {
        Self::start(self.binary.clone(), 1, self.stretch, self.smoke)
    }

    fn start(
        binary: Option<PathBuf>,
        rounds: usize,
        stretch: Duration,
        smoke: bool,
    ) -> Result<Self> {
        static STAGES: AtomicU32 = AtomicU32::new(0);
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let name = format!("squall-bench-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir)?;
        let pki = Pki::create(&dir)?;
        let itself = std::env::current_exe()?;
        let upstream = Process::start(
            Command::new(&itself).arg("upstream").arg(&dir),
            Said::Stdout,
            &["ready http="],
        )?;
        let http = loopback(upstream.said("http=")?)?;
        let https = loopback(upstream.said("https=")?)?;
        let floor = Process::start(
            Command::new(&itself).arg("floor").arg(http.to_string()),
            Said::Stdout,
            &["ready http="],
        )?;
        let hudsucker = Process::start(
            Command::new(&itself).arg("hudsucker").arg(&dir),
            Said::Stdout,
            &["ready http="],
        )?;
        let squall = match &binary {
            Some(binary) => {
                let squall = Squall::start(binary, &dir.join("squall"), http, &pki, Store::Memory)?;
                let trust = client_config(&squall.ca)?;
                Some((squall, trust))
            }
            None => None,
        };
        Ok(Self {
            rounds,
            stretch,
            smoke,
            binary,
            roots: client_config(&pki.ca)?,
            dir,
            pki,
            http,
            https,
            floor,
            hudsucker,
            squall,
            _upstream: upstream,
        })
    }

    /// The daemon, when it is measured.
    pub fn squall(&self) -> Option<&Squall> {
        self.squall.as_ref().map(|(squall, _)| squall)
    }

    /// Floor H's process.
    pub fn floor(&self) -> &Process {
        &self.floor
    }

    /// All who compete in `mode`, direct first, Squall last.
    pub fn contestants(&self, mode: Mode) -> Result<Vec<Contestant<'_>>> {
        let mut all = vec![Contestant {
            name: "direct",
            route: self.direct(mode)?,
            process: None,
        }];
        let floor = loopback(self.floor.said("http=")?)?;
        let hudsucker = loopback(self.hudsucker.said("http=")?)?;
        match mode {
            Mode::Reverse => all.push(Contestant::through("H", Route::to(floor), &self.floor)),
            Mode::Forward => {
                all.push(Contestant::through(
                    "H",
                    Route::forward(floor, self.http),
                    &self.floor,
                ));
                let route = Route::forward(hudsucker, self.http);
                all.push(Contestant::through("hudsucker", route, &self.hudsucker));
            }
            Mode::Intercept => {
                let route = self.intercepted(hudsucker, &self.roots)?;
                all.push(Contestant::through("hudsucker", route, &self.hudsucker));
            }
        }
        if let Some((squall, trust)) = &self.squall {
            let route = match mode {
                Mode::Reverse => Route::to(squall.reverse),
                Mode::Forward => Route::forward(squall.proxy, self.http),
                Mode::Intercept => self.intercepted(squall.proxy, trust)?,
            };
            all.push(Contestant::through("Squall", route, &squall.process));
        }
        Ok(all)
    }

    fn direct(&self, mode: Mode) -> Result<Route> {
        match mode {
            Mode::Reverse | Mode::Forward => Ok(Route::to(self.http)),
            Mode::Intercept => Route::to(self.https).encrypted(self.roots.clone(), NAME),
        }
    }

    fn intercepted(&self, proxy: SocketAddr, trust: &Arc<ClientConfig>) -> Result<Route> {
        Route::to(self.https)
            .tunnelled(proxy)
            .encrypted(trust.clone(), NAME)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What is left over lies in the system's temporary directory.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn loopback(port: &str) -> Result<SocketAddr> {
    Ok(SocketAddr::from((
        [127, 0, 0, 1],
        port.parse().context("a child's ready line")?,
    )))
}

/// Thousands of idle connections need as many descriptors; children inherit the limit.
fn raise_file_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )
    .context("the limit of open files cannot be raised")
}
