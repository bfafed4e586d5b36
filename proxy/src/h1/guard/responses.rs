//! The side on which responses come.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::Context;

use bytes::Bytes;
use http::Method;
use tokio::time::Instant;

use super::{Gate, Guard, ResponseGuard, Side};
use crate::h1::framing::{Expected, Position, Progress, Responses};
use crate::h1::{FramingError, Limits};

/// How the stream from an upstream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By a FIN (or a TLS `close_notify`).
    Fin,
    /// By an error of reading; [`io::ErrorKind::ConnectionReset`] is an RST.
    Error(io::ErrorKind),
}

/// What the guard of a connection and its client tell each other.
#[derive(Debug)]
pub struct ResponseState {
    /// What was asked for and the tracker does not know of yet.
    expected: Cell<Option<Expected>>,
    complete: Cell<bool>,
    position: Cell<Position>,
    error: Cell<Option<FramingError>>,
    end: Cell<Option<End>>,
}

impl ResponseState {
    /// To be called before each request is handed to hyper: how the response is framed hangs on
    /// the request's method. Bytes that come without it are refused.
    pub fn expect(&self, method: &Method) {
        self.complete.set(false);
        self.expected.set(Some(method.into()));
    }

    /// Whether the latest response has come to its end.
    ///
    /// False also while none is asked for. A body that lasts until the connection closes is
    /// complete when it was closed by a FIN.
    pub fn is_complete(&self) -> bool {
        self.complete.get()
    }

    /// Where the bytes from the upstream stand; hyper may be some bytes behind.
    pub fn position(&self) -> Position {
        self.position.get()
    }

    /// Why the upstream's bytes were refused, if they were: what the read failed with.
    pub fn error(&self) -> Option<FramingError> {
        self.error.get()
    }

    /// How the stream ended, once it has. With [`Self::is_complete`] false and
    /// [`Self::position`] in a body, that broke the response off.
    pub fn end(&self) -> Option<End> {
        self.end.get()
    }
}

/// The direction of a [`ResponseGuard`].
#[derive(Debug)]
pub struct ResponseSide {
    tracker: Responses,
    state: Rc<ResponseState>,
}

impl<T> ResponseGuard<T> {
    /// Checks the responses that come on `inner`.
    pub fn new(inner: T, limits: Limits) -> Self {
        let state = Rc::new(ResponseState {
            expected: Cell::new(None),
            complete: Cell::new(false),
            position: Cell::new(Position::Between),
            error: Cell::new(None),
            end: Cell::new(None),
        });
        Guard::with_side(
            inner,
            ResponseSide {
                tracker: Responses::new(limits),
                state,
            },
        )
    }

    /// What the client is told.
    pub fn state(&self) -> Rc<ResponseState> {
        Rc::clone(&self.side.state)
    }
}

impl ResponseSide {
    fn learn(&mut self) {
        if let Some(expected) = self.state.expected.take() {
            self.tracker.expect_as(expected);
        }
    }

    fn tell(&self) {
        self.state.position.set(self.tracker.position());
        self.state.complete.set(self.tracker.is_complete());
    }
}

impl Side for ResponseSide {
    fn advance(&mut self, bytes: &[u8]) -> Progress {
        self.learn();
        let progress = self.tracker.advance(bytes);
        self.tell();
        progress
    }

    fn gate(&mut self, _context: &Context<'_>) -> Gate {
        match self.tracker.position() {
            Position::Switched => Gate::Open,
            Position::Between
            | Position::Head
            | Position::Body
            | Position::Undecided
            | Position::Refused => Gate::Check,
        }
    }

    fn refused(&mut self, error: FramingError) -> Option<Bytes> {
        self.state.error.set(Some(error));
        None
    }

    fn ended(&mut self, how: Result<(), &io::Error>) {
        self.state.end.set(Some(match how {
            Ok(()) => End::Fin,
            Err(error) => End::Error(error.kind()),
        }));
        if how.is_ok() && self.tracker.position() == Position::Body {
            self.tracker.close();
            self.tell();
        }
    }

    fn head_deadline(&self) -> Option<Instant> {
        None
    }

    fn time_out(&mut self) -> FramingError {
        FramingError::HeadTimeout
    }

    fn lingers(&self) -> bool {
        false
    }
}
