//! One connection from an agent, as its exchanges see it.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode};
use squall_journal::id::ExchangeId;
use squall_profiles::ruleset::RuleSet;
use tokio::io::{AsyncRead, AsyncWrite};

use super::carried::CarriedScope;
use super::worker::ExchangeWorker;
use crate::abort::Abort;
use crate::body::AgentBody;
use crate::body::agent::AgentSide;
use crate::compiled::ListenerRole;
use crate::http1::framing::OriginalNames;
use crate::http1::guard::RequestState;
use crate::http1::{Control, FramingError};
use crate::upstream::{Dialled, Outgoing, UpstreamOrigin};

/// State that all exchanges of a connection share.
pub(crate) struct Connection {
    pub(crate) worker: Rc<ExchangeWorker>,
    /// Control of the underlying socket.
    pub(crate) control: Rc<Control>,
    /// The source of its requests.
    pub(crate) ingress: Ingress,
    /// The scope whose traffic it carries.
    pub(crate) carried: CarriedScope,
    /// The framing guard; none on HTTP/2.
    pub(crate) guard: Option<Rc<RequestState>>,
    /// Original header names of the current request.
    original_names: Cell<OriginalNames>,
    /// How to abort a body.
    agent: AgentSide,
    /// Runs a stage, and all that follow.
    pub(crate) run_stage: RunStage,
    /// The next stage of an HTTP/1 connection after a CONNECT or an upgrade.
    pub(crate) takeover: RefCell<Option<Takeover>>,
}

/// How requests of a connection find their upstream.
#[derive(Clone)]
pub(crate) enum Ingress {
    /// Through a listener.
    Listener(ListenerRole),
    /// Through a CONNECT that was answered with 200.
    Tunnel(Rc<Tunnel>),
    /// Through another connection, whose messages they are.
    Carried(Rc<dyn RequestCarrier>),
}

impl Ingress {
    /// The ingress of the connection that an agent opened.
    pub(crate) fn of_agent(&self) -> &Self {
        self.carrier().map_or(self, |carrier| carrier.ingress())
    }

    /// The carrier of its requests, if they are carried.
    pub(crate) fn carrier(&self) -> Option<&Rc<dyn RequestCarrier>> {
        match self {
            Self::Carried(carrier) => Some(carrier),
            Self::Listener(_) | Self::Tunnel(_) => None,
        }
    }
}

/// Carries requests of a connection to its upstream.
pub(crate) trait RequestCarrier {
    /// The ingress of the carrying connection.
    fn ingress(&self) -> &Ingress;

    /// The exchange of the carrying connection.
    fn exchange(&self) -> &ExchangeId;

    /// Which rules its exchange takes.
    fn rules(&self) -> CarriedRules;

    /// Sends a request, and waits for its response's head.
    fn send(self: Rc<Self>, request: Request<Outgoing>) -> Carried;
}

/// The rules of a carried exchange.
pub(crate) enum CarriedRules {
    /// Those in force.
    InForce,
    /// None, for this reason: they are bypassed.
    Bypassed(&'static str),
    /// None: it is no call.
    None,
}

/// The response to a carried request.
pub(crate) type Carried = Pin<Box<dyn Future<Output = Result<Response<AgentBody>, Abort>>>>;

/// State that the exchanges of an intercepted connection share.
pub(crate) struct Tunnel {
    /// Their upstream.
    pub(crate) origin: UpstreamOrigin,
    /// The same upstream, as a `Host` value.
    pub(crate) authority: String,
    /// The scope named by the CONNECT's credentials.
    pub(crate) scope: Option<Arc<str>>,
    /// The name that the CONNECT gives the calling agent.
    pub(crate) agent: Option<String>,
    /// The rules that decided connection faults at the CONNECT.
    pub(crate) decided_by: Weak<RuleSet>,
    /// The connection dialled at the CONNECT, until an exchange uses it.
    pub(crate) dialled: Cell<Option<Dialled>>,
}

impl Tunnel {
    /// Whether `rules` decided when the tunnel was opened. Newer rules decide at the next exchange.
    pub(crate) fn was_decided_by(&self, rules: &RuleSet) -> bool {
        std::ptr::eq(self.decided_by.as_ptr(), rules)
    }
}

/// A readable and writable byte stream.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> ByteStream for T {}

/// The bytes of a connection. Boxed because layers nest: a tunnel contains a connection.
pub(crate) type Io = Box<dyn ByteStream>;

/// One stage of a connection, which returns the next one.
///
/// The protocol of a connection changes: sniffed, then HTTP, then a tunnel, then TLS, then HTTP
/// again. If each stage awaited the next, an idle intercepted connection would hold the memory of
/// all stages. So each stage ends and returns its successor.
pub(crate) enum ConnectionStage {
    /// HTTP/1 is served.
    Http1(Io, Ingress),
    /// HTTP/2 is served.
    Http2(Io, Ingress),
    /// Any other stage.
    Work(Pin<Box<dyn Future<Output = Option<ConnectionStage>>>>),
}

impl ConnectionStage {
    /// A stage that returns the next one, or `None` at the connection's end.
    pub(crate) fn work(work: impl Future<Output = Option<Self>> + 'static) -> Self {
        Self::Work(Box::pin(work))
    }

    /// A stage that ends the connection.
    pub(crate) fn last(work: impl Future<Output = ()> + 'static) -> Self {
        Self::work(async {
            work.await;
            None
        })
    }
}

/// Runs a stage of a connection and all that follow.
pub(crate) type RunStage =
    fn(ConnectionStage, Rc<ExchangeWorker>, Rc<Control>) -> Pin<Box<dyn Future<Output = ()>>>;

/// Creates the next stage of a connection that hyper returns.
pub(crate) type Takeover = Box<dyn FnOnce(Io) -> ConnectionStage>;

impl Connection {
    pub(crate) fn new(
        worker: &Rc<ExchangeWorker>,
        control: &Rc<Control>,
        ingress: Ingress,
        guard: Option<Rc<RequestState>>,
        agent: AgentSide,
        run_stage: RunStage,
    ) -> Rc<Self> {
        let connection = Self {
            worker: Rc::clone(worker),
            control: Rc::clone(control),
            ingress,
            carried: CarriedScope::default(),
            guard,
            original_names: Cell::default(),
            agent,
            run_stage,
            takeover: RefCell::default(),
        };
        connection.carries_a_tunnel();
        Rc::new(connection)
    }

    /// Records that a tunnel may be idle before its first exchange, in the scope that its CONNECT
    /// named.
    fn carries_a_tunnel(&self) {
        if let Ingress::Tunnel(tunnel) = &self.ingress
            && let Some(scope) = tunnel.scope.as_deref()
        {
            let chaos = self.worker.engine.chaos.scope_or_slot(Some(scope));
            self.carried.tunnels(&chaos);
        }
    }

    /// A request starts.
    pub(crate) fn begins(&self) {
        if let Some(guard) = &self.guard {
            self.original_names.set(guard.next_names());
        }
    }

    /// The original header names of the current request; none on HTTP/2. Call it once.
    pub(crate) fn take_original_names(&self) -> OriginalNames {
        self.original_names.take()
    }

    /// Prepares the socket to end as `abort` specifies once hyper drops it.
    pub(crate) fn break_off(&self, abort: &Abort) {
        self.agent.prepare(abort);
    }

    /// The control of what one exchange may end: the connection, or on HTTP/2 its stream.
    pub(crate) fn end(&self) -> Rc<Control> {
        if self.is_h2() {
            self.control.of_stream()
        } else {
            Rc::clone(&self.control)
        }
    }

    /// The agent's side, for bodies.
    pub(crate) fn agent(&self) -> &AgentSide {
        &self.agent
    }

    /// True on HTTP/2, where one exchange must not end the connection.
    pub(crate) fn is_h2(&self) -> bool {
        self.guard.is_none()
    }

    /// The framing error in the current request's body, if any.
    pub(crate) fn framing_broke(&self) -> Option<FramingError> {
        self.guard.as_ref()?.body_error()
    }

    /// Announces in a response that the connection closes after it, if so. Closing without this would look
    /// like a fault to an agent that reuses the connection. On HTTP/2 hyper sends a GOAWAY.
    pub(crate) fn announce_close<B>(&self, answer: &mut Response<B>) {
        if !self.is_h2()
            && self.carried.is_over()
            && answer.status() != StatusCode::SWITCHING_PROTOCOLS
        {
            let headers = answer.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}
