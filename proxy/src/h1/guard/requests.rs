//! The side on which requests come.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::OnceLock;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, Uri};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::Instant;

use super::{Gate, Guard, RequestGuard, Side};
use crate::h1::framing::{Position, Progress, Requests, Spelt};
use crate::h1::{FramingError, Limits};

/// A request head that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// What the agent is told: 400, or 408, 414 or 431 where a bound was passed.
    pub status: StatusCode,
    /// Why.
    pub reason: FramingError,
    /// What it asked for; `None` where not even its first line can be read.
    pub asked: Option<(Method, Uri)>,
}

/// What the guard of a connection and the service on it tell each other.
#[derive(Debug)]
pub struct RequestState {
    rejection: RefCell<Option<Box<Rejection>>>,
    body_error: Cell<Option<FramingError>>,
    position: Cell<Position>,
    granted: Cell<Option<bool>>,
    /// How the heads are spelt that were passed and are not served yet.
    spelt: RefCell<VecDeque<Spelt>>,
    /// Parked by a read that waits for the answer to an upgrade.
    reader: RefCell<Option<Waker>>,
}

impl RequestState {
    /// Whether the request for `path` stands for a head that was refused; if so, how to answer it.
    /// The connection closes after that answer by itself.
    ///
    /// The path of such a request cannot be guessed, so no agent can send it; it exists once.
    pub fn take_rejection(&self, path: &str) -> Option<Rejection> {
        // Nearly always there is none: one look at a cell.
        let mut rejection = self.rejection.borrow_mut();
        let rejection = rejection.take_if(|_| path.as_bytes() == sentinel().path())?;
        Some(*rejection)
    }

    /// How the next request's head is spelt: to be called once for each that is served, in order, or
    /// the next one is given its spelling.
    pub fn next_spelt(&self) -> Spelt {
        self.spelt.borrow_mut().pop_front().unwrap_or_default()
    }

    /// Why the body of the latest request was refused, if it was: what its read failed with.
    pub fn body_error(&self) -> Option<FramingError> {
        self.body_error.get()
    }

    /// Where the bytes from the agent stand; the service may be some requests behind.
    pub fn position(&self) -> Position {
        self.position.get()
    }

    /// To be called once for every request that is a CONNECT, or HTTP/1.1 with an `Upgrade` field,
    /// when it is answered with 101, or CONNECT with 2xx: what follows passes unchecked.
    pub fn upgrade_granted(&self) {
        self.decide(true);
    }

    /// To be called once for every request that is a CONNECT, or HTTP/1.1 with an `Upgrade` field,
    /// when it is answered in any other way. Until then nothing behind that request is read.
    pub fn upgrade_refused(&self) {
        self.decide(false);
    }

    fn decide(&self, granted: bool) {
        self.granted.set(Some(granted));
        let reader = self.reader.borrow_mut().take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// The direction of a [`RequestGuard`].
#[derive(Debug)]
pub struct RequestSide {
    tracker: Requests,
    state: Rc<RequestState>,
    head_timeout: Option<Duration>,
    lingers: bool,
}

impl<T> RequestGuard<T> {
    /// Checks the requests that come on `inner`.
    ///
    /// A head that has begun must be complete within `head_timeout` (`None`: whenever), or it is
    /// refused with 408. Needs a runtime with a clock.
    pub fn new(inner: T, limits: Limits, head_timeout: Option<Duration>) -> Self {
        let state = Rc::new(RequestState {
            rejection: RefCell::default(),
            body_error: Cell::new(None),
            position: Cell::new(Position::Between),
            granted: Cell::new(None),
            spelt: RefCell::default(),
            reader: RefCell::new(None),
        });
        let tracker = Requests::new(limits);
        Guard::with_side(
            inner,
            RequestSide {
                tracker,
                state,
                head_timeout,
                lingers: false,
            },
        )
    }

    /// What the service is told.
    pub fn state(&self) -> Rc<RequestState> {
        Rc::clone(&self.side.state)
    }
}

impl Side for RequestSide {
    fn advance(&mut self, bytes: &[u8]) -> Progress {
        let progress = self.tracker.advance(bytes);
        self.state.spelt.borrow_mut().extend(self.tracker.spelt());
        self.state.position.set(self.tracker.position());
        progress
    }

    fn gate(&mut self, context: &Context<'_>) -> Gate {
        match self.tracker.position() {
            Position::Between | Position::Head | Position::Body => Gate::Check,
            Position::Switched => Gate::Open,
            Position::Refused => Gate::Shut,
            Position::Undecided => match self.state.granted.take() {
                Some(true) => {
                    self.tracker.upgraded();
                    self.state.position.set(Position::Switched);
                    Gate::Open
                }
                Some(false) => {
                    self.tracker.not_upgraded();
                    self.state.position.set(Position::Between);
                    Gate::Recheck
                }
                None => {
                    *self.state.reader.borrow_mut() = Some(context.waker().clone());
                    Gate::Hold
                }
            },
        }
    }

    fn refused(&mut self, error: FramingError, rest: &[u8]) -> Option<Bytes> {
        self.lingers = true;
        self.state.position.set(Position::Refused);
        if !self.tracker.is_head_refused() {
            self.state.body_error.set(Some(error));
            return None;
        }
        self.state.spelt.borrow_mut().push_back(Spelt::default());
        *self.state.rejection.borrow_mut() = Some(Box::new(Rejection {
            status: error.status(),
            reason: error,
            asked: asked(rest),
        }));
        Some(Bytes::from_static(sentinel().0.as_bytes()))
    }

    fn ended(&mut self, _how: Result<(), &io::Error>) {}

    fn head_deadline(&self) -> Option<Instant> {
        (self.tracker.position() == Position::Head)
            .then(|| self.head_timeout.map(|timeout| Instant::now() + timeout))
            .flatten()
    }

    fn time_out(&mut self) -> FramingError {
        self.tracker.refuse_head(FramingError::HeadTimeout);
        FramingError::HeadTimeout
    }

    fn lingers(&self) -> bool {
        self.lingers
    }
}

/// The request that stands for a head that was refused, the same in the whole process.
struct Sentinel(String);

impl Sentinel {
    const METHOD: &str = "GET ";
    /// A slash and 128 bits.
    const PATH: usize = 1 + 32;

    fn path(&self) -> &[u8] {
        &self.0.as_bytes()[Self::METHOD.len()..][..Self::PATH]
    }
}

fn sentinel() -> &'static Sentinel {
    static SENTINEL: OnceLock<Sentinel> = OnceLock::new();
    SENTINEL.get_or_init(|| {
        let mut token = [0u8; 16];
        SystemRandom::new()
            .fill(&mut token)
            .expect("the system gives random bytes");
        let (method, token) = (Sentinel::METHOD, u128::from_be_bytes(token));
        Sentinel(format!(
            "{method}/{token:032x} HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n"
        ))
    })
}

/// What a head asks for by its first line, whatever is wrong with the rest of it.
fn asked(head: &[u8]) -> Option<(Method, Uri)> {
    let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next()?;
    let mut words = line.split(|byte| *byte == b' ');
    let method = Method::from_bytes(words.next()?).ok()?;
    let target = Uri::try_from(words.next()?).ok()?;
    words
        .next()?
        .starts_with(b"HTTP/1.")
        .then_some((method, target))
}
