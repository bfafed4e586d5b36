//! The release binary under test: started with a config of its own, switched over its API.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::pki::Pki;
use crate::process::{Process, Said};

/// Where a daemon keeps what must outlive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store<'a> {
    /// Nowhere: profiles and journal go with it.
    Memory,
    /// In `SQLite`, as it comes.
    Default,
    /// In this one.
    At {
        /// `sqlite`, or `postgres://…`.
        url: &'a str,
        /// Which exchanges are kept: `all`, `faulted` or `none`.
        exchanges: &'a str,
    },
}

/// A running daemon.
#[derive(Debug)]
pub struct Squall {
    /// Its process.
    pub process: Process,
    /// The proxy listener.
    pub proxy: SocketAddr,
    /// The listener of the reverse route to the plain upstream.
    pub reverse: SocketAddr,
    /// Its interception authority, PEM.
    pub ca: PathBuf,
    /// From the start of the process to both ready lines.
    pub started_in: Duration,
    api: SocketAddr,
}

impl Squall {
    /// Starts `binary serve` in `home` with a reverse route to `upstream`.
    pub fn start(
        binary: &Path,
        home: &Path,
        upstream: SocketAddr,
        pki: &Pki,
        store: Store<'_>,
    ) -> Result<Self> {
        fs::create_dir_all(home)?;
        let config = home.join("squall.yaml");
        let store = match store {
            Store::Memory => "store: { url: \"sqlite::memory:\", exchanges: none }\n".to_owned(),
            Store::Default => String::new(),
            Store::At { url, exchanges } => {
                format!("store: {{ url: \"{url}\", exchanges: {exchanges} }}\n")
            }
        };
        fs::write(
            &config,
            format!(
                "proxy:\n  listen: 127.0.0.1:0\n  upstream_ca: [{}]\n\
                 routes:\n  - {{ name: bench, listen: \"127.0.0.1:0\", upstream: \"http://{upstream}\" }}\n\
                 api:\n  listen: 127.0.0.1:0\n{store}",
                pki.ca.display()
            ),
        )?;
        let begun = Instant::now();
        let process = Process::start(
            Command::new(binary)
                .args(["serve", "-c"])
                .arg(&config)
                .env("SQUALL_HOME", home)
                .env("SQUALL_LOG_LEVEL", "warn"),
            Said::Stderr,
            &["proxy on http://", "api on http://"],
        )?;
        let started_in = begun.elapsed();
        let proxy = process
            .said("proxy on http://")?
            .trim_end_matches('/')
            .parse()?;
        let api = process
            .said("api on http://")?
            .trim_end_matches('/')
            .parse()?;
        let ca = home.join("bench-ca.pem");
        let mut squall = Self {
            process,
            proxy,
            reverse: proxy,
            ca,
            started_in,
            api,
        };
        squall.reverse = squall.listener("bench")?;
        fs::write(&squall.ca, squall.call("GET", "/ca.pem", None)?)?;
        Ok(squall)
    }

    /// Puts `chaos` in force for the default scope; how long the call took.
    pub fn chaos(&self, chaos: &Value) -> Result<Duration> {
        let body = serde_json::json!({ "chaos": chaos, "seed": 1 }).to_string();
        let begun = Instant::now();
        self.call("PUT", "/v1/chaos", Some(&body))?;
        Ok(begun.elapsed())
    }

    /// Ends all chaos.
    pub fn calm(&self) -> Result<()> {
        self.call("DELETE", "/v1/chaos?all=true", None).map(drop)
    }

    /// Whether a rule told of this reason in one of the latest exchanges.
    pub fn gave_reason(&self, reason: &str) -> Result<bool> {
        let page = self.call("GET", "/v1/exchanges?limit=100", None)?;
        let page: Value = serde_json::from_slice(&page)?;
        let exchanges = page["items"].as_array().into_iter().flatten();
        let verdicts =
            exchanges.flat_map(|exchange| exchange["rules"].as_array().into_iter().flatten());
        let mut reasons = verdicts.filter_map(|verdict| verdict["reason"].as_str());
        Ok(reasons.any(|given| given.contains(reason)))
    }

    /// The sum of a metric's series whose labels contain `label`.
    pub fn counted(&self, metric: &str, label: &str) -> Result<u64> {
        let text = String::from_utf8(self.call("GET", "/metrics", None)?)?;
        let series = text.lines().filter(|line| {
            let rest = line.strip_prefix(metric);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
        });
        let values = series.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        Ok(values.sum())
    }

    /// The address of the listener of this name.
    fn listener(&self, name: &str) -> Result<SocketAddr> {
        let ready: Value = serde_json::from_slice(&self.call("GET", "/readyz", None)?)?;
        let listeners = ready["listeners"].as_array().into_iter().flatten();
        let mut addresses = listeners.filter(|listener| listener["name"] == name);
        let address = addresses
            .next()
            .and_then(|listener| listener["address"].as_str());
        Ok(address
            .with_context(|| format!("no listener `{name}` in {ready}"))?
            .parse()?)
    }

    /// One API call; the body of a 2xx answer.
    fn call(&self, method: &str, path: &str, body: Option<&str>) -> Result<Vec<u8>> {
        let mut stream = TcpStream::connect(self.api)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let body = body.unwrap_or_default();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n",
            self.api
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let end = end.with_context(|| format!("{method} {path}: no answer"))? + 4;
        if !answer.starts_with(b"HTTP/1.1 2") {
            bail!("{method} {path}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(answer.split_off(end))
    }
}
