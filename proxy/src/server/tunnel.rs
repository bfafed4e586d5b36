//! The content of a CONNECT after its 200: intercepted TLS, plain HTTP, or other bytes.
//!
//! An excluded host's bytes are passed on unchanged. Otherwise the first bytes decide: a
//! `ClientHello` is intercepted, HTTP with any method is served, and everything else is tunnelled.
//! If the upstream sends first, it is tunnelled too, except for the SETTINGS of an HTTP/2 server.

use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use http::{HeaderMap, Method};
use squall_journal::record::Outcome;
use squall_profiles::activation::Snapshot;
use squall_profiles::changes::TlsFailure;
use squall_profiles::facts::{CanonicalUrl, Facts, Kind};
use squall_profiles::plan::VerdictIndex;
use tokio::io::AsyncReadExt;
use tokio_rustls::server::TlsStream;

use crate::exchange::connection::{ByteStream, ConnectionStage, Ingress, Io, Tunnel};
use crate::exchange::log::ExchangeLog;
use crate::exchange::worker::ExchangeWorker;
use crate::exchange::{forward, splice};
use crate::faults::Ledger;
use crate::http1::sniff::{Sniff, classify};
use crate::http1::{Control, Rewind};
use crate::tape::Playing;
use crate::tls::{self, Alpn, ClientHello, Flaw, HandshakeError, PendingHandshake};
use crate::upstream::{Dialled, Scheme, UpstreamOrigin};

/// A CONNECT immediately after its 200.
pub(super) struct Opening {
    /// Not dialled yet if the scope plays a tape.
    pub(super) tunnel: Tunnel,
    pub(super) tls_failure: Option<(VerdictIndex, TlsFailure)>,
    pub(super) intercepted: bool,
    /// The tape of the scope, if any.
    pub(super) tape: Option<Arc<Playing>>,
    /// In force at the CONNECT.
    pub(super) rules: Snapshot,
    /// Not recorded if the tunnel is intercepted, because its exchanges are.
    pub(super) log: Rc<ExchangeLog>,
}

impl Opening {
    /// The next stage of the connection.
    pub(super) fn stage(
        self: Box<Self>,
        worker: Rc<ExchangeWorker>,
        io: Io,
        control: Rc<Control>,
    ) -> ConnectionStage {
        // A tunnel waits for both sides, so the idle timeout applies.
        self.log.waits_for_agent(true);
        ConnectionStage::work(self.run(worker, io, control))
    }

    async fn run(
        mut self: Box<Self>,
        worker: Rc<ExchangeWorker>,
        io: Io,
        control: Rc<Control>,
    ) -> Option<ConnectionStage> {
        if !self.intercepted && self.tls_failure.is_none() {
            return Some(self.passing_on(worker, io, control));
        }
        let Some((first, io)) = self.first_bytes(io).await else {
            self.log.forget();
            return None;
        };
        if self.tls_failure.is_some() && first != Sniff::Tls {
            self.bypass_tls_failure();
        }
        match first {
            Sniff::Tls => Some(ConnectionStage::work(self.intercept(worker, io, control))),
            Sniff::Http1 | Sniff::H2Preface if self.intercepted => {
                Some(self.serve_clear(&worker, io, first).await)
            }
            _ => Some(self.passing_on(worker, io, control)),
        }
    }

    /// Waits for the agent's first bytes, or for an upstream that sends first.
    async fn first_bytes(&self, mut io: Io) -> Option<(Sniff, Rewind<Io>)> {
        let mut seen = BytesMut::with_capacity(1024);
        let dialled = self.tunnel.dialled.take();
        let first = loop {
            let read = tokio::select! {
                read = io.read_buf(&mut seen) => read,
                () = spoken(dialled.as_ref()) => break Sniff::Other,
            };
            match (read.ok()?, classify(&seen)) {
                (0, _) if seen.is_empty() => return None,
                (0, _) => break Sniff::Other,
                (_, Sniff::NeedMore) => {}
                (_, first) => break first,
            }
        };
        self.tunnel.dialled.set(dialled);
        Some((first, Rewind::new(io, seen.freeze())))
    }

    /// Does the agent's handshake with a certificate for the upstream's host.
    async fn intercept(
        mut self: Box<Self>,
        worker: Rc<ExchangeWorker>,
        io: Rewind<Io>,
        control: Rc<Control>,
    ) -> Option<ConnectionStage> {
        let patience = worker.engine.compiled().config.limits.header_timeout;
        let late = |what: &str| format!("{what} took longer than {patience:?}");
        let started = match tokio::time::timeout(patience, tls::accept(io)).await {
            Ok(Ok(started)) => started,
            Ok(Err(error)) => return self.gone(error.to_string()),
            Err(_) => return self.gone(late("the ClientHello")),
        };
        let hello = started.hello();
        let asked = hello.server_name.clone();
        let name = asked.unwrap_or_else(|| self.tunnel.origin.host().to_owned());
        if let Some((verdict, failure)) = self.tls_failure.take() {
            self.log.applied(verdict);
            fail(&worker, started, &name, failure).await;
            self.log.end(Outcome::Injected, None);
            return None;
        }
        if !speaks_http(hello) {
            return Some(self.passing_on(worker, started.into_untouched(), control));
        }
        let origin = self.tunnel.origin.clone().with_server_name(&name);
        let alpn = self.agree_on(&worker, &origin, hello).await;
        let config = match worker.engine.leaves.config(&name, alpn) {
            Ok(config) => config,
            Err(error) => return self.gone(error.to_string()),
        };
        match tokio::time::timeout(patience, started.finish(config)).await {
            Ok(Ok(stream)) => Some((*self).serve_intercepted(&worker, origin, stream)),
            Ok(Err(error)) => self.not_trusted(&name, &error),
            Err(_) => self.gone(late("the TLS handshake")),
        }
    }

    /// The protocol to offer to the agent: at most what the upstream supports. If the agent does
    /// not offer HTTP/2, the upstream is not checked, and its handshake waits for the first
    /// request.
    async fn agree_on(
        &self,
        worker: &ExchangeWorker,
        origin: &UpstreamOrigin,
        hello: &ClientHello,
    ) -> Alpn {
        if !hello.offers_http2() {
            return Alpn::Http1;
        }
        if let Some(tape) = &self.tape {
            return if tape.speaks_http2(&origin.authority()) {
                Alpn::H2
            } else {
                Alpn::Http1
            };
        }
        let learned = worker
            .upstreams
            .learn_alpn(origin, self.tunnel.dialled.take(), Alpn::H2)
            .await;
        // On an error, the agent gets a 502 for its request, in its own version.
        learned.unwrap_or(Alpn::H2)
    }

    fn serve_intercepted(
        mut self,
        worker: &ExchangeWorker,
        origin: UpstreamOrigin,
        stream: TlsStream<Rewind<Rewind<Io>>>,
    ) -> ConnectionStage {
        self.log.forget();
        if self.tunnel.dialled.get_mut().is_some() {
            worker.upstreams.note_reached(&self.tunnel.origin);
        }
        let alpn = Alpn::agreed(stream.get_ref().1.alpn_protocol());
        let tunnel = Tunnel {
            origin,
            ..self.tunnel
        };
        let ingress = Ingress::Tunnel(Rc::new(tunnel));
        match alpn {
            Alpn::H2 => ConnectionStage::Http2(Box::new(stream), ingress),
            Alpn::Http1 => ConnectionStage::Http1(Box::new(stream), ingress),
        }
    }

    /// Serves plain HTTP in the CONNECT.
    async fn serve_clear(
        self: Box<Self>,
        worker: &ExchangeWorker,
        io: Rewind<Io>,
        first: Sniff,
    ) -> ConnectionStage {
        let origin = self.tunnel.origin.clone().with_scheme(Scheme::Http);
        if let Some(dialled) = self.tunnel.dialled.take()
            && let Err(error) = worker.upstreams.keep(&origin, dialled).await
        {
            tracing::debug!(%error, "a dialled connection was gone before its first request");
        }
        self.log.forget();
        let ingress = Ingress::Tunnel(Rc::new(Tunnel {
            authority: origin.authority(),
            origin,
            ..self.tunnel
        }));
        match first {
            Sniff::H2Preface => ConnectionStage::Http2(Box::new(io), ingress),
            _ => ConnectionStage::Http1(Box::new(io), ingress),
        }
    }

    /// Passes bytes both ways, unchanged.
    fn passing_on(
        self: Box<Self>,
        worker: Rc<ExchangeWorker>,
        io: impl ByteStream + 'static,
        control: Rc<Control>,
    ) -> ConnectionStage {
        ConnectionStage::last(async move {
            self.log.answered(http::StatusCode::OK);
            self.bypass_rules(&worker);
            let dialled = self.tunnel.dialled.take();
            if let Some(tape) = self.tape.as_ref().filter(|_| dialled.is_none()) {
                if tape.never_dials() {
                    tape.refuses();
                    let why = "what came through the tunnel is no HTTP, so no tape answers it, and \
                               nothing is dialled";
                    return self.log.end(Outcome::Denied, Some(why.to_owned()));
                }
                tape.dials();
            }
            let dialled = match dialled {
                Some(dialled) => Ok(dialled),
                None => worker.upstreams.connect_tcp(&self.tunnel.origin).await,
            };
            match dialled {
                Ok(dialled) => {
                    splice::both_ways(io, dialled.into_stream(), &control, &self.log).await;
                }
                Err(error) => forward::note(&error, &worker.engine.metrics, &self.log),
            }
        })
    }

    /// Marks rules that cannot affect a tunnel as bypassed.
    fn bypass_rules(&self, worker: &ExchangeWorker) {
        if self.rules.is_empty() {
            return;
        }
        let url = CanonicalUrl::new("https", &self.tunnel.origin.authority(), "/");
        let compiled = worker.engine.compiled();
        let tools = compiled.tools_at(&url, self.rules.rules());
        let none = HeaderMap::new();
        let mut facts = facts(&tools, &url, &none);
        let mut why = "the connection is tunnelled: what passes through it is not touched";
        if !self.intercepted {
            // Model calls may be in it.
            facts.kind = Kind::Llm;
            why = "the host is excluded from interception: what passes through the connection is not read";
        }
        self.log
            .verdicts()
            .all
            .extend(self.rules.bypass(&facts, why));
    }

    /// Records that the agent closed before it was served.
    fn gone(&self, why: String) -> Option<ConnectionStage> {
        self.log.end(Outcome::ClientGone, Some(why));
        None
    }

    fn bypass_tls_failure(&mut self) {
        if let Some((verdict, _)) = self.tls_failure.take() {
            self.log
                .bypassed(verdict, "no TLS handshake came through the CONNECT".into());
        }
    }

    /// Records that the agent does not trust the CA, which must be fixed on its side.
    fn not_trusted(&self, host: &str, error: &HandshakeError) -> Option<ConnectionStage> {
        if !matches!(error, HandshakeError::CertificateRejected { .. }) {
            return self.gone(error.to_string());
        }
        let advice = advice(host);
        tracing::warn!("{advice}");
        self.log.end(Outcome::ClientRejectedCa, Some(advice));
        None
    }
}

/// A CONNECT or its tunnel, as rules see it.
pub(super) fn facts<'a>(
    tools: &'a [String],
    url: &'a CanonicalUrl,
    headers: &'a HeaderMap,
) -> Facts<'a> {
    Facts {
        kind: Kind::Other,
        dialect: None,
        tools,
        rpc_tool_call: false,
        mcp_tool_list: false,
        from: None,
        may_be_rpc: false,
        method: &Method::CONNECT,
        url,
        headers,
        model: None,
        stream: None,
        results: None,
        body: None,
    }
}

/// Whether the ALPN offer permits HTTP; without ALPN it usually does.
fn speaks_http(hello: &ClientHello) -> bool {
    hello.alpn.is_empty()
        || hello
            .alpn
            .iter()
            .any(|id| id == b"h2" || id.starts_with(b"http/1"))
}

/// Fails a handshake as a rule specifies.
async fn fail(
    worker: &ExchangeWorker,
    started: PendingHandshake<Rewind<Io>>,
    host: &str,
    failure: TlsFailure,
) {
    let flaw = match failure {
        TlsFailure::Expired => Flaw::Expired,
        TlsFailure::WrongHost => Flaw::WrongHost,
        TlsFailure::Untrusted => Flaw::Untrusted,
        TlsFailure::Handshake => {
            if let Err(error) = started.fail().await {
                tracing::debug!(%error, "the agent was gone before its handshake was failed");
            }
            return;
        }
    };
    let alpn = if started.hello().offers_http2() {
        Alpn::H2
    } else {
        Alpn::Http1
    };
    match worker.engine.leaves.flawed(host, flaw, alpn) {
        // If the agent accepts the certificate, the connection is closed.
        Ok(config) => drop(started.finish(config).await),
        Err(error) => tracing::error!(%error, "cannot make a flawed certificate"),
    }
}

/// Resolves when the upstream has sent something or closed, before the agent sent anything.
async fn spoken(dialled: Option<&Dialled>) {
    match dialled {
        Some(dialled) => dialled.speaks().await,
        None => std::future::pending().await,
    }
}

fn advice(host: &str) -> String {
    format!(
        "the agent rejected Squall's certificate for {host}; start it with the variables of \
         `squall env` (SSL_CERT_FILE, REQUESTS_CA_BUNDLE, NODE_EXTRA_CA_CERTS …)"
    )
}
