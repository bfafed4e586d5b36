//! Opens the connections that suites need: to agents, their resets, models and embeddings. Each has its own client,
//! which reaches only the daemon's allowed destinations.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Proxy, Url};
use tokio::net::TcpStream;

use crate::reach::Pending;

/// The destinations that suites may reach.
pub trait Destinations: Send + Sync {
    /// Checks a host without resolving it: a name, or an address without brackets.
    fn check(&self, host: &str, port: u16) -> Result<(), String>;

    /// The allowed addresses of a host, or why there is none.
    fn addresses<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> Pending<'a, Result<Vec<SocketAddr>, String>>;

    /// The destinations for a run that is not approved.
    fn unapproved(&self) -> Arc<dyn Destinations>;
}

/// Opens connections for suites. By default every destination is allowed.
#[derive(Clone, Default)]
pub struct Dialler(Option<Arc<dyn Destinations>>);

impl std::fmt::Debug for Dialler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialler")
    }
}

/// Longest time to connect to an agent.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);

impl Dialler {
    /// A dialler that reaches only the allowed `destinations`.
    pub fn new(destinations: Arc<dyn Destinations>) -> Self {
        Self(Some(destinations))
    }

    /// The dialler for a run that is not approved.
    #[must_use]
    pub fn unapproved(&self) -> Self {
        Self(self.0.as_ref().map(|all| all.unapproved()))
    }

    /// Checks a URL without resolving its name. Literal addresses are checked only here, because a client resolves
    /// only names.
    pub fn check(&self, url: &str) -> Result<(), String> {
        match (&self.0, host_and_port(url)) {
            (Some(destinations), Some((host, port))) => destinations.check(&host, port),
            // An invalid URL is not dialled.
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// A connection to the first allowed address of a host that accepts one.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> std::io::Result<TcpStream> {
        let Some(destinations) = &self.0 else {
            return TcpStream::connect((host, port)).await;
        };
        let denied = |why: String| std::io::Error::other(why);
        destinations.check(host, port).map_err(denied)?;
        let addresses = destinations.addresses(host, port).await.map_err(denied)?;
        TcpStream::connect(&addresses[..]).await
    }

    /// A client for one URL. It ignores the environment's proxy settings and does not follow redirects.
    pub(crate) fn client(&self, url: &str) -> Client {
        self.built(url, Client::builder())
    }

    /// A client for an agent with this time-out. An agent that does not accept the connection in three quarters of
    /// it is unreachable, not slow.
    pub(crate) fn client_of_agent(&self, url: &str, timeout: Duration) -> Client {
        let patience = CONNECTS_WITHIN.min(timeout / 4 * 3);
        // A kept connection may be closed by the agent at the moment of the next request.
        let builder = Client::builder().pool_max_idle_per_host(0);
        self.built(url, builder.connect_timeout(patience))
    }

    /// A client for requests through a proxy, which trusts a file of roots. It does not follow redirects.
    pub(crate) fn client_through(proxy: &str, bundle: &str) -> Result<Client, String> {
        install_provider();
        let roots = std::fs::read(bundle).map_err(|error| format!("{bundle}: {error}"))?;
        let client = || {
            let builder = Client::builder()
                .proxy(Proxy::all(proxy)?)
                .redirect(Policy::none())
                .pool_max_idle_per_host(0);
            let roots = Certificate::from_pem_bundle(&roots)?.into_iter();
            roots
                .fold(builder, ClientBuilder::add_root_certificate)
                .build()
        };
        client().map_err(|error| innermost(&error))
    }

    fn built(&self, url: &str, builder: ClientBuilder) -> Client {
        install_provider();
        let mut builder = builder.no_proxy().redirect(Policy::none());
        if let (Some(destinations), Some((_, port))) = (&self.0, host_and_port(url)) {
            builder = builder.dns_resolver(Judged {
                destinations: Arc::clone(destinations),
                port,
            });
        }
        builder
            .build()
            .expect("nothing in it can fail but the roots, which are read later")
    }
}

/// Only the first call in a process has an effect, and all calls install the same provider.
fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The innermost cause of an error. The outermost one names the URL, which may contain a secret.
pub fn innermost(error: &reqwest::Error) -> String {
    let mut source = std::error::Error::source(error);
    let mut reason = None;
    while let Some(inner) = source {
        reason = Some(inner.to_string());
        source = inner.source();
    }
    reason.unwrap_or_else(|| "the request failed".to_owned())
}

/// Host and port of a URL, as the client parses it.
pub fn host_and_port(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    Some((host, url.port_or_known_default()?))
}

/// Resolves names to allowed addresses only.
struct Judged {
    destinations: Arc<dyn Destinations>,
    port: u16,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (destinations, port) = (Arc::clone(&self.destinations), self.port);
        Box::pin(async move {
            let found = destinations.addresses(name.as_str(), port).await?;
            Ok::<Addrs, _>(Box::new(found.into_iter()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::testing::{Reply, Server};

    /// Allows `known.test` only, at one address and port.
    struct Known(SocketAddr);

    impl Destinations for Known {
        fn check(&self, host: &str, port: u16) -> Result<(), String> {
            Err(format!("{host} on {port} is denied"))
        }

        fn addresses<'a>(
            &'a self,
            host: &'a str,
            port: u16,
        ) -> Pending<'a, Result<Vec<SocketAddr>, String>> {
            Box::pin(async move {
                let is_known = host == "known.test" && port == self.0.port();
                is_known
                    .then(|| vec![self.0])
                    .ok_or_else(|| format!("{host} on {port} is denied"))
            })
        }

        fn unapproved(&self) -> Arc<dyn Destinations> {
            Arc::new(Self(self.0))
        }
    }

    #[tokio::test]
    async fn a_name_is_dialled_where_destinations_say() {
        let reply = Reply::With(200, "text/plain", "hello".into());
        let server = Server::start(vec![reply]).await;
        let address: SocketAddr = server.url["http://".len()..].parse().expect("an address");
        let dialler = Dialler::new(Arc::new(Known(address)));
        let asked = |host: &str| {
            let url = format!("http://{host}:{}/", address.port());
            dialler.client(&url).get(url).send()
        };
        assert_eq!(asked("known.test").await.expect("asked").status(), 200);
        let denied = asked("other.test").await.expect_err("denied");
        let why = innermost(&denied);
        assert_eq!(why, format!("other.test on {} is denied", address.port()));
        assert_eq!(server.requests().len(), 1);
    }

    #[test]
    fn addresses_are_judged_as_the_client_reads_them() {
        let dialler = Dialler::new(Arc::new(Known(SocketAddr::from(([127, 0, 0, 1], 1)))));
        for (url, read) in [
            ("http://0x7f.1/x", "127.0.0.1 on 80"),
            ("https://u:p@[::ffff:7f00:1]/", "::ffff:7f00:1 on 443"),
            ("http://Known.Test:8/", "known.test on 8"),
        ] {
            let denied = dialler.check(url);
            assert_eq!(denied, Err(format!("{read} is denied")), "{url}");
        }
        assert_eq!(Dialler::default().check("http://127.0.0.1/"), Ok(()));
    }
}
