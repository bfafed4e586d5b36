//! A WebSocket of model calls, from its 101 to its end.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use squall_journal::id::ExchangeId;
use squall_journal::record::Outcome;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{Notify, mpsc};

use super::frames::{
    MessageInflater, MessageReader, Sender, SocketMessage, Violation, close_frame, is_binary,
};
use super::negotiation::{ModelSocket, extensions};
use super::protocol::{CallEvent, EventsBeside, OpenCall, Routing};
use super::state::{QueuedWrite, RunningCall, SocketState, mask, pass};
use super::turn::{CallEvents, SocketCall};
use crate::exchange::connection::{Connection, Ingress, RunStage};
use crate::exchange::log::ExchangeLog;
use crate::exchange::splice::read;
use crate::exchange::worker::ExchangeWorker;
use crate::http1::Control;

/// Read buffer size, bytes.
const PIECE: usize = 16 << 10;

/// Pieces that wait to be written, in each direction.
const QUEUE: usize = 16;

/// Most responses in progress; calls beyond them pass without an exchange.
const CALLS: usize = 64;

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
    connection: Rc<Control>,
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
        connection,
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
    let reads_binary = socket.protocol.reads_binary();
    let agent_reader =
        MessageReader::new(Sender::Agent, limit, agent_inflate).reading_binary(reads_binary);
    let upstream_reader =
        MessageReader::new(Sender::Upstream, limit, upstream_inflate).reading_binary(reads_binary);
    let (from_agent, mut agent_out) = tokio::io::split(agent);
    let (from_upstream, mut upstream_out) = tokio::io::split(upstream);
    let (to_agent, agent_queue) = mpsc::channel(QUEUE);
    let (to_upstream, upstream_queue) = mpsc::channel(QUEUE);
    let session = Rc::new(SocketState {
        worker,
        control,
        connection,
        ingress,
        run_stage,
        prefix: RefCell::new(socket.protocol.prefix()),
        socket,
        log: Rc::clone(&log),
        to_agent,
        to_upstream,
        exchange,
        is_compressed,
        decides: Cell::new(false),
        upstream_is_busy: Cell::new(false),
        upstream_is_closed: Cell::new(false),
        upstream_is_binary: Cell::new(reads_binary),
        is_closed: Cell::new(false),
        is_after_tool_call: Cell::new(false),
        is_turn_replaced: Cell::new(false),
        calls: RefCell::default(),
        unsent: RefCell::default(),
        tasks: RefCell::default(),
        running: Cell::new(0),
        has_binary: Cell::new(false),
        call_changed: Notify::new(),
    });
    let both = async {
        tokio::try_join!(
            session.read_agent(from_agent, agent_reader),
            session.read_upstream(from_upstream, upstream_reader),
            write(
                agent_queue,
                &mut agent_out,
                &session.control,
                Break::Agent,
                |bytes| log.sent_to_agent(bytes)
            ),
            write(
                upstream_queue,
                &mut upstream_out,
                &session.control,
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
    control: &Control,
    failed: fn(io::Error) -> Break,
    passed: impl Fn(&Bytes),
) -> Result<(), Break> {
    loop {
        match queue.recv().await {
            Some(QueuedWrite::Bytes(bytes)) => {
                out.write_all(&bytes).await.map_err(failed)?;
                out.flush().await.map_err(failed)?;
                passed(&bytes);
            }
            Some(QueuedWrite::Cut { reset }) => {
                if reset {
                    control.reset_on_close();
                }
                return Err(Break::Cut);
            }
            Some(QueuedWrite::End) | None => return out.shutdown().await.map_err(failed),
        }
    }
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
        if socket.unread(answer).is_some() {
            return None;
        }
        let inflate = extensions(answer).ok()?;
        let mut exchange = None;
        log.note(|note| exchange = Some(note.id));
        Some(Self {
            exchange: exchange?,
            worker: Rc::clone(&connection.worker),
            control: connection.end(),
            connection: Rc::clone(&connection.control),
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
                if self.is_closed.get() {
                    return Err(Break::Cut);
                }
                pass(&self.to_upstream, QueuedWrite::End).await;
                return Ok(());
            }
            let bytes = buffer.split().freeze();
            if reader.is_between_messages() && self.is_idle() {
                self.decides.set(!self.is_compressed && self.may_fault());
            }
            reader.push(&bytes);
            let decides = self.decides.get();
            if !decides {
                pass(&self.to_upstream, QueuedWrite::Bytes(bytes)).await;
            }
            while let Some(message) = reader.next().map_err(broke)? {
                let frames = match message {
                    SocketMessage::Text { text, frames } => {
                        let protocol = self.socket.protocol;
                        let call = protocol.read(&text);
                        if let Some(prefix) = call.live.prefix() {
                            self.prefix.replace(prefix);
                        }
                        self.calls_before(call.lane().as_ref()).await;
                        let begins = protocol.begins(&call, &self.calls.borrow());
                        if begins && self.running.get() < CALLS && !self.is_closed.get() {
                            self.begin(&call, text.clone(), self.decides.get());
                            continue;
                        }
                        frames
                    }
                    SocketMessage::Unread { .. } if decides && reader.is_inside_message() => {
                        return Err(broke(Violation::TooLong));
                    }
                    SocketMessage::Unread { frames } => {
                        self.bypass_binary();
                        frames
                    }
                    SocketMessage::Close { frames, .. } => {
                        self.agent_closed();
                        frames
                    }
                    SocketMessage::Control { frames } => frames,
                };
                if decides {
                    pass(&self.to_upstream, QueuedWrite::Bytes(frames)).await;
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
                pass(&self.to_agent, QueuedWrite::End).await;
                return Ok(());
            }
            let bytes = buffer.split().freeze();
            self.upstream_is_busy.set(true);
            reader.push(&bytes);
            let decides = self.decides.get();
            if !decides {
                pass(&self.to_agent, QueuedWrite::Bytes(bytes)).await;
            }
            while let Some(message) = reader.next().map_err(broke)? {
                let frames = match message {
                    SocketMessage::Text { text, frames } => {
                        self.upstream_is_binary.set(is_binary(&frames));
                        if self.route(text).await.map_err(broke)? {
                            continue;
                        }
                        frames
                    }
                    SocketMessage::Unread { .. } if decides && reader.is_inside_message() => {
                        return Err(broke(Violation::TooLong));
                    }
                    SocketMessage::Close { frames, .. } => {
                        self.upstream_closed().await;
                        frames
                    }
                    other => other.into_frames(),
                };
                if decides {
                    pass(&self.to_agent, QueuedWrite::Bytes(frames)).await;
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
                close(agent, close_frame(code, "", None)).await;
                close(upstream, close_frame(code, "", Some(mask()))).await;
                log.end(
                    outcome,
                    Some(format!(
                        "the {who} broke the WebSocket protocol: {violation}"
                    )),
                );
            }
        }
    }

    /// Serves a message that begins a call as an exchange, which sends it if `is_unsent`.
    fn begin(self: &Rc<Self>, call: &Routing<'_>, message: Bytes, is_unsent: bool) {
        let (events, received) = mpsc::unbounded_channel();
        let lane = call.lane();
        let beside = EventsBeside::new();
        let received = CallEvents::new(received, self.socket.protocol, Rc::clone(&beside));
        let mut open = Some(OpenCall {
            lane: lane.clone(),
            event_id: call.event_id.clone(),
            has_begun: false,
            response: None,
            events,
            beside,
        });
        if is_unsent {
            self.unsent.borrow_mut().push(lane);
        } else if let Some(call) = open.take() {
            self.open(call);
        }
        let call = SocketCall::new(self, call, open, received);
        let running = RunningCall::new(self);
        self.spawn(async move {
            call.run(message).await;
            drop(running);
        });
    }

    /// Gives an event to its exchange; false if it belongs to none. An event that waits counts as
    /// memory of inspected bodies.
    async fn route(self: &Rc<Self>, text: Bytes) -> Result<bool, Violation> {
        let protocol = self.socket.protocol;
        let event = text.clone();
        let routing = protocol.read(&event);
        let is_left = self.is_left_of_turn(&routing.live);
        let mut place = if is_left {
            None
        } else {
            protocol.call_of(&routing, &mut self.calls.borrow_mut())
        };
        if place.is_none() && protocol.is_one_conversation() {
            self.calls_delivered().await;
        }
        if is_left && self.decides.get() && self.is_turn_replaced.get() {
            return Ok(true);
        }
        let begins = !is_left && protocol.begins_unasked(&routing);
        if place.is_none() && begins && self.running.get() < CALLS {
            self.begin(&Routing::default(), protocol.unasked(), false);
            place = protocol.call_of(&routing, &mut self.calls.borrow_mut());
        }
        let Some(place) = place else {
            return Ok(false);
        };
        let mut calls = self.calls.borrow_mut();
        let mut lease = self.worker.engine.inspect.lease();
        if lease.grow(text.len() as u64).is_err() {
            if self.decides.get() {
                return Err(Violation::TooLong);
            }
            // The agent has the event; only its exchange ends here.
            calls.remove(place);
            return Ok(true);
        }
        let ends = protocol.ends_response(&routing, &calls[place]);
        let text = lease.hold(text);
        let beside = Rc::clone(&calls[place].beside);
        let sent = calls[place].events.send(CallEvent { text, ends });
        if ends {
            calls.remove(place);
            self.is_after_tool_call.set(routing.live.calls_tools());
        }
        // Without a receiver, a rule has replaced the rest of the response.
        let Err(mpsc::error::SendError(replaced)) = sent else {
            return Ok(true);
        };
        Ok(!protocol.is_beside(&routing) || beside.keep(replaced.text))
    }

    /// The agent takes no more events, so its calls end.
    fn agent_closed(&self) {
        self.tasks.borrow_mut().abort_all();
    }

    /// No more events arrive. Waits until the exchanges have passed on those before.
    async fn upstream_closed(&self) {
        self.upstream_is_closed.set(true);
        self.calls.borrow_mut().clear();
        while self.running.get() > 0 {
            self.call_changed.notified().await;
        }
    }
}

/// Sends a Close frame, and closes.
async fn close(side: &mut (impl AsyncWrite + Unpin), frame: Bytes) {
    // A side that is gone gets none.
    if side.write_all(&frame).await.is_ok() {
        let _ = side.shutdown().await;
    }
}
