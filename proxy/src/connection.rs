//! One connection from an agent: find out what it speaks, then serve its exchanges.
//!
//! ```text
//! accept ─ sniff ─┬─ HTTP/1 ── Guard ── hyper h1 ──┬─ exchange
//!                 └─ HTTP/2 ─────────── hyper h2 ──┤
//!                                                  └─ CONNECT ─ 200 ─ (tunnel.rs) ─ sniff ─┬─ TLS ─ as above
//!                                                                                          ├─ HTTP ─ as above
//!                                                                                          └─ anything ─ bytes
//! ```

use std::cell::{Cell, RefCell};
use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use http::header::{CONNECTION, HeaderValue, PROXY_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use squall_journal::record::Outcome;
use squall_profiles::facts::Kind;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::broken::{Broken, Ledger};
use crate::carried::Carried;
use crate::carry_out::Context;
use crate::carry_out::body;
use crate::carry_out::flush::AgentSide;
use crate::config::Credentials;
use crate::connect;
use crate::exchange;
use crate::exchange_log::ExchangeLog;
use crate::h1::framing::Spelt;
use crate::h1::guard::{RequestGuard, RequestState};
use crate::h1::{FramingError, Limits};
use crate::listener::Door;
use crate::live::Live;
use crate::observed::Observed;
use crate::problem::Problem;
use crate::recorder::ExchangeNote;
use crate::route::{self, Target};
use crate::scope;
use crate::stage::Stage;
use crate::tunnel::{Takeover, Tunnel};
use crate::wire::sniff::{First, Sniff, sniff};
use crate::wire::{Control, Rewind, Wire};
use crate::worker::{Arrival, Worker};

/// What a lingering close reads and throws away, so that the last answer is not lost to a reset.
const LINGER_BYTES: usize = 256 << 10;
const LINGER_TIME: Duration = Duration::from_secs(2);

/// What every exchange of a connection shares.
pub(crate) struct Connection {
    pub(crate) worker: Rc<Worker>,
    /// The socket below everything.
    pub(crate) control: Rc<Control>,
    /// Where its requests go.
    pub(crate) entry: Entry,
    /// Whose traffic it carries.
    pub(crate) carried: Carried,
    /// The framing guard; none on HTTP/2.
    guard: Option<Rc<RequestState>>,
    /// How the head of the request in work is spelt.
    spelt: Cell<Spelt>,
    /// How a body may break off.
    agent: AgentSide,
    /// What becomes of the connection once hyper has answered a CONNECT or an upgrade.
    pub(crate) takeover: RefCell<Option<Takeover>>,
}

/// How requests of a connection find their upstream.
#[derive(Clone)]
pub(crate) enum Entry {
    /// Through a listener.
    Door(Door),
    /// Through a CONNECT that was answered with 200.
    Tunnel(Rc<Tunnel>),
}

/// Serves a connection that a listener accepted.
pub(crate) async fn serve(worker: Rc<Worker>, arrival: Arrival) {
    let Arrival {
        stream,
        door,
        permit,
    } = arrival;
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%error, "cannot serve a connection"),
    };
    // An error: it is gone between the accept and now.
    let Ok(wire) = Wire::new(stream) else { return };
    let control = wire.control();
    let _slot = worker.slot(&control, permit);
    let sniffed = serve_sniffed(worker, wire, control, Entry::Door(door));
    Stage::new(sniffed).run().await;
}

/// Looks at the first bytes and serves HTTP/1 or HTTP/2.
async fn serve_sniffed(
    worker: Rc<Worker>,
    wire: Wire,
    control: Rc<Control>,
    entry: Entry,
) -> Option<Stage> {
    let patience = worker.engine.live().config.limits.idle_timeout;
    let sniffed = tokio::select! {
        sniffed = sniff(wire, patience) => sniffed,
        () = worker.draining.cancelled() => return None,
    };
    match sniffed {
        Ok((First::Bytes(Sniff::H2Preface), io)) => Some(serve_h2(worker, io, control, entry)),
        // Whatever is no HTTP is told so by the guard, in HTTP.
        Ok((First::Bytes(_), io)) => Some(serve_h1(worker, io, control, entry)),
        Ok((First::Silence | First::Closed, _)) | Err(_) => None,
    }
}

/// Serves HTTP/1 on `io` until it ends or is taken over.
pub(crate) fn serve_h1<I>(worker: Rc<Worker>, io: I, control: Rc<Control>, entry: Entry) -> Stage
where
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    Stage::new(async move {
        let live = worker.engine.live();
        let limits = &live.config.limits;
        let heads = Limits {
            header_bytes: limits.header_bytes,
            header_count: limits.header_count,
        };
        let io = RequestGuard::new(io, heads, limits.header_timeout);
        let guard = io.state();
        let (agent, io) = AgentSide::http1(Rc::clone(&control), TokioIo::new(io));
        let connection = Rc::new(Connection {
            worker: Rc::clone(&worker),
            control: Rc::clone(&control),
            entry,
            carried: Carried::default(),
            guard: Some(guard),
            spelt: Cell::default(),
            agent,
            takeover: RefCell::new(None),
        });
        connection.carries_a_tunnel();
        let mut served = hyper::server::conn::http1::Builder::new()
            .auto_date_header(false)
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            // The guard has judged every head before hyper sees it; hyper's own bounds only have to
            // be wider, so that its answer is never the one the agent gets.
            .max_headers(limits.header_count + 8)
            .max_buf_size((limits.header_bytes + 4096).max(512 << 10))
            .serve_connection(io, Agent(Rc::clone(&connection)));
        let result = {
            let mut draining = pin!(worker.draining.cancelled());
            let mut told = false;
            // Who is woken when the worker drains: whoever is that already need not ask again.
            let mut listens: Option<Waker> = None;
            std::future::poll_fn(|cx| {
                let waker = cx.waker();
                let asks = worker.draining.is_cancelled()
                    || !listens.as_ref().is_some_and(|own| own.will_wake(waker));
                if !told && asks {
                    if draining.as_mut().poll(cx).is_ready() {
                        told = true;
                        Pin::new(&mut served).graceful_shutdown();
                    }
                    listens = Some(waker.clone());
                }
                let polled = served.poll_without_shutdown(cx);
                // Asked last: what the connection carries may be what it read just now.
                if polled.is_pending() && connection.carried.poll_over(cx).is_ready() {
                    Pin::new(&mut served).graceful_shutdown();
                    return served.poll_without_shutdown(cx);
                }
                polled
            })
            .await
        };
        let takeover = connection.takeover.borrow_mut().take();
        let parts = served.into_parts();
        let io = parts.io.into_inner().into_inner();
        match (result, takeover) {
            (Ok(()), Some(takeover)) => {
                let io = Rewind::new(io.into_rewind(), parts.read_buf);
                Some(takeover.stage(worker, Box::new(io), control))
            }
            _ => Some(Stage::last(close(io, control, worker.draining.clone()))),
        }
    })
}

/// Serves HTTP/2 on `io` until it ends.
pub(crate) fn serve_h2<I>(worker: Rc<Worker>, io: I, control: Rc<Control>, entry: Entry) -> Stage
where
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    Stage::last(async move {
        let live = worker.engine.live();
        let connection = Rc::new(Connection {
            worker: Rc::clone(&worker),
            control,
            entry,
            carried: Carried::default(),
            guard: None,
            spelt: Cell::default(),
            agent: AgentSide::Http2,
            takeover: RefCell::new(None),
        });
        connection.carries_a_tunnel();
        // h2 refuses what is beyond its bound with a bare 431; what is between is told why.
        let header_bytes = live.config.limits.header_bytes.saturating_mul(4);
        let header_bytes = u32::try_from(header_bytes).unwrap_or(u32::MAX);
        let mut served = pin!(
            hyper::server::conn::http2::Builder::new(LocalExecutor)
                .timer(TokioTimer::new())
                .auto_date_header(false)
                .max_header_list_size(header_bytes)
                .max_concurrent_streams(1024)
                .initial_stream_window_size(1 << 20)
                .initial_connection_window_size(4 << 20)
                .serve_connection(TokioIo::new(io), Agent(Rc::clone(&connection)))
        );
        let over = std::future::poll_fn(|cx| connection.carried.poll_over(cx));
        // In this order: what the connection carries may be what it read just now.
        let ended = tokio::select! {
            biased;
            ended = served.as_mut() => ended,
            () = async { tokio::select! { () = worker.draining.cancelled() => {}, () = over => {} } } => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an HTTP/2 connection ended");
        }
    })
}

/// Ends a connection in order: what was written arrives even if the agent has sent more than was
/// read. Closing with unread bytes would reset the connection and take the answer with it.
async fn close<I>(mut io: I, control: Rc<Control>, draining: CancellationToken)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    if control.is_resetting() {
        return;
    }
    if io.shutdown().await.is_err() {
        return;
    }
    let mut left = LINGER_BYTES;
    // Not on the stack: it would be part of every connection's future from the beginning.
    let mut scratch = vec![0; 4096];
    let drain = async {
        while left > 0 {
            match io.read(&mut scratch).await {
                Ok(0) | Err(_) => break,
                Ok(read) => left = left.saturating_sub(read),
            }
        }
    };
    tokio::select! {
        () = drain => {}
        // Past the limit the connection is dropped, which is all that is left to do.
        () = tokio::time::sleep(LINGER_TIME) => {}
        () = draining.cancelled() => {}
    }
}

/// An answer in the making; boxed, so that an idle connection does not keep room for an exchange.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Response<Observed>, Broken>>>>;

/// The service behind every connection.
struct Agent(Rc<Connection>);

impl hyper::service::Service<Request<Incoming>> for Agent {
    type Response = Response<Observed>;
    type Error = Broken;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let connection = &self.0;
        if let Some(guard) = &connection.guard {
            connection.spelt.set(guard.next_spelt());
        }
        if let Some((problem, method, uri)) = connection.rejected(&request) {
            let refusal = connection.refuse(&problem, &method, &uri);
            return Box::pin(ready(Ok(refusal)));
        }
        if !changes_protocol(&request) {
            return exchange::serve(connection, request);
        }
        let served = if request.method() == Method::CONNECT {
            connect::serve(connection, request)
        } else {
            exchange::serve(connection, request)
        };
        let connection = Rc::clone(connection);
        Box::pin(async move {
            let answer = served.await?;
            connection.protocol_changed(answer.status());
            Ok(answer)
        })
    }
}

/// What the guard asks to be told about: behind such a request may come anything.
fn changes_protocol(request: &Request<Incoming>) -> bool {
    request.method() == Method::CONNECT
        || (request.version() == Version::HTTP_11
            && request.headers().contains_key(http::header::UPGRADE))
}

impl Connection {
    /// How the agent spelt the head of the request in work; nothing on HTTP/2, which has one
    /// spelling. To be asked once.
    pub(crate) fn take_spelt(&self) -> Spelt {
        self.spelt.take()
    }

    /// A tunnel may idle before its first exchange, in the scope that its CONNECT named.
    fn carries_a_tunnel(&self) {
        if let Entry::Tunnel(tunnel) = &self.entry
            && let Some(scope) = tunnel.scope.as_deref()
        {
            let chaos = self.worker.engine.chaos.scope_or_slot(Some(scope));
            self.carried.tunnels(&chaos);
        }
    }

    fn protocol_changed(&self, status: StatusCode) {
        let Some(guard) = &self.guard else { return };
        if status == StatusCode::SWITCHING_PROTOCOLS || self.takeover.borrow().is_some() {
            guard.upgrade_granted();
        } else {
            guard.upgrade_refused();
        }
    }

    /// Makes the socket ready to end as `broken` says, once hyper drops it.
    pub(crate) fn break_off(&self, broken: &Broken) {
        self.agent.prepare(broken);
    }

    /// The agent's side, as bodies know it.
    pub(crate) fn agent(&self) -> &AgentSide {
        &self.agent
    }

    /// True on HTTP/2, where one exchange must not end the connection.
    pub(crate) fn is_h2(&self) -> bool {
        self.guard.is_none()
    }

    /// Why the body of the request in work was refused, where its framing is ambiguous.
    pub(crate) fn framing_broke(&self) -> Option<FramingError> {
        self.guard.as_ref()?.body_error()
    }

    /// The answer to a request that stands for a head which was refused, and what that asked for.
    fn rejected(&self, request: &Request<Incoming>) -> Option<(Problem, Method, Uri)> {
        let Some(guard) = &self.guard else {
            let problem = self.head_too_large(request)?;
            return Some((problem, request.method().clone(), request.uri().clone()));
        };
        let rejection = guard.take_rejection(request.uri().path())?;
        let (method, uri) = rejection.asked.unwrap_or_default();
        let (slug, title) = match rejection.status {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => HEAD_TOO_LARGE,
            StatusCode::REQUEST_TIMEOUT => ("head-timeout", "Request head too slow"),
            _ => ("bad-framing", "Bad request framing"),
        };
        let problem = Problem::new(rejection.status, slug, title, rejection.reason.to_string());
        Some((problem, method, uri))
    }

    /// On HTTP/2, whose heads no guard has read.
    fn head_too_large(&self, request: &Request<Incoming>) -> Option<Problem> {
        let limits = &self.worker.engine.live().config.limits;
        let (count, bytes) = (limits.header_count, limits.header_bytes);
        let reason = if request.headers().len() > count {
            FramingError::TooManyFields { limit: count }
        } else if header_list_size(request) > bytes {
            FramingError::HeadTooLarge { limit: bytes }
        } else {
            return None;
        };
        let (slug, title) = HEAD_TOO_LARGE;
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Some(Problem::new(status, slug, title, reason.to_string()))
    }

    /// Refuses what never became an exchange; it is written down all the same.
    pub(crate) fn refuse(
        self: &Rc<Self>,
        problem: &Problem,
        method: &Method,
        uri: &Uri,
    ) -> Response<Observed> {
        let engine = &self.worker.engine;
        let url = if uri.authority().is_some() {
            uri.to_string()
        } else {
            format!("http://{}{}", self.control.local(), uri.path())
        };
        let started = Instant::now();
        let chaos = engine.chaos.scope(None);
        let note = ExchangeNote::new(
            engine.recorder.begin(started),
            started,
            &chaos,
            Kind::Other,
            method.clone(),
            url,
        );
        let log = ExchangeLog::open(self, note, chaos);
        log.end(Outcome::Denied, Some(problem.detail.clone()));
        self.problem(problem, Some(&log))
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

    /// An answer of the proxy's own.
    pub(crate) fn problem(
        self: &Rc<Self>,
        problem: &Problem,
        log: Option<&Rc<ExchangeLog>>,
    ) -> Response<Observed> {
        let reply = problem.to_reply();
        let mut answer = Response::new(body::full(reply.body));
        *answer.status_mut() = reply.status;
        *answer.headers_mut() = reply.headers;
        if problem.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            let challenge = HeaderValue::from_static("Basic realm=\"squall scope\"");
            answer.headers_mut().insert(PROXY_AUTHENTICATE, challenge);
        }
        if !self.is_h2() && closes(problem.status) {
            answer
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.tell_last(&mut answer);
        if let Some(log) = log {
            log.answered(reply.status);
            log.captured_head(reply.status, answer.headers());
        }
        answer.map(|body| Observed::new(body, self, log.cloned()))
    }

    /// The scope of a request inside HTTP.
    pub(crate) fn scope_of(
        &self,
        live: &Live,
        request: &Request<Incoming>,
        target: &Target,
    ) -> Result<Option<Arc<str>>, Problem> {
        let credentials = live.config.credentials;
        let through_proxy = matches!(self.entry, Entry::Door(Door::Main)) && target.is_forward;
        if through_proxy && credentials == Credentials::Required {
            required(request)?;
        }
        let use_credentials = through_proxy && credentials != Credentials::None;
        let aliases = self.worker.engine.chaos.aliases();
        route::scope_of(request, target, use_credentials, aliases)
    }

    /// What those who carry out a plan on an exchange of this connection need to know.
    pub(crate) fn context(&self, log: &Rc<ExchangeLog>, method: &Method) -> Context {
        Context {
            ledger: Rc::clone(log) as Rc<dyn Ledger>,
            agent: self.agent.clone(),
            method: method.clone(),
            seed: log.seed(),
            account: log.account(),
            inspect: self.worker.engine.inspect.clone(),
        }
    }
}

/// The kind and the title of the problem of a head beyond its bounds.
const HEAD_TOO_LARGE: (&str, &str) = ("head-too-large", "Request head too large");

/// The size of a head as HTTP/2 counts it: names, values and 32 bytes a field (RFC 9113 §6.5.2).
fn header_list_size(request: &Request<Incoming>) -> usize {
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + 32);
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    fields.sum::<usize>() + target
}

/// The scope of a CONNECT: only credentials can name it.
pub(crate) fn connect_scope(
    live: &Live,
    request: &Request<Incoming>,
) -> Result<Option<Arc<str>>, Problem> {
    match live.config.credentials {
        Credentials::None => return Ok(None),
        Credentials::Required => required(request)?,
        Credentials::Scope => {}
    }
    let user = scope::of_credentials(request.headers()).map_err(|bad| route::bad_scope(&bad))?;
    Ok(user.filter(|user| !user.is_empty()).map(Arc::from))
}

/// Answers after which an HTTP/1 connection cannot go on: what follows is not known to be HTTP.
fn closes(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    )
}

/// Says what to write when proxy credentials must be given and are not.
fn required(request: &Request<Incoming>) -> Result<(), Problem> {
    match scope::of_credentials(request.headers()) {
        Ok(Some(user)) if !user.is_empty() => Ok(()),
        Ok(_) | Err(scope::BadScope::Credentials) => Err(Problem::new(
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            "credentials-required",
            "Proxy credentials required",
            "name a scope as the proxy user, such as HTTP_PROXY=http://SCOPE:x@HOST:PORT; \
             `proxy.credentials: required` asks for it",
        )),
        Err(bad) => Err(route::bad_scope(&bad)),
    }
}

/// Runs hyper's own tasks on this worker's thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future + 'static,
{
    fn execute(&self, task: F) {
        tokio::task::spawn_local(async move {
            task.await;
        });
    }
}
