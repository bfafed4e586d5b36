//! A WebSocket of model calls, from its 101 to its end.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use squall_journal::id::ExchangeId;
use squall_journal::record::Outcome;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, mpsc};

use super::frames::{
    MessageInflater, MessageReader, Sender, SocketMessage, Violation, close_frame,
};
use super::negotiation::{ModelSocket, extensions};
use super::state::{OpenCall, QueuedWrite, RunningCall, SocketState, mask};
use super::turn::{Routing, SocketCall};
use crate::exchange::connection::{Connection, Ingress, RunStage};
use crate::exchange::log::ExchangeLog;
use crate::exchange::worker::ExchangeWorker;
use crate::http1::Control;

/// Read buffer size, bytes.
const PIECE: usize = 16 << 10;

/// Pieces that wait to be written, in each direction.
const QUEUE: usize = 16;

/// Events of a response that wait for its exchange.
const EVENTS: usize = 16;

/// Most responses in progress; calls beyond them pass without an exchange.
const TURNS: usize = 64;

/// Why a session ended before both sides closed.
enum Break {
    /// A rule has cut it, or an exchange had no response.
    Cut,
    Agent(io::Error),
    Upstream(io::Error),
    /// A side broke RFC 6455.
    Violation(Sender, Violation),
}

/// A socket after its 101.
pub(in crate::exchange) struct Upgraded {
    worker: Rc<ExchangeWorker>,
    control: Rc<Control>,
    ingress: Ingress,
    run_stage: RunStage,
    socket: ModelSocket,
    exchange: ExchangeId,
    /// Decompressors, the agent's first.
    inflate: [Option<MessageInflater>; 2],
    log: Rc<ExchangeLog>,
}

/// Serves a socket until it ends.
pub(in crate::exchange) async fn serve<A, U>(agent: A, upstream: U, upgraded: Upgraded)
where
    A: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let Upgraded {
        worker,
        control,
        ingress,
        run_stage,
        socket,
        exchange,
        inflate: [agent_inflate, upstream_inflate],
        log,
    } = upgraded;
    let limit =
        usize::try_from(worker.engine.compiled().config.inspect_limit).unwrap_or(usize::MAX);
    let is_compressed = agent_inflate.is_some();
    let agent_reader = MessageReader::new(Sender::Agent, limit, agent_inflate);
    let upstream_reader = MessageReader::new(Sender::Upstream, limit, upstream_inflate);
    let (from_agent, mut agent_out) = tokio::io::split(agent);
    let (from_upstream, mut upstream_out) = tokio::io::split(upstream);
    let (to_agent, agent_queue) = mpsc::channel(QUEUE);
    let (to_upstream, upstream_queue) = mpsc::channel(QUEUE);
    let session = Rc::new(SocketState {
        worker,
        control,
        ingress,
        run_stage,
        socket,
        log: Rc::clone(&log),
        to_agent,
        to_upstream,
        exchange,
        is_compressed,
        decides: Cell::new(false),
        upstream_is_busy: Cell::new(false),
        upstream_is_closed: Cell::new(false),
        turns: RefCell::default(),
        next_turn: Cell::default(),
        tasks: RefCell::default(),
        running: Cell::new(0),
        turn_ended: Notify::new(),
        cut: Notify::new(),
    });
    let both = async {
        tokio::try_join!(
            session.read_agent(from_agent, agent_reader),
            session.read_upstream(from_upstream, upstream_reader),
            write(agent_queue, &mut agent_out, Break::Agent, |bytes| log
                .sent_to_agent(bytes)),
            write(
                upstream_queue,
                &mut upstream_out,
                Break::Upstream,
                |bytes| log.sent_upstream(bytes)
            ),
        )
    };
    let over = async {
        match log.chaos().over() {
            Some(over) => over.await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        biased;
        ended = both => ended.map(|_| ()),
        () = session.cut.notified() => Err(Break::Cut),
        () = over => {
            session.tasks.borrow_mut().abort_all();
            log.is_over();
            return;
        }
    };
    session.tasks.borrow_mut().abort_all();
    match ended {
        Ok(()) => log.complete(),
        Err(broken) => {
            session
                .broke(broken, &mut agent_out, &mut upstream_out)
                .await;
        }
    }
}

async fn write<W: AsyncWrite>(
    mut queue: mpsc::Receiver<QueuedWrite>,
    out: &mut WriteHalf<W>,
    failed: fn(io::Error) -> Break,
    passed: impl Fn(&Bytes),
) -> Result<(), Break> {
    while let Some(QueuedWrite::Bytes(bytes)) = queue.recv().await {
        out.write_all(&bytes).await.map_err(failed)?;
        out.flush().await.map_err(failed)?;
        passed(&bytes);
    }
    out.shutdown().await.map_err(failed)
}

impl Upgraded {
    /// The socket of an upgrade that the upstream has accepted with `answer`; `None` if an extension
    /// cannot be read, so that its bytes only pass.
    pub(in crate::exchange) fn new(
        socket: ModelSocket,
        answer: &HeaderMap,
        connection: &Connection,
        log: &Rc<ExchangeLog>,
    ) -> Option<Self> {
        if socket.passes {
            return None;
        }
        let inflate = match extensions(answer) {
            Ok(inflate) => inflate,
            Err(extension) => {
                tracing::warn!(%extension, "a WebSocket of model calls passes unread: the extension is unknown");
                return None;
            }
        };
        let mut exchange = None;
        log.note(|note| exchange = Some(note.id));
        Some(Self {
            exchange: exchange?,
            worker: Rc::clone(&connection.worker),
            control: if connection.is_h2() {
                connection.control.of_stream()
            } else {
                Rc::clone(&connection.control)
            },
            ingress: connection.ingress.clone(),
            run_stage: connection.run_stage,
            socket,
            inflate,
            log: Rc::clone(log),
        })
    }
}

impl SocketState {
    async fn read_agent<R: AsyncRead>(
        self: &Rc<Self>,
        mut from: ReadHalf<R>,
        mut reader: MessageReader,
    ) -> Result<(), Break> {
        let broke = |violation| Break::Violation(Sender::Agent, violation);
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(PIECE);
            if read(&mut from, &mut buffer).await.map_err(Break::Agent)? == 0 {
                self.agent_closed();
                self.pass(&self.to_upstream, QueuedWrite::End).await;
                return Ok(());
            }
            let bytes = buffer.split().freeze();
            if reader.is_between_messages() && self.is_idle() {
                self.decides.set(!self.is_compressed && self.may_fault());
            }
            reader.push(&bytes);
            let decides = self.decides.get();
            if !decides {
                self.pass(&self.to_upstream, QueuedWrite::Bytes(bytes))
                    .await;
            }
            while let Some(message) = reader.next().map_err(broke)? {
                let frames = match message {
                    SocketMessage::Text { text, .. } if self.has_room_for(&text) => {
                        self.begin(Routing::of(&text), text);
                        continue;
                    }
                    SocketMessage::Close { frames, .. } => {
                        self.agent_closed();
                        frames
                    }
                    other => other.into_frames(),
                };
                if decides {
                    self.pass(&self.to_upstream, QueuedWrite::Bytes(frames))
                        .await;
                }
            }
        }
    }

    async fn read_upstream<R: AsyncRead>(
        self: &Rc<Self>,
        mut from: ReadHalf<R>,
        mut reader: MessageReader,
    ) -> Result<(), Break> {
        let broke = |violation| Break::Violation(Sender::Upstream, violation);
        let mut buffer = BytesMut::new();
        loop {
            buffer.reserve(PIECE);
            if read(&mut from, &mut buffer)
                .await
                .map_err(Break::Upstream)?
                == 0
            {
                self.upstream_closed().await;
                self.pass(&self.to_agent, QueuedWrite::End).await;
                return Ok(());
            }
            let bytes = buffer.split().freeze();
            reader.push(&bytes);
            let decides = self.decides.get();
            if !decides {
                self.pass(&self.to_agent, QueuedWrite::Bytes(bytes)).await;
            }
            while let Some(message) = reader.next().map_err(broke)? {
                let frames = match message {
                    SocketMessage::Text { text, frames } => {
                        if self.route(text).await {
                            continue;
                        }
                        frames
                    }
                    SocketMessage::Close { frames, .. } => {
                        self.upstream_closed().await;
                        frames
                    }
                    other => other.into_frames(),
                };
                if decides {
                    self.pass(&self.to_agent, QueuedWrite::Bytes(frames)).await;
                }
            }
            self.upstream_is_busy.set(!reader.is_between_messages());
        }
    }

    /// Ends a socket that broke.
    async fn broke(
        &self,
        broken: Break,
        agent: &mut (impl AsyncWrite + Unpin),
        upstream: &mut (impl AsyncWrite + Unpin),
    ) {
        let log = &self.log;
        let side = |error: io::Error, who| Some(format!("the {who} broke off: {error}"));
        match broken {
            Break::Cut => log.end(Outcome::Injected, None),
            Break::Agent(error) => log.end(Outcome::ClientGone, side(error, "agent")),
            Break::Upstream(error) => {
                if error.kind() == io::ErrorKind::ConnectionReset {
                    self.control.reset_on_close();
                }
                log.end(Outcome::UpstreamError, side(error, "upstream"));
            }
            Break::Violation(by, violation) => {
                let (outcome, who) = match by {
                    Sender::Agent => (Outcome::ClientGone, "agent"),
                    Sender::Upstream => (Outcome::UpstreamError, "upstream"),
                };
                let code = violation.code();
                close(agent, close_frame(code, None)).await;
                close(upstream, close_frame(code, Some(mask()))).await;
                log.end(
                    outcome,
                    Some(format!(
                        "the {who} broke the WebSocket protocol: {violation}"
                    )),
                );
            }
        }
    }

    fn has_room_for(&self, text: &[u8]) -> bool {
        Routing::of(text).kind == "response.create" && self.turns.borrow().len() < TURNS
    }

    /// Serves a `response.create` as an exchange.
    fn begin(self: &Rc<Self>, call: Routing, message: Bytes) {
        let (sender, events) = mpsc::channel(EVENTS);
        let id = self.next_turn.replace(self.next_turn.get() + 1);
        self.turns.borrow_mut().push(OpenCall {
            id,
            lane: call.stream_id.clone(),
            events: sender,
        });
        let turn = SocketCall::new(self, id, call, events);
        let running = RunningCall::new(self);
        self.spawn(async move {
            turn.run(message).await;
            drop(running);
        });
    }

    /// Gives an event to its exchange; false if it belongs to none.
    async fn route(&self, text: Bytes) -> bool {
        let routing = Routing::of(&text);
        let events = {
            let mut turns = self.turns.borrow_mut();
            let Some(place) = turns.iter().position(|turn| turn.lane == routing.stream_id) else {
                return false;
            };
            if routing.ends_response() {
                turns.remove(place).events
            } else {
                turns[place].events.clone()
            }
        };
        // Without a receiver, a rule has replaced the rest of the response.
        let _ = events.send(text).await;
        true
    }

    /// The agent takes no more events, so its calls end.
    fn agent_closed(&self) {
        self.tasks.borrow_mut().abort_all();
    }

    /// No more events arrive. Waits until the exchanges have passed on those before.
    async fn upstream_closed(&self) {
        self.upstream_is_closed.set(true);
        self.turns.borrow_mut().clear();
        while self.running.get() > 0 {
            self.turn_ended.notified().await;
        }
    }
}

/// Reads the next bytes; 0 at the end. TLS without a `close_notify` ends too: WebSocket has an end
/// of its own.
async fn read<R: AsyncRead>(from: &mut ReadHalf<R>, into: &mut BytesMut) -> io::Result<usize> {
    match from.read_buf(into).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}

/// Sends a Close frame, and closes.
async fn close(side: &mut (impl AsyncWrite + Unpin), frame: Bytes) {
    // A side that is gone gets none.
    if side.write_all(&frame).await.is_ok() {
        let _ = side.shutdown().await;
    }
}
