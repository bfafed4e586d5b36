//! Upstreams: from an origin and a request to the response's head.
//!
//! ```text
//! send ─► pool ──────────────────────────► HTTP/1.1 | hyper's HTTP/2 ─► Received
//!           └ dial: destination → resolve → TCP (→ upstream_proxy) → TLS → what it speaks
//! ```
//!
//! Every worker has its own [`Upstreams`] with its own connections; configuration and learned
//! protocols are [`Shared`]. No request is sent twice. Only a request without a written byte,
//! because its pooled connection was closed, uses another connection. Dropping the future of
//! [`Upstreams::send`] or its body cancels the request: it closes the HTTP/1.1 connection or resets
//! the HTTP/2 stream.

mod chain;
mod destination;
mod dial;
mod error;
mod form;
mod http1;
mod http2;
mod open;
mod origin;
mod patterns;
mod pool;
mod received;
mod resolve;
mod send;
mod sent;
mod settings;
mod speaks;
mod tls;
mod transport;
mod trust;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::Either;
use http::uri::Authority;
use http::{HeaderValue, Request, Response, Version};
use tokio::time::Instant;

pub use self::destination::DestinationLists;
pub(crate) use self::destination::OwnListeners;
pub(crate) use self::error::ToAgent;
pub use self::error::{FailureCause, REASONS, UpstreamError};
pub(crate) use self::http2::LocalExecutor;
pub(crate) use self::origin::flaw;
pub use self::origin::{Scheme, UpstreamOrigin};
pub use self::patterns::HostPatterns;
pub(crate) use self::received::Received;
pub(crate) use self::resolve::Resolver;
pub(crate) use self::sent::{BodyError, Outgoing};
pub use self::tls::check_roots;
pub use self::transport::ConnectionCounters;
pub(crate) use self::transport::Dialled;

use self::dial::{addresses, dial, judge, judge_name};
use self::open::{deadline, finish_http1, learn_alpn};
use self::pool::{ConnectionPool, OriginPool};
use self::send::Sending;
use self::settings::Settings;
use self::speaks::SpokenProtocols;
use crate::config::{ConfigError, ProxyConfig};
use crate::http1::framing::OriginalNames;
use crate::tls::Alpn;

/// State that all workers share: settings, own listeners, upstream protocols, counters.
pub struct Shared {
    settings: ArcSwap<Settings>,
    own: ArcSwap<OwnListeners>,
    resolver: Resolver,
    speaks: SpokenProtocols,
    counters: Arc<ConnectionCounters>,
}

impl Shared {
    /// Compiles `config`; the system resolves names.
    pub fn new(config: &ProxyConfig) -> Result<Arc<Self>, ConfigError> {
        Self::with_resolver(config, Resolver::default())
    }

    /// Compiles `config`; `resolver` resolves names.
    pub(crate) fn with_resolver(
        config: &ProxyConfig,
        resolver: Resolver,
    ) -> Result<Arc<Self>, ConfigError> {
        Ok(Arc::new(Self {
            settings: ArcSwap::from_pointee(Settings::new(config)?),
            own: ArcSwap::from_pointee(OwnListeners::new(config.own_listeners.iter().copied())),
            resolver,
            speaks: SpokenProtocols::default(),
            counters: Arc::default(),
        }))
    }

    /// Applies another configuration. Exchanges in progress end under the old one, whose
    /// connections are not reused. On an error nothing changes.
    pub(crate) fn reload(self: &Arc<Self>, config: &ProxyConfig) -> Result<(), ConfigError> {
        self.settings.store(Arc::new(Settings::new(config)?));
        Ok(())
    }

    /// Sets the addresses of Squall's own listeners, as bound (port 0 resolved): the proxy's, the
    /// routes', the control API's. They are never a valid destination.
    pub(crate) fn set_own_listeners(&self, own: OwnListeners) {
        self.own.store(Arc::new(own));
    }

    /// Checks a destination outside of an exchange, as far as possible without resolving the name.
    pub fn check(&self, origin: &UpstreamOrigin) -> Result<(), UpstreamError> {
        judge_name(self, &self.settings.load(), origin)
            .map(drop)
            .map_err(|cause| UpstreamError::new(origin, cause))
    }

    /// The allowed addresses of a destination outside of an exchange.
    pub async fn addresses(
        &self,
        origin: &UpstreamOrigin,
    ) -> Result<Vec<SocketAddr>, UpstreamError> {
        let found = addresses(self, &self.settings.load_full(), origin).await;
        found.map_err(|cause| UpstreamError::new(origin, cause))
    }

    /// Counters of upstream connections.
    pub fn counters(&self) -> &ConnectionCounters {
        &self.counters
    }

    fn refuse_own(&self, address: SocketAddr) -> Result<(), FailureCause> {
        self.own
            .load()
            .reached_by(address)
            .map_or(Ok(()), |own| Err(FailureCause::Loop(own)))
    }
}

/// One worker's upstream connections. Cloning is cheap; clones share connections.
///
/// Use it inside a `LocalSet`, because local tasks drive the connections.
#[derive(Clone)]
pub(crate) struct Upstreams {
    shared: Arc<Shared>,
    pool: Rc<ConnectionPool>,
}

impl Upstreams {
    /// A worker's upstreams, without connections.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            pool: ConnectionPool::new(),
        }
    }

    /// Sends `request` to `origin` and waits for the response's head.
    ///
    /// The request has the agent's HTTP version. HTTP/1 is sent as HTTP/1.1, HTTP/2 as HTTP/2 if
    /// the upstream supports it. Target, `Host` and version are rewritten for the next hop; fields
    /// of the agent's connection must already be removed. A body with `Expect: 100-continue` is not
    /// read before the upstream requests it. On HTTP/1.1, fields have the casing and order of
    /// `original`; other fields follow in lower case.
    ///
    /// The response's body releases the connection at its end.
    pub(crate) fn send<'a>(
        &'a self,
        origin: &'a UpstreamOrigin,
        request: Request<Outgoing>,
        original: &OriginalNames,
    ) -> impl Future<Output = Result<Response<Received>, UpstreamError>> + 'a {
        let (exchange, request) = Sending::begin(&self.shared, self.endpoint(origin), request);
        let sending = if request.version() == Version::HTTP_2 {
            Either::Left(Box::pin(exchange.on_best(Box::new(request))))
        } else {
            Either::Right(exchange.for_http1(request, original))
        };
        async move {
            let sent = match sending {
                Either::Left(on_best) => on_best.await,
                Either::Right((exchange, upload)) => exchange.on_http1(upload, None).await,
            };
            sent.map_err(|cause| UpstreamError::new(origin, cause))
        }
    }

    /// Checks `origin` as far as possible without resolving its name: `allow`, `deny`, and Squall's
    /// own listeners if it is an IP literal.
    pub(crate) fn check(&self, origin: &UpstreamOrigin) -> Result<(), UpstreamError> {
        judge(&self.shared, &self.settings(), origin)
            .map(drop)
            .map_err(|cause| UpstreamError::new(origin, cause))
    }

    /// `origin` for an unapproved run or for others; both are equal if no host needs approval.
    pub(crate) fn origin_for(&self, origin: UpstreamOrigin, unapproved: bool) -> UpstreamOrigin {
        let has_approval = || self.shared.settings.load().destinations.has_approval();
        origin.unapproved(unapproved && has_approval())
    }

    /// Checks the `Host` of a request at `origin`, where one server may have several hosts; only
    /// `approval` applies.
    pub(crate) fn check_host(
        &self,
        origin: &UpstreamOrigin,
        host: &HeaderValue,
    ) -> Result<(), UpstreamError> {
        if !origin.is_unapproved() {
            return Ok(());
        }
        let named = host.to_str().ok().and_then(|host| host.parse().ok());
        let judged = named.map_or(Ok(()), |named: Authority| {
            let lists = &self.settings().destinations;
            lists.check_approval(origin, named.host(), None)
        });
        judged.map_err(|why| UpstreamError::new(origin, FailureCause::Denied(why)))
    }

    /// Dials `origin` without sending anything, as a CONNECT does before its 200. The scheme does
    /// not matter.
    pub(crate) async fn connect_tcp(
        &self,
        origin: &UpstreamOrigin,
    ) -> Result<Dialled, UpstreamError> {
        let settings = self.settings();
        let deadline = Instant::now() + settings.connect_timeout;
        // A tunnel, whatever its content: an upstream proxy gets a CONNECT.
        let tunnel = origin.clone().with_scheme(Scheme::Https);
        dial(&self.shared, &settings, &tunnel, deadline)
            .await
            .map_err(|cause| UpstreamError::new(origin, cause))
    }

    /// Whether a CONNECT for `origin` need not dial: a pooled connection is open, or the last
    /// intercepted CONNECT dialled it less than a second ago.
    pub(crate) fn is_reachable(&self, origin: &UpstreamOrigin) -> bool {
        let known = self.pool.known(origin, &self.settings());
        known.is_some_and(|endpoint| {
            endpoint.has_idle() || endpoint.h2_with_room().is_some() || endpoint.was_reached()
        })
    }

    /// Records that `origin` was dialled for an intercepted CONNECT.
    pub(crate) fn note_reached(&self, origin: &UpstreamOrigin) {
        self.endpoint(origin).note_reached();
    }

    /// Learns a TLS upstream's protocol, to offer it to an agent whose newest version is `newest`.
    /// Finishes the handshake on `dialled` or on a new connection, and pools it; it uses a pooled
    /// connection if possible.
    pub(crate) async fn learn_alpn(
        &self,
        origin: &UpstreamOrigin,
        dialled: Option<Dialled>,
        newest: Alpn,
    ) -> Result<Alpn, UpstreamError> {
        let endpoint = self.endpoint(origin);
        learn_alpn(&self.shared, &endpoint, dialled, newest)
            .await
            .map_err(|cause| UpstreamError::new(origin, cause))
    }

    /// Adds a dialled socket to the pool of a plain HTTP origin.
    pub(crate) async fn keep(
        &self,
        origin: &UpstreamOrigin,
        dialled: Dialled,
    ) -> Result<(), UpstreamError> {
        let endpoint = self.endpoint(origin);
        let finished = finish_http1(&endpoint, dialled, deadline(&endpoint)).await;
        finished
            .map(|connection| endpoint.push(connection))
            .map_err(|cause| UpstreamError::new(origin, cause))
    }

    fn endpoint(&self, origin: &UpstreamOrigin) -> Rc<OriginPool> {
        self.pool.endpoint(origin, &self.shared.settings.load())
    }

    fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }
}

#[cfg(test)]
mod tests;
