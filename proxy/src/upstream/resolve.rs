//! Resolves names to addresses, without a cache: the system's resolver has its own, and exactly the
//! checked addresses are dialled.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::error::FailureCause;
use super::patterns::{LOOPBACK, is_localhost, literal};

/// Most threads in the system's resolver.
const AT_ONCE: usize = 64;

/// Looks up a name, and blocks its thread meanwhile.
pub(super) type LookUp = dyn Fn(&str) -> std::io::Result<Vec<IpAddr>> + Send + Sync;

/// Resolves names with the system's resolver, which blocks a thread per lookup; at most [`AT_ONCE`].
pub(crate) struct Resolver {
    threads: Arc<Semaphore>,
    look_up: Arc<LookUp>,
}

impl Default for Resolver {
    fn default() -> Self {
        Self::with(Arc::new(|host: &str| {
            let found = (host, 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        }))
    }
}

impl Resolver {
    /// Resolves names by `look_up`.
    pub(super) fn with(look_up: Arc<LookUp>) -> Self {
        Self {
            threads: Arc::new(Semaphore::new(AT_ONCE)),
            look_up,
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
        let found = self.find(host.to_owned()).await;
        let found = found.map_err(|error| FailureCause::Dns(error.to_string()))?;
        if found.is_empty() {
            return Err(FailureCause::Dns("the name has no address".to_owned()));
        }
        let found = found.into_iter().map(|ip| SocketAddr::new(ip, port));
        Ok(found.collect())
    }

    /// Waits for a thread and its result. A dropped waiter leaves the queue. A started thread runs
    /// to its end and releases its slot then.
    async fn find(&self, host: String) -> std::io::Result<Vec<IpAddr>> {
        let thread = Arc::clone(&self.threads).acquire_owned().await;
        let thread = thread.map_err(std::io::Error::other)?;
        let look_up = Arc::clone(&self.look_up);
        let looked = tokio::task::spawn_blocking(move || {
            let _until_the_end = thread;
            look_up(&host)
        });
        looked.await.map_err(std::io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn lookups_are_bounded_and_those_nobody_waits_for_make_room() {
        static LOOKED: AtomicUsize = AtomicUsize::new(0);
        let mut lookups = Resolver::with(Arc::new(|_: &str| {
            LOOKED.fetch_add(1, Ordering::SeqCst);
            Ok(vec![LOOPBACK[0]])
        }));
        lookups.threads = Arc::new(Semaphore::new(1));
        let busy = Arc::clone(&lookups.threads).acquire_owned().await.unwrap();
        for host in ["a.example", "b.example"] {
            let waited = tokio::time::timeout(Duration::ZERO, lookups.resolve(host, 80)).await;
            assert!(waited.is_err());
        }
        drop(busy);
        let found = lookups.resolve("c.example", 80).await.unwrap();
        assert_eq!(found, [SocketAddr::new(LOOPBACK[0], 80)]);
        assert_eq!(LOOKED.load(Ordering::SeqCst), 1);
        assert_eq!(lookups.threads.available_permits(), 1);
    }
}
