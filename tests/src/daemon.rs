//! The real binary, started for one test.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::Api;
use crate::wire::Wire;
use crate::{PATIENCE, pause};

/// A running `squall serve`; killed when dropped.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// Its proxy listener.
    pub proxy: SocketAddr,
    /// Its control API.
    pub api: Api,
    /// Its interception authority, PEM.
    pub ca: PathBuf,
    /// Its `SQUALL_HOME`.
    pub home: PathBuf,
    /// Its configuration file.
    pub config: PathBuf,
    log: Log,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    _dir: TempDir,
}

/// What a child has said on standard error.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// All lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().expect("writing lines cannot panic").clone()
    }
}

/// The binary under test: `SQUALL_BIN`, or what `cargo build -p squall` left beside this test.
pub fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("SQUALL_BIN") {
        return named.into();
    }
    let this = std::env::current_exe().expect("a test is a file");
    let built = this
        .ancestors()
        .nth(2)
        .expect("target/debug/deps/test")
        .join("squall");
    assert!(
        built.exists(),
        "{} is missing: run `cargo build -p squall` first",
        built.display()
    );
    built
}

/// What configurations of tests call `${OPERATOR_TOKEN}`.
pub const OPERATOR_TOKEN: &str = "operator-0123456789abcdef";

/// A command of the binary's in a `home` of its own, with no proxy or Squall variable of the
/// surroundings.
pub fn squall(home: &Path) -> Command {
    let mut command = Command::new(binary());
    for (name, _) in std::env::vars_os() {
        if is_about_proxies(&name) {
            command.env_remove(name);
        }
    }
    command.env("SQUALL_HOME", home);
    // Secrets come from the surroundings, never out of a file.
    command.env("OPERATOR_TOKEN", OPERATOR_TOKEN);
    command
}

pub(crate) fn is_about_proxies(name: &OsString) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    name.ends_with("_PROXY")
        || name.starts_with("SQUALL_")
        || name.contains("CA_BUNDLE")
        || matches!(
            name.as_str(),
            "SSL_CERT_FILE" | "SSL_CERT_DIR" | "NODE_EXTRA_CA_CERTS"
        )
}

impl Daemon {
    /// Starts the daemon with `config` laid over ports of its own choice.
    pub fn start(config: &Value) -> Self {
        Self::start_with(config, &[])
    }

    /// The same with further arguments for `serve`.
    pub fn start_with(config: &Value, arguments: &[&str]) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let home = dir.path().join("home");
        Self::start_in(dir, home, config, arguments, &[])
    }

    /// The same with further variables in its environment.
    pub fn start_among(config: &Value, variables: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let home = dir.path().join("home");
        Self::start_in(dir, home, config, &[], variables)
    }

    /// The same with a home that is there already.
    pub fn at_home(home: PathBuf, config: &Value) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        Self::start_in(dir, home, config, &[], &[])
    }

    fn start_in(
        dir: TempDir,
        home: PathBuf,
        config: &Value,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let file = dir.path().join("squall.yaml");
        let mut whole = json!({
            "proxy": { "listen": "127.0.0.1:0" },
            "api": { "listen": "127.0.0.1:0" },
        });
        merge(&mut whole, config);
        // JSON is YAML.
        std::fs::write(&file, whole.to_string()).expect("the configuration");
        let mut command = squall(&home);
        command.arg("serve").arg("-c").arg(&file).args(arguments);
        command.envs(variables.iter().copied());
        let (child, log, lines) = start(&mut command);
        let mut daemon = Self {
            child,
            proxy: ([0, 0, 0, 0], 0).into(),
            api: Api {
                address: ([0, 0, 0, 0], 0).into(),
            },
            ca: dir.path().join("squall-ca.pem"),
            home,
            config: file,
            log,
            arguments: arguments.iter().map(|one| (*one).to_owned()).collect(),
            variables: (variables.iter())
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            _dir: dir,
        };
        daemon.proxy = daemon.ready(&lines, "proxy on http://");
        daemon.api.address = daemon.ready(&lines, "api on http://");
        let ca = daemon.api.call("GET", "/ca.pem", None);
        assert_eq!(ca.status, 200, "GET /ca.pem: {}", ca.text());
        std::fs::write(&daemon.ca, ca.body).expect("the CA's copy");
        daemon
    }

    /// Kills it, whatever it is at, and starts another on the same home and configuration.
    pub fn kill_and_start_again(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Kills it, whatever it is at.
    pub fn kill(&mut self) {
        // It may have ended by itself; both calls then only say so.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts another on the home and configuration of the one that was killed.
    pub fn start_again(&mut self) {
        let mut command = squall(&self.home);
        command
            .arg("serve")
            .arg("-c")
            .arg(&self.config)
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        let (child, log, lines) = start(&mut command);
        self.child = child;
        self.log = log;
        self.proxy = self.ready(&lines, "proxy on http://");
        self.api.address = self.ready(&lines, "api on http://");
    }

    fn ready(&self, lines: &Receiver<String>, word: &str) -> SocketAddr {
        let deadline = Instant::now() + PATIENCE;
        // Either line may come first; both stay in the log.
        loop {
            let said = self.log.lines();
            if let Some(rest) = said.iter().find_map(|line| line.split(word).nth(1)) {
                let address = rest.split_whitespace().next().unwrap_or_default();
                return address
                    .trim_end_matches('/')
                    .parse()
                    .unwrap_or_else(|_| panic!("`{word}` is followed by {rest:?}"));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                lines.recv_timeout(left).is_ok() || self.log.lines().len() > said.len(),
                "the daemon never said `{word}`; it said {said:#?}"
            );
        }
    }

    /// Connects to the proxy listener.
    pub fn connect(&self) -> Wire {
        Wire::connect(self.proxy)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub fn log(&self) -> Vec<String> {
        self.log.lines()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(pid(&self.child), signal).expect("the daemon runs");
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child, "the daemon")
    }

    /// Writes another configuration over the file, without a word to the daemon.
    pub fn rewrite(&self, config: &str) {
        std::fs::write(&self.config, config).expect("the configuration");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the daemon said:\n{}", self.log().join("\n"));
        }
        self.kill();
    }
}

/// Starts a command whose standard error is collected line by line.
pub fn start(command: &mut Command) -> (Child, Log, Receiver<String>) {
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let pipe = child.stderr.take().expect("a piped standard error");
    let log = Log::default();
    let (send, lines) = channel();
    let kept = log.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if let Ok(mut kept) = kept.0.lock() {
                kept.push(line.clone());
            }
            // Nobody may be listening any more; the log has it all the same.
            let _ = send.send(line);
        }
    });
    (child, log, lines)
}

/// The process id as the kernel wants it.
pub fn pid(child: &Child) -> Pid {
    let id = i32::try_from(child.id()).expect("process ids are small");
    Pid::from_raw(id).expect("a child's id is not 0")
}

/// Waits for a child's end.
pub fn wait(child: &mut Child, what: &str) -> ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        assert!(Instant::now() < deadline, "{what} does not end");
        pause();
    }
}

/// Lays `over` over `base`: maps are merged, everything else is replaced.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                merge(base.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}
