//! What the reader of a socket and its calls share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use squall_journal::id::ExchangeId;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::frames::{binary_frame, close_frame, text_frame};
use super::live::LiveMessage;
use super::negotiation::ModelSocket;
use super::protocol::OpenCall;
use crate::exchange::connection::{ConnectionStage, Ingress, Io, RunStage};
use crate::exchange::log::ExchangeLog;
use crate::exchange::worker::ExchangeWorker;
use crate::http1::{Control, Waits};

/// One socket.
pub(super) struct SocketState {
    pub(super) worker: Rc<ExchangeWorker>,
    /// The socket's end: on HTTP/2 that of a stream.
    pub(super) control: Rc<Control>,
    /// The agent's connection, which is not idle while a call runs.
    pub(super) connection: Rc<Control>,
    /// How the upgrade came in.
    pub(super) ingress: Ingress,
    pub(super) run_stage: RunStage,
    pub(super) socket: ModelSocket,
    pub(super) log: Rc<ExchangeLog>,
    pub(super) to_agent: mpsc::Sender<QueuedWrite>,
    pub(super) to_upstream: mpsc::Sender<QueuedWrite>,
    /// The exchange of the upgrade.
    pub(super) exchange: ExchangeId,
    /// `permessage-deflate` is in use.
    pub(super) is_compressed: bool,
    /// Whether exchanges decide what is sent. It changes only while nothing is in progress.
    pub(super) decides: Cell<bool>,
    /// Whether the upstream is in the middle of a message.
    pub(super) upstream_is_busy: Cell<bool>,
    pub(super) upstream_is_closed: Cell<bool>,
    /// The upstream's last message was binary.
    pub(super) upstream_is_binary: Cell<bool>,
    /// A rule has closed the socket.
    pub(super) is_closed: Cell<bool>,
    /// The model has called tools, and its turn may go on.
    pub(super) is_after_tool_call: Cell<bool>,
    /// A rule has ended the agent's turn without the upstream's call of tools, so what is left of the turn is dropped.
    pub(super) is_turn_replaced: Cell<bool>,
    /// What the calls on it begin with, and the messages that are sent do not.
    pub(super) prefix: RefCell<Bytes>,
    /// Calls that were sent, in this order.
    pub(super) calls: RefCell<Vec<OpenCall>>,
    /// The lanes of calls that are neither sent nor answered.
    pub(super) unsent: RefCell<Vec<Option<String>>>,
    pub(super) tasks: RefCell<JoinSet<()>>,
    /// Exchanges in progress.
    pub(super) running: Cell<usize>,
    /// The agent has sent a binary message under rules.
    pub(super) has_binary: Cell<bool>,
    /// A call was sent, or has ended.
    pub(super) call_changed: Notify,
}

/// Counts an exchange while it runs.
pub(super) struct RunningCall {
    session: Rc<SocketState>,
    _waits: Waits,
}

impl RunningCall {
    pub(super) fn new(session: &Rc<SocketState>) -> Self {
        session.running.set(session.running.get() + 1);
        Self {
            session: Rc::clone(session),
            _waits: Waits::on(&session.connection),
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let session = &self.session;
        session.running.set(session.running.get() - 1);
        session.call_changed.notify_waiters();
    }
}

/// What is written to a side.
pub(super) enum QueuedWrite {
    Bytes(Bytes),
    /// The other side has closed.
    End,
    /// A call was cut, with an RST or without.
    Cut {
        reset: bool,
    },
}

impl SocketState {
    /// Whether no message and no response is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.running.get() == 0 && self.calls.borrow().is_empty() && !self.upstream_is_busy.get()
    }

    /// The agent has sent a binary message: if it was a call, no rule applies to it.
    pub(super) fn bypass_binary(&self) {
        if self.decides.get() && !self.has_binary.replace(true) {
            let scope = self.log.chaos().scope().to_owned();
            let rules = self.worker.engine.chaos.scope(Some(&scope));
            let rules = rules.activation().snapshot();
            let why = "the agent sent a binary message on the WebSocket, which is not read";
            let bypassed = self.socket.bypassed(&rules, why);
            self.log.verdicts().all.extend(bypassed);
        }
    }

    /// Whether a rule or a tape of the scope may apply to the next call.
    pub(super) fn may_fault(&self) -> bool {
        let scope = self.log.chaos().scope().to_owned();
        let chaos = self.worker.engine.chaos.scope(Some(&scope));
        !chaos.activation().snapshot().is_empty()
            || self.worker.engine.chaos.tape_of(&chaos).is_some()
    }

    /// Whether an event is what is left of a turn that has called tools: it is of no call. The next turn begins
    /// with what the model says after the agent has demanded it, or with another call of tools.
    pub(super) fn is_left_of_turn(&self, event: &LiveMessage) -> bool {
        if !self.is_after_tool_call.get() {
            return false;
        }
        let is_demanded = !self.calls.borrow().is_empty();
        let is_next = event.calls_tools() || (is_demanded && event.begins_turn());
        if is_next || event.ends_turn() {
            self.is_after_tool_call.set(false);
        }
        !is_next && event.is_of_turn()
    }

    /// A call is sent now, so that the next events of its lane are its own.
    pub(super) fn open(&self, call: OpenCall) {
        if !self.upstream_is_closed.get() {
            self.calls.borrow_mut().push(call);
        }
    }

    /// A call of this lane was sent, or will not be.
    pub(super) fn settled(&self, lane: Option<&String>) {
        let mut unsent = self.unsent.borrow_mut();
        if let Some(place) = unsent.iter().position(|other| other.as_ref() == lane) {
            unsent.remove(place);
        }
        self.call_changed.notify_waiters();
    }

    /// Waits until the calls before a message of this lane are sent or answered.
    pub(super) async fn calls_before(&self, lane: Option<&String>) {
        let is_before = || {
            let unsent = self.unsent.borrow();
            unsent.iter().any(|other| other.as_ref() == lane)
        };
        while is_before() {
            self.call_changed.notified().await;
        }
    }

    /// Waits until the agent has got the responses that the upstream has ended.
    pub(super) async fn calls_delivered(&self) {
        let open = || self.calls.borrow().len() + self.unsent.borrow().len();
        while self.decides.get() && self.running.get() > open() {
            self.call_changed.notified().await;
        }
    }

    /// Sends a text upstream.
    pub(super) async fn send_upstream(&self, text: Bytes) {
        let frame = QueuedWrite::Bytes(text_frame(text, Some(mask())));
        pass(&self.to_upstream, frame).await;
    }

    /// Sends an event to the agent, unless the session has passed it already.
    pub(super) async fn send_event(&self, text: Bytes) {
        if self.decides.get() {
            let frame = if self.upstream_is_binary.get() {
                binary_frame(text)
            } else {
                text_frame(text, None)
            };
            pass(&self.to_agent, QueuedWrite::Bytes(frame)).await;
        }
    }

    /// Closes the socket as the upstream would, after the events before it. Not if the exchange only
    /// watched, or the upstream has closed it.
    pub(super) async fn close(&self, code: u16, reason: &str) {
        if !self.decides.get() || self.upstream_is_closed.get() || self.is_closed.replace(true) {
            return;
        }
        for (to, frame) in [
            (&self.to_agent, close_frame(code, reason, None)),
            (&self.to_upstream, close_frame(1000, "", Some(mask()))),
        ] {
            pass(to, QueuedWrite::Bytes(frame)).await;
            pass(to, QueuedWrite::End).await;
        }
    }

    /// Ends the socket without a Close frame, after the events before it. Not if the exchange only
    /// watched, or the upstream has ended it.
    pub(super) async fn cut(&self, reset: bool) {
        if self.decides.get() && !self.upstream_is_closed.get() {
            pass(&self.to_agent, QueuedWrite::Cut { reset }).await;
        }
    }

    /// Serves requests of an exchange's connection in memory; returns its control.
    pub(super) fn serve(&self, io: Io, ingress: Ingress) -> Rc<Control> {
        let control = self.control.of_stream();
        let stage = ConnectionStage::Http1(io, ingress);
        self.spawn((self.run_stage)(
            stage,
            Rc::clone(&self.worker),
            Rc::clone(&control),
        ));
        control
    }

    /// Runs work that ends with the session.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(work);
    }
}

/// Queues a piece for a side.
pub(super) async fn pass(to: &mpsc::Sender<QueuedWrite>, piece: QueuedWrite) {
    // Without a receiver the session is ending.
    let _ = to.send(piece).await;
}

/// A mask for a frame to an upstream (RFC 6455 §5.3).
pub(super) fn mask() -> [u8; 4] {
    rand::random()
}
