//! A stage for bodies: scripted upstreams, a ledger that remembers, agents that read to the end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use squall_dialects::{Dialect, Target};
use squall_profiles::plan::VerdictIndex;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::FaultContext;
use super::Ledger;
use super::edit::Speaking;
use crate::abort::Abort;
use crate::body::agent::AgentSide;
use crate::body::buffer::Inspect;
use crate::body::{self, AgentBody};
use crate::http1::Socket;
use crate::upstream::LocalExecutor;

/// What was reported.
#[derive(Default)]
pub(crate) struct Remembered {
    pub(crate) applied: RefCell<Vec<VerdictIndex>>,
    pub(crate) bypassed: RefCell<Vec<(VerdictIndex, String)>>,
    pub(crate) told_of: RefCell<Vec<(VerdictIndex, Vec<String>)>>,
    pub(crate) delays: RefCell<Vec<Duration>>,
}

impl Ledger for Remembered {
    fn applied(&self, verdict: VerdictIndex) {
        self.applied.borrow_mut().push(verdict);
    }
    fn bypassed(&self, verdict: VerdictIndex, why: String) {
        self.bypassed.borrow_mut().push((verdict, why));
    }
    fn changed_results(&self, verdict: VerdictIndex, tools: Vec<String>) {
        self.told_of.borrow_mut().push((verdict, tools));
    }
    fn delayed(&self, by: Duration) {
        self.delays.borrow_mut().push(by);
    }
}

impl Remembered {
    /// Asserts that exactly this rule was applied and none bypassed.
    pub(crate) fn only_applied(&self, verdict: VerdictIndex) {
        assert_eq!(
            *self.applied.borrow(),
            [verdict],
            "{:?}",
            self.bypassed.borrow()
        );
        assert!(self.bypassed.borrow().is_empty());
    }

    /// Asserts that exactly this rule was bypassed, for this reason, and none applied.
    pub(crate) fn only_bypassed(&self, verdict: VerdictIndex, why: &str) {
        assert!(self.applied.borrow().is_empty());
        assert_eq!(*self.bypassed.borrow(), [(verdict, why.to_owned())]);
    }

    pub(crate) fn waited(&self) -> Duration {
        self.delays.borrow().iter().sum()
    }
}

impl Abort {
    /// How it looks on HTTP/2.
    pub(crate) fn reason(&self) -> h2::Reason {
        let source = std::error::Error::source(self).unwrap();
        source
            .downcast_ref::<h2::Error>()
            .unwrap()
            .reason()
            .unwrap()
    }
}

/// A context whose reports are remembered; the agent speaks HTTP/2, so nothing waits for flushes.
pub(crate) fn context() -> (FaultContext, Rc<Remembered>) {
    let ledger = Rc::new(Remembered::default());
    let context = FaultContext {
        ledger: ledger.clone(),
        agent: AgentSide::Http2,
        on_websocket: false,
        method: Method::GET,
        seed: 7,
        account: 8,
        inspect: Inspect::new(1 << 20, 1 << 22),
    };
    (context, ledger)
}

/// A body that gives these frames, one per poll, and waits a turn before each if told to.
pub(crate) struct Script {
    frames: VecDeque<Result<Frame<Bytes>, Abort>>,
    length: Option<u64>,
    turns: bool,
    waited: bool,
}

/// These pieces, of unknown length in all.
pub(crate) fn pieces<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Script {
    let data = |piece: T| Ok(Frame::data(Bytes::copy_from_slice(piece.as_ref())));
    let frames = pieces.into_iter().map(data).collect();
    Script {
        frames,
        length: None,
        turns: false,
        waited: false,
    }
}

impl Script {
    /// Says beforehand how long it is.
    pub(crate) fn with_length(mut self) -> Self {
        self.length = Some(self.left());
        self
    }

    /// Waits a turn before every frame.
    pub(crate) fn with_turns(mut self) -> Self {
        self.turns = true;
        self
    }

    pub(crate) fn then_trailers(mut self, name: &'static str, value: &'static str) -> Self {
        let mut trailers = HeaderMap::new();
        trailers.insert(name, http::HeaderValue::from_static(value));
        self.frames.push_back(Ok(Frame::trailers(trailers)));
        self
    }

    pub(crate) fn then_breaks(mut self) -> Self {
        self.frames
            .push_back(Err(Abort::close("the upstream left")));
        self
    }

    pub(crate) fn response(self) -> Response<AgentBody> {
        Response::new(body::boxed(self))
    }

    fn left(&self) -> u64 {
        let data = self.frames.iter().flatten().filter_map(Frame::data_ref);
        data.map(|data| data.len() as u64).sum()
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        if self.turns && !std::mem::replace(&mut self.waited, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.waited = false;
        Poll::Ready(self.frames.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.length.is_some() && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.length.is_some() {
            SizeHint::with_exact(self.left())
        } else {
            SizeHint::new()
        }
    }
}

/// What came of reading a body to its end.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    pub(crate) bytes: Vec<u8>,
    /// Every piece: when it came, counted from the start, and how long it was.
    pub(crate) pieces: Vec<(Duration, usize)>,
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) error: Option<Abort>,
    pub(crate) took: Duration,
}

/// Reads a body as hyper does: no further than the end it announces.
pub(crate) async fn drain(body: impl Body<Data = Bytes, Error = Abort>) -> Drained {
    let mut body = std::pin::pin!(body);
    let began = Instant::now();
    let mut drained = Drained::default();
    while !body.is_end_stream() {
        match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            None => break,
            Some(Err(error)) => {
                drained.error = Some(error);
                break;
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    drained.pieces.push((began.elapsed(), data.len()));
                    drained.bytes.extend_from_slice(&data);
                }
                Err(frame) => drained.trailers = frame.into_trailers().ok(),
            },
        }
    }
    drained.took = began.elapsed();
    drained
}

/// Runs a test's future on a clock that jumps from one wait to the next.
pub(crate) fn paused<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(test)
}

/// Runs a test's future with real sockets and tasks of this thread's own.
pub(crate) fn on_the_wire<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

/// Serves one HTTP/1.1 connection whose every request is answered by `answer`; gives the agent's
/// end of it.
pub(crate) async fn http1<F>(
    answer: impl Fn(Request<Incoming>, AgentSide) -> F + 'static,
) -> TcpStream
where
    F: Future<Output = Result<Response<AgentBody>, Abort>> + 'static,
{
    let (server, agent) = connection().await;
    let wire = Socket::new(server).unwrap();
    let (side, io) = AgentSide::http1(wire.control(), TokioIo::new(wire));
    let service = service_fn(move |request| answer(request, side.clone()));
    tokio::task::spawn_local(async move {
        // What the agent sees is the test's business.
        let _ended = hyper::server::conn::http1::Builder::new()
            .serve_connection(io, service)
            .await;
    });
    agent
}

/// Serves one HTTP/2 connection like [`http1`]; gives a client on it.
pub(crate) async fn http2<F>(
    window: u32,
    answer: impl Fn(Request<Incoming>) -> F + 'static,
) -> hyper::client::conn::http2::SendRequest<http_body_util::Empty<Bytes>>
where
    F: Future<Output = Result<Response<AgentBody>, Abort>> + 'static,
{
    let (server, agent) = connection().await;
    let service = service_fn(answer);
    tokio::task::spawn_local(async move {
        let builder = hyper::server::conn::http2::Builder::new(LocalExecutor);
        let _ended = builder
            .serve_connection(TokioIo::new(server), service)
            .await;
    });
    let (client, connection) = hyper::client::conn::http2::Builder::new(LocalExecutor)
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(agent))
        .await
        .unwrap();
    tokio::task::spawn_local(async move {
        let _ended = connection.await;
    });
    client
}

/// Two ends of a connection over loopback; the first hardly buffers in the kernel.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let agent = TcpStream::connect(listener.local_addr().unwrap());
    let (server, agent) = tokio::join!(listener.accept(), agent);
    let (server, agent) = (server.unwrap().0, agent.unwrap());
    socket2::SockRef::from(&server)
        .set_send_buffer_size(16 << 10)
        .unwrap();
    socket2::SockRef::from(&agent)
        .set_recv_buffer_size(16 << 10)
        .unwrap();
    (server, agent)
}

/// Reads until the connection ends, one way or the other.
pub(crate) async fn read_to_end(agent: &mut TcpStream) -> (Vec<u8>, io::Result<()>) {
    let mut all = Vec::new();
    let end = agent.read_to_end(&mut all).await;
    (all, end.map(|_| ()))
}

/// Head and body of a raw answer.
pub(crate) fn split(answer: &[u8]) -> (String, Vec<u8>) {
    let end = memchr::memmem::find(answer, b"\r\n\r\n").expect("a complete head") + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    (head, answer[end..].to_vec())
}

/// The data of a chunked body, and whether its last chunk came.
pub(crate) fn dechunk(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut data = Vec::new();
    while let Some(line) = memchr::memmem::find(body, b"\r\n") {
        let size = std::str::from_utf8(&body[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (data, true);
        }
        let rest = &body[line + 2..];
        data.extend_from_slice(&rest[..size.min(rest.len())]);
        body = rest.get(size + 2..).unwrap_or_default();
    }
    (data, false)
}

/// Lets every other task that can run do so, a good many times.
pub(crate) async fn let_others_run() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// A body with frames that the test triggers.
pub(crate) struct Late {
    told: tokio::sync::oneshot::Receiver<()>,
    data: Option<Bytes>,
}

impl Late {
    pub(crate) fn new(told: tokio::sync::oneshot::Receiver<()>, data: &'static str) -> Self {
        Self {
            told,
            data: Some(Bytes::from_static(data.as_bytes())),
        }
    }
}

impl Body for Late {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        if self.data.is_some() {
            let _told = ready!(Pin::new(&mut self.told).poll(cx));
        }
        Poll::Ready(self.data.take().map(|data| Ok(Frame::data(data))))
    }
}

/// A model call in this dialect, of which nothing else is known.
pub(crate) fn speaking(dialect: &'static dyn Dialect) -> Speaking<'static> {
    Speaking {
        dialect,
        target: Target::default(),
        request: None,
        body: None,
        credential: None,
    }
}
