//! A real PostgreSQL, started for one test and gone with it.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Instant;

use rustix::fs::statvfs;
use rustix::process::{Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::PATIENCE;
use crate::daemon::{Log, pid, start, wait};

/// The account that runs the server when the tests are run by root, whom PostgreSQL refuses; Debian's
/// package makes it.
const ACCOUNT: &str = "postgres";

/// The superuser inside.
const USER: &str = "squall";

/// A running server on a free port of loopback; ended when dropped.
#[derive(Debug)]
pub struct Postgres {
    server: Option<(Child, Log)>,
    port: u16,
    programs: PathBuf,
    dir: TempDir,
}

impl Postgres {
    /// Makes a cluster and starts a server on it.
    pub fn start() -> Self {
        let programs = programs();
        let dir = TempDir::new_in(place()).expect("a temporary directory");
        if geteuid().is_root() {
            let owner = std::process::Command::new("chown")
                .arg(ACCOUNT)
                .arg(dir.path())
                .status();
            assert!(
                owner.is_ok_and(|status| status.success()),
                "there is no account `{ACCOUNT}` to run PostgreSQL as; scripts/install-clients makes it"
            );
        }
        let mut postgres = Self {
            server: None,
            port: 0,
            programs,
            dir,
        };
        let made = postgres
            .program("initdb")
            .args([
                "--auth=trust",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
            ])
            .arg(format!("--username={USER}"))
            .arg(postgres.data())
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "initdb: {made:?}");
        // Somebody else may take a port between the look at it and the start.
        for _ in 0..10 {
            postgres.port = free_port();
            if postgres.serve() {
                return postgres;
            }
        }
        panic!("PostgreSQL found no port");
    }

    /// An empty database of that name, as a URL.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(name)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The URL of a database, whether or not there is one of that name.
    pub fn url(&self, name: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{name}", self.port)
    }

    /// Runs SQL in a database; what it gives, a line a row.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = self
            .program("psql")
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args(["--host=127.0.0.1", "--set=ON_ERROR_STOP=1"])
            .arg(format!("--port={}", self.port))
            .arg(format!("--username={USER}"))
            .arg(format!("--dbname={database}"))
            .arg(format!("--command={sql}"))
            .output()
            .expect("psql starts");
        assert!(output.status.success(), "{sql}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Ends the server; its data stay.
    pub fn stop(&mut self) {
        if let Some((mut server, _)) = self.server.take() {
            // SIGQUIT: it ends without a last checkpoint, which a busy machine may take long for. What was
            // committed is kept: it is read from the log at the next start.
            kill_process(pid(&server), Signal::QUIT).expect("the server runs");
            server.wait().expect("PostgreSQL can be waited for");
        }
    }

    /// Starts the server again where it was.
    pub fn start_again(&mut self) {
        assert!(self.serve(), "the port is taken: {}", self.port);
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Whether the server came up; not when its port was taken.
    fn serve(&mut self) -> bool {
        let mut command = self.program("postgres");
        command
            .arg("-D")
            .arg(self.data())
            .arg("-F")
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "unix_socket_directories="])
            .args(["-c", "log_min_messages=warning"]);
        let (child, log, lines) = start(&mut command);
        let deadline = Instant::now() + PATIENCE;
        loop {
            if said(&log, "ready to accept connections") {
                self.server = Some((child, log));
                return true;
            }
            if said(&log, "could not create any TCP/IP sockets") {
                let mut child = child;
                wait(&mut child, "PostgreSQL");
                return false;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                lines.recv_timeout(left).is_ok(),
                "PostgreSQL never came up: {:#?}",
                log.lines()
            );
        }
    }

    /// One of PostgreSQL's programs, which dies with this process and is never run by root.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.arg("--pdeathsig=INT");
        if geteuid().is_root() {
            command.args([
                format!("--reuid={ACCOUNT}"),
                format!("--regid={ACCOUNT}"),
                "--clear-groups".to_owned(),
            ]);
        }
        command.arg(self.programs.join(name));
        command.current_dir(self.dir.path());
        command.env("LC_ALL", "C");
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some((mut server, log)) = self.server.take() {
            if std::thread::panicking() {
                eprintln!("PostgreSQL said:\n{}", log.lines().join("\n"));
            }
            // Its children end with it, as SIGKILL would not have them.
            let _ = kill_process(pid(&server), Signal::QUIT);
            let _ = server.wait();
        }
    }
}

/// Where clusters are made: in memory if there is room, since a disk that is busy with builds keeps a
/// server from ending for half a minute.
fn place() -> PathBuf {
    const ROOM: u64 = 2 << 30;
    let memory = PathBuf::from("/dev/shm");
    let free = statvfs(&memory).map_or(0, |system| system.f_bavail * system.f_frsize);
    if free >= ROOM {
        memory
    } else {
        std::env::temp_dir()
    }
}

/// Where PostgreSQL's programs are: Debian keeps them out of the path.
fn programs() -> PathBuf {
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut found: Vec<PathBuf> = debian
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|programs| programs.join("initdb").exists())
        .collect();
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).find(|programs| programs.join("initdb").exists());
    found
        .pop()
        .or(in_path)
        .expect("PostgreSQL is not installed; scripts/install-clients installs it")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn said(log: &Log, words: &str) -> bool {
    log.lines().iter().any(|line| line.contains(words))
}

/// A URL of a server that is not there.
pub fn nobody() -> String {
    format!("postgres://{USER}@127.0.0.1:{}/squall", free_port())
}
