//! What the reader of a socket and its calls share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use squall_journal::id::ExchangeId;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::frames::text_frame;
use super::negotiation::ModelSocket;
use crate::exchange::connection::{ConnectionStage, Ingress, Io, RunStage};
use crate::exchange::log::ExchangeLog;
use crate::exchange::worker::ExchangeWorker;
use crate::http1::Control;

/// One socket.
pub(super) struct SocketState {
    pub(super) worker: Rc<ExchangeWorker>,
    pub(super) control: Rc<Control>,
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
    pub(super) turns: RefCell<Vec<OpenCall>>,
    pub(super) next_turn: Cell<u64>,
    pub(super) tasks: RefCell<JoinSet<()>>,
    /// Exchanges in progress.
    pub(super) running: Cell<usize>,
    pub(super) turn_ended: Notify,
    pub(super) cut: Notify,
}

/// A response that the upstream has not ended.
pub(super) struct OpenCall {
    pub(super) id: u64,
    pub(super) lane: Option<String>,
    pub(super) events: mpsc::Sender<Bytes>,
}

/// Counts an exchange while it runs.
pub(super) struct RunningCall(Rc<SocketState>);

impl RunningCall {
    pub(super) fn new(session: &Rc<SocketState>) -> Self {
        session.running.set(session.running.get() + 1);
        Self(Rc::clone(session))
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
        self.0.turn_ended.notify_waiters();
    }
}

/// What is written to a side.
pub(super) enum QueuedWrite {
    Bytes(Bytes),
    /// The other side has closed.
    End,
}

impl SocketState {
    /// Whether no message and no response is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.running.get() == 0 && self.turns.borrow().is_empty() && !self.upstream_is_busy.get()
    }

    /// Whether a rule or a tape of the scope may apply to the next call.
    pub(super) fn may_fault(&self) -> bool {
        let scope = self.log.chaos().scope().to_owned();
        let chaos = self.worker.engine.chaos.scope(Some(&scope));
        !chaos.activation().snapshot().is_empty()
            || self.worker.engine.chaos.tape_of(&chaos).is_some()
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
            self.pass(&self.to_upstream, QueuedWrite::Bytes(frame))
                .await;
        }
    }

    /// Sends an event to the agent, unless the session has passed it already.
    pub(super) async fn send_event(&self, text: Bytes) {
        if self.decides.get() {
            self.pass(&self.to_agent, QueuedWrite::Bytes(text_frame(text, None)))
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

    pub(super) async fn pass(&self, to: &mpsc::Sender<QueuedWrite>, piece: QueuedWrite) {
        // Without a receiver the session is ending.
        let _ = to.send(piece).await;
    }
}

/// A mask for a frame to an upstream (RFC 6455 §5.3).
pub(super) fn mask() -> [u8; 4] {
    rand::random()
}
