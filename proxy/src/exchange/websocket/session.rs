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
use tokio::task::JoinSet;

use super::frames::{Inflate, Message, MessageReader, Sender, Violation, close_frame, text_frame};
use super::negotiation::{ModelSocket, extensions};
use super::turn::{Routing, Turn};
use crate::exchange::connection::{Connection, ConnectionStage, Ingress, Io, RunStage};
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

/// One socket.
pub(super) struct Session {
    pub(super) worker: Rc<ExchangeWorker>,
    pub(super) control: Rc<Control>,
    /// How the upgrade came in.
    pub(super) ingress: Ingress,
    run_stage: RunStage,
    pub(super) socket: ModelSocket,
    log: Rc<ExchangeLog>,
    to_agent: mpsc::Sender<Piece>,
    to_upstream: mpsc::Sender<Piece>,
    /// The exchange of the upgrade.
    pub(super) exchange: ExchangeId,
    /// `permessage-deflate` is in use.
    pub(super) is_compressed: bool,
    /// Whether exchanges decide what is sent. It changes only while nothing is in progress.
    decides: Cell<bool>,
    /// Whether the upstream is in the middle of a message.
    upstream_is_busy: Cell<bool>,
    upstream_is_closed: Cell<bool>,
    turns: RefCell<Vec<OpenTurn>>,
    next_turn: Cell<u64>,
    tasks: RefCell<JoinSet<()>>,
    /// Exchanges in progress.
    running: Cell<usize>,
    turn_ended: Notify,
    cut: Notify,
}

/// A response that the upstream has not ended.
struct OpenTurn {
    id: u64,
    lane: Option<String>,
    events: mpsc::Sender<Bytes>,
}

/// Counts an exchange while it runs.
struct RunningTurn(Rc<Session>);

impl RunningTurn {
    fn new(session: &Rc<Session>) -> Self {
        session.running.set(session.running.get() + 1);
        Self(Rc::clone(session))
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
        self.0.turn_ended.notify_waiters();
    }
}

/// What is written to a side.
enum Piece {
    Bytes(Bytes),
    /// The other side has closed.
    End,
}

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
    inflate: [Option<Inflate>; 2],
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
    let session = Rc::new(Session {
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
    mut queue: mpsc::Receiver<Piece>,
    out: &mut WriteHalf<W>,
    failed: fn(io::Error) -> Break,
    passed: impl Fn(&Bytes),
) -> Result<(), Break> {
    while let Some(Piece::Bytes(bytes)) = queue.recv().await {
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

impl Session {
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
                self.pass(&self.to_upstream, Piece::End).await;
                return Ok(());
            }
            let bytes = buffer.split().freeze();
            if reader.is_between_messages() && self.is_idle() {
                self.decides.set(!self.is_compressed && self.may_fault());
            }
            reader.push(&bytes);
            let decides = self.decides.get();
            if !decides {
                self.pass(&self.to_upstream, Piece::Bytes(bytes)).await;
            }
            while let Some(message) = reader.next().map_err(broke)? {
                let frames = match message {
                    Message::Text { text, .. } if self.has_room_for(&text) => {
                        self.begin(Routing::of(&text), text);
                        continue;
                    }
                    Message::Close { frames, .. } => {
                        self.agent_closed();
                        frames
                    }
                    other => other.into_frames(),
                };
                if decides {
                    self.pass(&self.to_upstream, Piece::Bytes(frames)).await;
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
                self.pass(&self.to_agent, Piece::End).await;
                return Ok(());
            }
            let bytes = buffer.split().freeze();
            reader.push(&bytes);
            let decides = self.decides.get();
            if !decides {
                self.pass(&self.to_agent, Piece::Bytes(bytes)).await;
            }
            while let Some(message) = reader.next().map_err(broke)? {
                let frames = match message {
                    Message::Text { text, frames } => {
                        if self.route(text).await {
                            continue;
                        }
                        frames
                    }
                    Message::Close { frames, .. } => {
                        self.upstream_closed().await;
                        frames
                    }
                    other => other.into_frames(),
                };
                if decides {
                    self.pass(&self.to_agent, Piece::Bytes(frames)).await;
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

    /// Whether no message and no response is in progress.
    fn is_idle(&self) -> bool {
        self.running.get() == 0 && self.turns.borrow().is_empty() && !self.upstream_is_busy.get()
    }

    /// Whether a rule or a tape of the scope may apply to the next call.
    fn may_fault(&self) -> bool {
        let scope = self.log.chaos().scope().to_owned();
        let chaos = self.worker.engine.chaos.scope(Some(&scope));
        !chaos.activation().snapshot().is_empty()
            || self.worker.engine.chaos.tape_of(&chaos).is_some()
    }

    fn has_room_for(&self, text: &[u8]) -> bool {
        Routing::of(text).kind == "response.create" && self.turns.borrow().len() < TURNS
    }

    /// Serves a `response.create` as an exchange.
    fn begin(self: &Rc<Self>, call: Routing, message: Bytes) {
        let (sender, events) = mpsc::channel(EVENTS);
        let id = self.next_turn.replace(self.next_turn.get() + 1);
        self.turns.borrow_mut().push(OpenTurn {
            id,
            lane: call.stream_id.clone(),
            events: sender,
        });
        let turn = Turn::new(self, id, call, events);
        let running = RunningTurn::new(self);
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

    /// Whether exchanges decide what is sent.
    pub(super) fn decides(&self) -> bool {
        self.decides.get()
    }

    /// Forgets a call that was not sent upstream.
    pub(super) fn forget(&self, id: u64) {
        self.turns.borrow_mut().retain(|turn| turn.id != id);
    }

    /// Sends a call upstream, unless the session has passed it already.
    pub(super) async fn send_call(&self, text: Bytes) {
        if self.decides.get() {
            let frame = text_frame(text, Some(mask()));
            self.pass(&self.to_upstream, Piece::Bytes(frame)).await;
        }
    }

    /// Sends an event to the agent, unless the session has passed it already.
    pub(super) async fn send_event(&self, text: Bytes) {
        if self.decides.get() {
            self.pass(&self.to_agent, Piece::Bytes(text_frame(text, None)))
                .await;
        }
    }

    /// Ends the socket without a Close frame, unless the exchange only watched or the upstream has
    /// ended it.
    pub(super) fn cut(&self) {
        if self.decides.get() && !self.upstream_is_closed.get() {
            self.cut.notify_one();
        }
    }

    /// Serves requests of an exchange's connection in memory.
    pub(super) fn serve(&self, io: Io, ingress: Ingress) {
        let stage = ConnectionStage::Http1(io, ingress);
        self.spawn((self.run_stage)(
            stage,
            Rc::clone(&self.worker),
            Rc::clone(&self.control),
        ));
    }

    /// Runs work that ends with the session.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(work);
    }

    async fn pass(&self, to: &mpsc::Sender<Piece>, piece: Piece) {
        // Without a receiver the session is ending.
        let _ = to.send(piece).await;
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

/// A mask for a frame to an upstream (RFC 6455 §5.3).
fn mask() -> [u8; 4] {
    rand::random()
}
