//! Real clients: curl, Python's and Node's, told only of the proxy and the CA.

use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::daemon::is_about_proxies;

/// The top of the repository.
fn root() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the repository")
        .into()
}

/// A program whose surroundings say nothing about proxies, CAs or keys.
pub fn clean(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if is_about_proxies(&name) {
            command.env_remove(name);
        }
    }
    command
}

/// The Python that has the clients.
pub fn python() -> PathBuf {
    let python = root().join(".venv/bin/python");
    assert!(
        python.exists(),
        "{} is missing: run scripts/install-clients",
        python.display()
    );
    python
}

/// `tests/clients/NAME`.
pub fn script(name: &str) -> PathBuf {
    root().join("tests/clients").join(name)
}

/// A script of `tests/clients`, by its ending run by Python or Node.
pub fn client(name: &str) -> Command {
    let file = script(name);
    let mut command = match file.extension().and_then(|ending| ending.to_str()) {
        Some("mjs") => {
            let packages = root().join("tests/node/node_modules");
            assert!(
                packages.exists(),
                "Node's packages are missing: run scripts/install-clients"
            );
            clean("node")
        }
        _ => clean(python()),
    };
    command.arg(file);
    command
}

/// Runs a client to its end; the JSON on the last line it prints.
pub fn told(command: &mut Command) -> Value {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("{command:?} ended with {}: {text}\n{errors}", output.status)
    })
}

/// What a program is told: where to go and through what.
#[derive(Debug, Clone)]
pub struct Way {
    /// The URL to ask for.
    pub url: String,
    /// The proxy to use, if any.
    pub proxy: Option<String>,
    /// The authority to trust, if any.
    pub ca: Option<PathBuf>,
}

impl Way {
    /// Straight to `url`, in clear.
    pub fn direct(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            proxy: None,
            ca: None,
        }
    }

    /// Runs curl; its exit code, standard output and standard error.
    pub fn curl(&self, arguments: &[&str]) -> Output {
        let mut command = clean("curl");
        command
            .args(["--silent", "--show-error", "--max-time", "20"])
            .args(arguments);
        match &self.proxy {
            Some(proxy) => command.args(["--proxy", proxy]),
            None => command.args(["--noproxy", "*"]),
        };
        if let Some(ca) = &self.ca {
            command.arg("--cacert").arg(ca);
        }
        command.arg(&self.url).output().expect("curl is installed")
    }

    /// Asks with a stack of `tests/clients`; its README says what is told.
    pub fn ask(&self, name: &str, arguments: &[&str]) -> Value {
        let mut command = client(name);
        command.arg("--url").arg(&self.url).args(arguments);
        if let Some(proxy) = &self.proxy {
            command.arg("--proxy").arg(proxy);
        }
        if let Some(ca) = &self.ca {
            command.arg("--ca").arg(ca);
        }
        told(&mut command)
    }
}

/// Resident memory of a process in bytes.
pub fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("VmRSS");
    let kilobytes = line
        .split_whitespace()
        .next()
        .and_then(|text| text.parse::<u64>().ok());
    kilobytes.expect("a number of kilobytes") * 1024
}

/// Lets some time pass before the same question is asked again.
pub fn pause() {
    crate::pause();
}
