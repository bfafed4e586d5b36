//! Resolves names to addresses, without a cache: the system's resolver has its own, and exactly the
//! checked addresses are dialled.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{OnceCell, Semaphore};

use super::error::FailureCause;
use super::patterns::{LOOPBACK, is_localhost, literal, plain_name};
use crate::lock::lock;

/// Most threads in the system's resolver.
const AT_ONCE: usize = 64;

/// The system's hosts file.
const HOSTS: &str = "/etc/hosts";

/// The result of a lookup: addresses, or why there are none.
type LookUp = Result<Vec<IpAddr>, String>;

/// Resolves names with the system's resolver, which blocks a thread per lookup. At most [`AT_ONCE`]
/// run, and equal names share one. Names in the hosts file need no thread.
#[derive(Debug)]
pub(crate) struct Resolver {
    threads: Arc<Semaphore>,
    /// Lookups in progress.
    running: Mutex<HashMap<String, Weak<OnceCell<LookUp>>>>,
    hosts: PathBuf,
}

impl Default for Resolver {
    fn default() -> Self {
        Self {
            threads: Arc::new(Semaphore::new(AT_ONCE)),
            running: Mutex::default(),
            hosts: HOSTS.into(),
        }
    }
}

impl Resolver {
    /// Uses this hosts file.
    #[cfg(test)]
    pub(super) fn with_hosts_file(hosts: PathBuf) -> Self {
        Self {
            hosts,
            ..Self::default()
        }
    }

    /// Every address of `host`, in the order to try; never empty.
    pub(super) async fn resolve(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, FailureCause> {
        if let Some(ip) = literal(host) {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        if is_localhost(host) {
            return Ok(LOOPBACK.map(|ip| SocketAddr::new(ip, port)).into());
        }
        let found = self.find(host).await.map_err(FailureCause::Dns)?;
        if found.is_empty() {
            return Err(FailureCause::Dns("the name has no address".to_owned()));
        }
        let found = found.into_iter().map(|ip| SocketAddr::new(ip, port));
        Ok(found.collect())
    }

    async fn find(&self, host: &str) -> LookUp {
        let known = in_hosts_file(&self.hosts, host);
        if !known.is_empty() {
            return Ok(known);
        }
        let found = self.joined(host);
        let found = found
            .get_or_init(|| self.ask(host.to_owned(), system))
            .await;
        found.clone()
    }

    /// The running lookup of a name, or a new one.
    fn joined(&self, host: &str) -> Arc<OnceCell<LookUp>> {
        let mut running = lock(&self.running);
        if let Some(found) = running.get(host).and_then(Weak::upgrade) {
            return found;
        }
        running.retain(|_, found| found.strong_count() > 0);
        let found = Arc::new(OnceCell::new());
        running.insert(host.to_owned(), Arc::downgrade(&found));
        found
    }

    /// Waits for a thread and its result. A dropped waiter leaves the queue. A started thread runs
    /// to its end and releases its slot then.
    async fn ask(&self, host: String, look: fn(&str) -> LookUp) -> LookUp {
        let thread = Arc::clone(&self.threads).acquire_owned().await;
        let thread = thread.map_err(|error| error.to_string())?;
        let looked = tokio::task::spawn_blocking(move || {
            let _until_the_end = thread;
            look(&host)
        });
        looked.await.map_err(|error| error.to_string())?
    }
}

fn system(host: &str) -> LookUp {
    let found = (host, 0).to_socket_addrs();
    let found = found.map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip()).collect())
}

/// The addresses of a name in the hosts file (hosts(5)); empty if the name or the file is missing.
fn in_hosts_file(path: &Path, host: &str) -> Vec<IpAddr> {
    let host = plain_name(host);
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let of_line = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words
            .any(|name| name.eq_ignore_ascii_case(host))
            .then_some(address)
    };
    text.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn names_in_the_hosts_file_are_found_there() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text =
            "# 1.1.1.1 commented\n10.0.0.1\tone.example One # 2.2.2.2 x\n\n::1 one.example\nx y\n";
        fs::write(file.path(), text).unwrap();
        for (host, found) in [
            ("one.example", &["10.0.0.1", "::1"][..]),
            ("ONE.example.", &["10.0.0.1", "::1"]),
            ("one", &["10.0.0.1"]),
            ("commented", &[]),
            ("x", &[]),
            ("y", &[]),
        ] {
            let expected: Vec<IpAddr> = found.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(in_hosts_file(file.path(), host), expected, "{host}");
        }
    }

    static ASKED: AtomicUsize = AtomicUsize::new(0);

    #[tokio::test]
    async fn lookups_are_joined_and_those_nobody_waits_for_make_room() {
        let lookups = Arc::new(Resolver {
            threads: Arc::new(Semaphore::new(1)),
            ..Resolver::default()
        });
        let busy = Arc::clone(&lookups.threads).acquire_owned().await.unwrap();
        let look = |_: &str| {
            ASKED.fetch_add(1, Ordering::SeqCst);
            Ok(vec![LOOPBACK[0]])
        };
        // Waiters that give up leave nothing behind.
        for host in ["a.example", "b.example"] {
            let cell = lookups.joined(host);
            let waits = cell.get_or_init(|| lookups.ask(host.to_owned(), look));
            let waited = tokio::time::timeout(std::time::Duration::ZERO, waits).await;
            assert!(waited.is_err());
        }
        let mut all = Vec::new();
        for _ in 0..50 {
            let lookups = Arc::clone(&lookups);
            all.push(tokio::spawn(async move {
                let cell = lookups.joined("same.example");
                let found = cell.get_or_init(|| lookups.ask("same.example".to_owned(), look));
                found.await.clone()
            }));
        }
        drop(busy);
        for found in all {
            assert_eq!(found.await.unwrap(), Ok(vec![LOOPBACK[0]]));
        }
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
        assert_eq!(lookups.threads.available_permits(), 1);
        let left = lookups.joined("last.example");
        assert_eq!(lookups.running.lock().unwrap().len(), 1);
        drop(left);
    }
}
