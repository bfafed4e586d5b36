//! An upstream's WebSocket under network faults.
//!
//! ```text
//! upstream ─▶ shape ─▶ the first rule's message on ─▶ … ─▶ splice or session ─▶ agent
//! ```
//!
//! Whatever serves the upgrade sees an upstream that is slow, silent or gone, and does to the agent what it
//! does then.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::SizeHint;
use http_body_util::BodyExt as _;
use squall_profiles::plan::{Ending, Plan, Shape, SocketChange, SocketFault, VerdictIndex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::frames::close_frame;
use crate::abort::Abort;
use crate::body::agent::AgentSide;
use crate::body::scripted::{FrameSink, Scripted};
use crate::body::{self, AgentBody};
use crate::exchange::connection::Io;
use crate::faults::hold::hold_until;
use crate::faults::{FaultContext, Ledger, VerdictReport, shape};
use crate::frames::MessageFinder;

/// Read buffer size, bytes.
const PIECE: usize = 16 << 10;

/// Most bytes that wait for a delay; the upstream waits beyond them.
const DELAYED: usize = 1 << 20;

/// The faults of a plan that act on a WebSocket after its 101.
pub(crate) struct SocketFaults {
    shape: Shape,
    faults: Vec<(VerdictIndex, SocketFault)>,
    context: FaultContext,
}

impl SocketFaults {
    /// Takes them from a plan; `None` if there are none. `shapes`: rules without `websocket` shape its bytes.
    pub(crate) fn of(plan: &mut Plan, shapes: bool, context: FaultContext) -> Option<Self> {
        let shape = if shapes {
            Shape {
                up: None,
                ..std::mem::take(&mut plan.shape)
            }
        } else {
            Shape::default()
        };
        let faults = std::mem::take(&mut plan.websocket);
        (!shape.is_empty() || !faults.is_empty()).then(|| Self {
            shape,
            faults,
            context: FaultContext {
                // hyper has given the connection away, so no flush of it is awaited.
                agent: AgentSide::Http2,
                ..context
            },
        })
    }

    /// The rules behind them.
    pub(crate) fn verdicts(&self) -> Vec<VerdictIndex> {
        let faults = self.faults.iter().map(|(verdict, _)| *verdict);
        self.shape.verdicts().into_iter().chain(faults).collect()
    }

    /// The upstream under these faults.
    pub(crate) fn act_on(self, upstream: Io) -> Io {
        let (from, to) = tokio::io::split(upstream);
        let failure = Rc::new(Cell::new(None));
        let agent_closed = Rc::new(Notify::new());
        let source = read_from(from, Rc::clone(&failure));
        let source = body::boxed(Scripted::new(SizeHint::new(), source));
        let mut body = shape::shaped(&self.shape, source, None, &self.context);
        for (verdict, fault) in self.faults {
            let stage = FaultStage {
                report: VerdictReport::new(&self.context, verdict),
                context: self.context.clone(),
                agent_closed: Rc::clone(&agent_closed),
            };
            let script = |out| stage.run(fault, body, out);
            body = body::boxed(Scripted::new(SizeHint::new(), script));
        }
        Box::new(FaultedUpstream {
            body: Some(body),
            piece: Bytes::new(),
            to: Some(to),
            failure,
            agent_closed,
            ledger: self.context.ledger,
        })
    }
}

/// The upstream's bytes as a body. Why it broke off is left in `failure`.
fn read_from(
    mut from: ReadHalf<Io>,
    failure: Rc<Cell<Option<io::Error>>>,
) -> impl FnOnce(FrameSink) -> Pin<Box<dyn Future<Output = Result<(), Abort>>>> {
    |out| {
        Box::pin(async move {
            let mut buffer = BytesMut::new();
            loop {
                buffer.reserve(PIECE);
                match from.read_buf(&mut buffer).await {
                    Ok(0) => return Ok(()),
                    Ok(_) => out.data(buffer.split().freeze(), false).await,
                    Err(error) => {
                        failure.set(Some(error));
                        return Err(Abort::close("the upstream broke off"));
                    }
                }
            }
        })
    }
}

/// One rule's fault on the bytes to the agent.
struct FaultStage {
    report: VerdictReport,
    context: FaultContext,
    agent_closed: Rc<Notify>,
}

impl FaultStage {
    async fn run(
        mut self,
        fault: SocketFault,
        mut body: AgentBody,
        out: FrameSink,
    ) -> Result<(), Abort> {
        if let SocketChange::Delay(wait) = fault.change {
            return self.delay(wait, fault.message, body, out).await;
        }
        let number = fault.message.unwrap_or(1);
        let Some(rest) = self.pass_until(number, &mut body, &out).await? else {
            return Ok(());
        };
        match fault.change {
            SocketChange::Delay(_) => Ok(()),
            SocketChange::Shape(shape) => {
                let rest = body::boxed(Scripted::new(SizeHint::new(), |out| async move {
                    out.data(rest, false).await;
                    pass(&mut body, &out).await
                }));
                let mut shaped = shape::shaped(&shape, rest, None, &self.context);
                pass(&mut shaped, &out).await
            }
            SocketChange::HalfOpen => {
                self.report.applied();
                let read_on = async {
                    while let Some(Ok(_)) = body.frame().await {}
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    () = read_on => {}
                    () = self.agent_closed.notified() => {}
                }
                Ok(())
            }
            SocketChange::Close(code) => {
                self.report.applied();
                if code != NO_FRAME {
                    out.data(close_frame(code, "", None), false).await;
                }
                Err(Abort::close(format!("closed with {code} by a rule")).by_rule())
            }
        }
    }

    /// Passes what comes before a message; returns the first bytes of it. `None`: everything has passed.
    async fn pass_until(
        &mut self,
        number: u64,
        body: &mut AgentBody,
        out: &FrameSink,
    ) -> Result<Option<Bytes>, Abort> {
        let mut messages = MessageFinder::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.inspect_err(|_| self.ended_before(number))?;
            let Ok(mut bytes) = frame.into_data() else {
                continue;
            };
            match messages.find(number, &bytes) {
                Ok(None) => out.data(bytes, false).await,
                Ok(Some(begin)) => {
                    let before = bytes.split_to(begin);
                    if !before.is_empty() {
                        out.data(before, false).await;
                    }
                    return Ok(Some(bytes));
                }
                Err(not_frames) => {
                    self.report.bypassed(not_frames.to_string());
                    out.data(bytes, false).await;
                    pass(body, out).await?;
                    return Ok(None);
                }
            }
        }
        self.ended_before(number);
        Ok(None)
    }

    /// Delays a message, or every message. What follows a delayed message waits behind it.
    async fn delay(
        mut self,
        wait: Duration,
        message: Option<u64>,
        mut body: AgentBody,
        out: FrameSink,
    ) -> Result<(), Abort> {
        let mut queue = DelayQueue::new(wait, message);
        let mut ended = None;
        loop {
            let due = queue.pieces.front().map(|(due, _)| *due);
            let ledger = Rc::clone(self.report.ledger());
            let wait = async {
                if let Some(due) = due.filter(|due| *due > Instant::now()) {
                    hold_until(due, &ledger).await;
                }
            };
            tokio::select! {
                biased;
                () = wait, if due.is_some() => {
                    if let Some(piece) = queue.pop() {
                        out.data(piece, false).await;
                    }
                }
                frame = body.frame(), if ended.is_none() && queue.bytes < DELAYED => match frame {
                    Some(Ok(frame)) => {
                        if let Ok(bytes) = frame.into_data() {
                            queue.push(bytes, &mut self.report);
                        }
                    }
                    Some(Err(broken)) => ended = Some(Err(broken)),
                    None => ended = Some(Ok(())),
                },
                else => break,
            }
        }
        self.ended_before(message.unwrap_or(1));
        ended.unwrap_or(Ok(()))
    }

    fn ended_before(&mut self, number: u64) {
        let why = format!("the WebSocket ended before message {number}");
        self.report.bypassed(why);
    }
}

/// The Close code that no frame carries.
const NO_FRAME: u16 = 1006;

/// Passes the rest of a body.
async fn pass(body: &mut AgentBody, out: &FrameSink) -> Result<(), Abort> {
    while let Some(frame) = body.frame().await {
        out.pass(frame?, body).await;
    }
    Ok(())
}

/// Bytes that wait for their time, in order.
struct DelayQueue {
    wait: Duration,
    /// The next message to delay; `None` once there is none.
    next: Option<u64>,
    /// Whether every message is delayed.
    is_every: bool,
    messages: MessageFinder,
    pieces: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    /// When the last piece is due.
    last: Instant,
}

impl DelayQueue {
    fn new(wait: Duration, message: Option<u64>) -> Self {
        Self {
            wait,
            next: Some(message.unwrap_or(1)),
            is_every: message.is_none(),
            messages: MessageFinder::default(),
            pieces: VecDeque::new(),
            bytes: 0,
            last: Instant::now(),
        }
    }

    /// Adds bytes that have arrived.
    fn push(&mut self, mut bytes: Bytes, report: &mut VerdictReport) {
        while let Some(number) = self.next {
            match self.messages.find(number, &bytes) {
                Ok(None) => break,
                Ok(Some(begin)) => {
                    report.applied();
                    self.add(bytes.split_to(begin));
                    self.last = self.last.max(Instant::now() + self.wait);
                    self.next = self.is_every.then_some(number + 1);
                }
                Err(not_frames) => {
                    report.bypassed(not_frames.to_string());
                    self.next = None;
                }
            }
        }
        self.add(bytes);
    }

    fn add(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.bytes += bytes.len();
            self.last = self.last.max(Instant::now());
            self.pieces.push_back((self.last, bytes));
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        let (_, piece) = self.pieces.pop_front()?;
        self.bytes -= piece.len();
        Some(piece)
    }
}

/// The upstream as it is served to the agent.
struct FaultedUpstream {
    /// What reaches the agent; `None` once it has ended.
    body: Option<AgentBody>,
    /// The rest of a piece of it.
    piece: Bytes,
    /// `None` once a rule has ended the connection; what the agent sends then is dropped.
    to: Option<WriteHalf<Io>>,
    failure: Rc<Cell<Option<io::Error>>>,
    /// The agent sends no more.
    agent_closed: Rc<Notify>,
    ledger: Rc<dyn Ledger>,
}

impl FaultedUpstream {
    /// Ends the connection as the abort says.
    fn end(&mut self, abort: &Abort) -> io::Result<()> {
        self.body = None;
        if !abort.is_by_rule() {
            let failure = self.failure.take();
            return Err(failure.unwrap_or_else(|| io::Error::other(abort.to_string())));
        }
        self.ledger.ended_by_rule();
        self.to = None;
        match abort.ending() {
            Ending::Close => Ok(()),
            Ending::Reset => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }
}

impl AsyncRead for FaultedUpstream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.piece.is_empty() {
            let Some(body) = &mut this.body else {
                return Poll::Ready(Ok(()));
            };
            match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => this.piece = frame.into_data().unwrap_or_default(),
                Some(Err(abort)) => return Poll::Ready(this.end(&abort)),
                None => this.body = None,
            }
        }
        let length = this.piece.len().min(buf.remaining());
        buf.put_slice(&this.piece.split_to(length));
        if this.piece.is_empty() {
            // A cut waits until its last piece is dropped.
            this.piece = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FaultedUpstream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.to {
            Some(to) => Pin::new(to).poll_write(cx, buf),
            None => Poll::Ready(Ok(buf.len())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.to {
            Some(to) => Pin::new(to).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.agent_closed.notify_one();
        match &mut self.to {
            Some(to) => Pin::new(to).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
#[path = "faulted/tests.rs"]
mod tests;
