//! One connection from an agent, as far as its exchanges need to know it.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use http::header::{CONNECTION, HeaderValue};
use http::{Response, StatusCode};
use squall_profiles::ruleset::RuleSet;
use tokio::io::{AsyncRead, AsyncWrite};

use super::carried::CarriedScope;
use super::worker::ExchangeWorker;
use crate::abort::Abort;
use crate::body::agent::AgentSide;
use crate::compiled::ListenerRole;
use crate::http1::framing::OriginalNames;
use crate::http1::guard::RequestState;
use crate::http1::{Control, FramingError};
use crate::upstream::{Dialled, UpstreamOrigin};

/// What every exchange of a connection shares.
pub(crate) struct Connection {
    pub(crate) worker: Rc<ExchangeWorker>,
    /// The socket below everything.
    pub(crate) control: Rc<Control>,
    /// Where its requests come from.
    pub(crate) ingress: Ingress,
    /// Whose traffic it carries.
    pub(crate) carried: CarriedScope,
    /// The framing guard; none on HTTP/2.
    pub(crate) guard: Option<Rc<RequestState>>,
    /// The field names of the request in work, as the agent wrote them.
    original_names: Cell<OriginalNames>,
    /// How a body may break off.
    agent: AgentSide,
    /// What becomes of an HTTP/1 connection once hyper has answered a CONNECT or an upgrade.
    pub(crate) takeover: RefCell<Option<Takeover>>,
}

/// How requests of a connection find their upstream.
#[derive(Clone)]
pub(crate) enum Ingress {
    /// Through a listener.
    Listener(ListenerRole),
    /// Through a CONNECT that was answered with 200.
    Tunnel(Rc<Tunnel>),
}

/// What the exchanges of an intercepted connection share.
pub(crate) struct Tunnel {
    /// Where they go.
    pub(crate) origin: UpstreamOrigin,
    /// The same as `Host` must say it.
    pub(crate) authority: String,
    /// The scope that the CONNECT's credentials name.
    pub(crate) scope: Option<Arc<str>>,
    /// The rules that were asked at the CONNECT whether it fails.
    pub(crate) decided_by: Weak<RuleSet>,
    /// What the CONNECT dialled and no exchange has used yet.
    pub(crate) dialled: Cell<Option<Dialled>>,
}

impl Tunnel {
    /// Whether `rules` decided when the tunnel was opened. Others that came into force since then
    /// decide at the next exchange.
    pub(crate) fn was_decided_by(&self, rules: &RuleSet) -> bool {
        std::ptr::eq(self.decided_by.as_ptr(), rules)
    }
}

/// Anything that can be read and written.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> ByteStream for T {}

/// The bytes of a connection: behind a box, since what comes through it may be a connection again.
pub(crate) type Io = Box<dyn ByteStream>;

/// One stage of a connection's life, which names the next one.
///
/// What a connection is changes: sniffed, then HTTP, then a tunnel, then TLS, then HTTP again. Were
/// each stage awaited by the one before it, an intercepted connection would keep the memory of all
/// of them for as long as it idles. So a stage ends by naming the next, and is gone.
pub(crate) enum ConnectionStage {
    /// HTTP/1 is served.
    Http1(Io, Ingress),
    /// HTTP/2 is served.
    Http2(Io, Ingress),
    /// Something else is done.
    Work(Pin<Box<dyn Future<Output = Option<ConnectionStage>>>>),
}

impl ConnectionStage {
    /// Work that names the next stage, or none at the connection's end.
    pub(crate) fn work(work: impl Future<Output = Option<Self>> + 'static) -> Self {
        Self::Work(Box::pin(work))
    }

    /// Work after which the connection is over.
    pub(crate) fn last(work: impl Future<Output = ()> + 'static) -> Self {
        Self::work(async {
            work.await;
            None
        })
    }
}

/// Makes the next stage of a connection that hyper gives back.
pub(crate) type Takeover = Box<dyn FnOnce(Io) -> ConnectionStage>;

impl Connection {
    pub(crate) fn new(
        worker: &Rc<ExchangeWorker>,
        control: &Rc<Control>,
        ingress: Ingress,
        guard: Option<Rc<RequestState>>,
        agent: AgentSide,
    ) -> Rc<Self> {
        let connection = Self {
            worker: Rc::clone(worker),
            control: Rc::clone(control),
            ingress,
            carried: CarriedScope::default(),
            guard,
            original_names: Cell::default(),
            agent,
            takeover: RefCell::default(),
        };
        connection.carries_a_tunnel();
        Rc::new(connection)
    }

    /// A tunnel may idle before its first exchange, in the scope that its CONNECT named.
    fn carries_a_tunnel(&self) {
        if let Ingress::Tunnel(tunnel) = &self.ingress
            && let Some(scope) = tunnel.scope.as_deref()
        {
            let chaos = self.worker.engine.chaos.scope_or_slot(Some(scope));
            self.carried.tunnels(&chaos);
        }
    }

    /// A request begins.
    pub(crate) fn begins(&self) {
        if let Some(guard) = &self.guard {
            self.original_names.set(guard.next_names());
        }
    }

    /// The field names of the request in work; none on HTTP/2, which has one spelling. To be asked
    /// once.
    pub(crate) fn take_original_names(&self) -> OriginalNames {
        self.original_names.take()
    }

    /// Makes the socket ready to end as `abort` says, once hyper drops it.
    pub(crate) fn break_off(&self, abort: &Abort) {
        self.agent.prepare(abort);
    }

    /// The agent's side, as bodies know it.
    pub(crate) fn agent(&self) -> &AgentSide {
        &self.agent
    }

    /// True on HTTP/2, where one exchange must not end the connection.
    pub(crate) fn is_h2(&self) -> bool {
        self.guard.is_none()
    }

    /// Why the body of the request in work was rejected, where its framing is ambiguous.
    pub(crate) fn framing_broke(&self) -> Option<FramingError> {
        self.guard.as_ref()?.body_error()
    }

    /// Says in an answer that the connection takes no other exchange, if it does not. Closing it alone would
    /// not do: an agent that is just about to use it again would take that for a fault. On HTTP/2 hyper says
    /// it by a GOAWAY, and so it does in answers that come once it knows.
    pub(crate) fn tell_last<B>(&self, answer: &mut Response<B>) {
        if !self.is_h2()
            && self.carried.is_over()
            && answer.status() != StatusCode::SWITCHING_PROTOCOLS
        {
            let headers = answer.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}
