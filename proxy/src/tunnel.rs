//! What comes through a CONNECT after its 200: TLS to intercept, plain HTTP to serve, or bytes.
//!
//! An excluded host's bytes are passed on untouched. Otherwise the first bytes decide: a ClientHello
//! is intercepted, HTTP of any method is served, everything else is tunnelled, and so is an upstream
//! that speaks first.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use squall_journal::record::Outcome;
use squall_profiles::fault::TlsFailure;
use squall_profiles::plan::VerdictIndex;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::broken::Ledger;
use crate::connection::{Entry, serve_h1, serve_h2};
use crate::exchange_log::ExchangeLog;
use crate::splice;
use crate::tls::{Hello, Rejected};
use crate::upstream::{Alpn, Dialled, Origin, Scheme};
use crate::wire::sniff::{First, Sniff, sniff};
use crate::wire::{Control, Rewind};
use crate::worker::Worker;

/// What the exchanges of an intercepted connection share.
#[derive(Clone)]
pub(crate) struct Tunnel {
    /// Where they go.
    pub(crate) origin: Origin,
    /// The same as `Host` must say it.
    pub(crate) authority: String,
    /// The scope that the CONNECT's credentials name.
    pub(crate) scope: Option<Arc<str>>,
}

/// What becomes of a connection after hyper has answered on it.
pub(crate) enum Takeover {
    /// A CONNECT was answered with 200.
    Connect(Box<Opening>),
    /// An upgrade was granted: the upstream's side of it.
    Upgrade {
        /// The upstream's side.
        upgrade: hyper::upgrade::OnUpgrade,
        /// The upgrade's account, which ends with it.
        log: Rc<ExchangeLog>,
    },
}

/// A CONNECT right after its 200.
pub(crate) struct Opening {
    pub(crate) tunnel: Rc<Tunnel>,
    pub(crate) dialled: Option<Dialled>,
    pub(crate) tls_failure: Option<(VerdictIndex, TlsFailure)>,
    pub(crate) intercepted: bool,
    /// Dropped unrecorded when the tunnel is intercepted: its exchanges speak for it.
    pub(crate) log: Rc<ExchangeLog>,
}

impl Takeover {
    /// Takes the connection over.
    pub(crate) fn run<I>(
        self,
        worker: Rc<Worker>,
        io: I,
        control: Rc<Control>,
    ) -> Pin<Box<dyn Future<Output = ()>>>
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        match self {
            Self::Connect(opening) => Box::pin(opening.run(worker, io, control)),
            Self::Upgrade { upgrade, log } => Box::pin(async move {
                match upgrade.await {
                    Ok(upstream) => {
                        let upstream = hyper_util::rt::TokioIo::new(upstream);
                        splice::both_ways(io, upstream, &control, &log).await;
                    }
                    Err(error) => log.end(Outcome::UpstreamError, Some(error.to_string())),
                }
            }),
        }
    }
}

impl Opening {
    async fn run<I>(mut self: Box<Self>, worker: Rc<Worker>, io: I, control: Rc<Control>)
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        if !self.intercepted && self.tls_failure.is_none() {
            return self.pass_on(&worker, io, &control).await;
        }
        let Some((first, io)) = self.first_bytes(&worker, io).await else {
            self.log.forget();
            return;
        };
        if self.tls_failure.is_some() && first != Sniff::Tls {
            self.bypass_tls_failure();
        }
        match first {
            Sniff::Tls => self.intercept(worker, io, control).await,
            Sniff::Http1 | Sniff::H2Preface if self.intercepted => {
                self.serve_clear(worker, io, control, first).await;
            }
            _ => self.pass_on(&worker, io, &control).await,
        }
    }

    /// Waits for the agent's first bytes, or for an upstream that speaks first.
    async fn first_bytes<I>(&mut self, worker: &Worker, io: I) -> Option<(Sniff, Rewind<I>)>
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let patience = worker.engine.live().config.limits.idle_timeout;
        let sniffed = sniff(io, patience, self.dialled.as_ref().map(Dialled::speaks)).await;
        match sniffed {
            Ok((First::Bytes(first), io)) => Some((first, io)),
            Ok((First::Silence, io)) => Some((Sniff::Other, io)),
            Ok((First::Closed, _)) | Err(_) => None,
        }
    }

    /// Answers the agent's handshake in the upstream's name.
    async fn intercept<I>(mut self: Box<Self>, worker: Rc<Worker>, io: I, control: Rc<Control>)
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let hello = match Hello::read(io).await {
            Ok(hello) => hello,
            Err(error) => return self.log.end(Outcome::ClientGone, Some(error.to_string())),
        };
        let name = hello.server_name().map_or_else(|| self.tunnel.origin.host().to_owned(), str::to_owned);
        if let Some((verdict, failure)) = self.tls_failure.take() {
            self.log.applied(verdict);
            let leaves = &worker.engine.leaves;
            leaves.fail(hello, &name, failure).await;
            return self.log.end(Outcome::Injected, None);
        }
        let origin = self.tunnel.origin.clone().with_server_name(&name);
        let offers_h2 = hello.offers_h2();
        let speaks = match worker.upstreams.learn_alpn(&origin, self.dialled.take(), offers_h2).await {
            Ok(alpn) => alpn,
            // The agent gets its 502 as an answer to its request.
            Err(_) => Alpn::Http1,
        };
        let config = match worker.engine.leaves.config(&name, speaks == Alpn::H2).await {
            Ok(config) => config,
            Err(error) => {
                tracing::error!(host = %name, %error, "cannot make a certificate");
                return self.log.end(Outcome::UpstreamError, Some(error.to_string()));
            }
        };
        match hello.finish(config).await {
            Ok(stream) => {
                self.log.forget();
                let tunnel = Tunnel { origin, ..(*self.tunnel).clone() };
                let entry = Entry::Tunnel(Rc::new(tunnel));
                if speaks == Alpn::H2 && offers_h2 {
                    serve_h2(worker, stream, control, entry).await;
                } else {
                    serve_h1(worker, stream, control, entry).await;
                }
            }
            Err(rejected) => self.rejected(&worker, &name, &rejected),
        }
    }

    /// Serves HTTP that comes through the CONNECT in the clear.
    async fn serve_clear<I>(
        mut self: Box<Self>,
        worker: Rc<Worker>,
        io: I,
        control: Rc<Control>,
        first: Sniff,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let origin = self.tunnel.origin.clone().with_scheme(Scheme::Http);
        if let Some(dialled) = self.dialled.take() {
            worker.upstreams.keep(&origin, dialled).await;
        }
        self.log.forget();
        let tunnel = Tunnel { authority: origin.authority(), origin, scope: self.tunnel.scope.clone() };
        let entry = Entry::Tunnel(Rc::new(tunnel));
        match first {
            Sniff::H2Preface => serve_h2(worker, io, control, entry).await,
            _ => serve_h1(worker, io, control, entry).await,
        }
    }

    /// Passes bytes both ways, untouched.
    async fn pass_on<I>(mut self: Box<Self>, worker: &Worker, io: I, control: &Control)
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        self.log.answered(http::StatusCode::OK);
        let dialled = match self.dialled.take() {
            Some(dialled) => dialled,
            None => match worker.upstreams.connect_tcp(&self.tunnel.origin).await {
                Ok(dialled) => dialled,
                Err(error) => {
                    worker.engine.metrics.upstream_error(error.reason());
                    return self.log.end(Outcome::UpstreamError, Some(error.to_string()));
                }
            },
        };
        splice::both_ways(io, dialled.into_stream(), control, &self.log).await;
    }

    fn bypass_tls_failure(&mut self) {
        if let Some((verdict, _)) = self.tls_failure.take() {
            self.log.bypassed(verdict, "no TLS handshake came through the CONNECT".into());
        }
    }

    /// The agent does not trust us: the one failure whose cure is on its side.
    fn rejected(&self, worker: &Worker, host: &str, rejected: &Rejected) {
        if rejected.of_certificate() {
            worker.engine.recorder.certificate_rejected(host);
            tracing::warn!(host, "{}", advice(host));
            self.log.end(Outcome::ClientRejectedCa, Some(advice(host)));
        } else {
            self.log.end(Outcome::ClientGone, Some(rejected.to_string()));
        }
    }
}

fn advice(host: &str) -> String {
    format!(
        "the agent rejected Squall's certificate for {host}; start it with the variables of \
         `squall env` (SSL_CERT_FILE, REQUESTS_CA_BUNDLE, NODE_EXTRA_CA_CERTS …)"
    )
}
