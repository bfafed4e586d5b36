//! What the guard of a connection and the service on it tell each other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::LazyLock;
use std::task::{Context, Waker};

use http::{Method, StatusCode, Uri};
use ring::rand::{SecureRandom, SystemRandom};

use crate::http1::FramingError;
use crate::http1::framing::OriginalNames;

/// A request head that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// What the agent is told: 400, or 408, 414 or 431 where a bound was passed.
    pub(crate) status: StatusCode,
    /// Why.
    pub(crate) reason: FramingError,
    /// What it asked for; `None` where not even its first line can be read.
    pub(crate) asked: Option<(Method, Uri)>,
}

/// What the guard of a connection and the service on it tell each other.
#[derive(Debug, Default)]
pub(crate) struct RequestState {
    rejection: RefCell<Option<Box<Rejection>>>,
    body_error: Cell<Option<FramingError>>,
    granted: Cell<Option<bool>>,
    /// The field names of heads that were passed and are not served yet.
    names: RefCell<VecDeque<OriginalNames>>,
    /// Parked by a read that waits for the answer to an upgrade.
    reader: RefCell<Option<Waker>>,
}

impl RequestState {
    /// Whether the request for `path` stands for a head that was refused; if so, how to answer it.
    /// The connection closes after that answer by itself.
    ///
    /// The path of such a request cannot be guessed, so no agent can send it; it exists once.
    pub(crate) fn take_rejection(&self, path: &str) -> Option<Rejection> {
        // Nearly always there is none: one look at a cell.
        let mut rejection = self.rejection.borrow_mut();
        let rejection = rejection.take_if(|_| path == *SENTINEL_PATH)?;
        Some(*rejection)
    }

    /// The next request's field names: to be called once for each that is served, in order, or the next one
    /// is given them.
    pub(crate) fn next_names(&self) -> OriginalNames {
        self.names.borrow_mut().pop_front().unwrap_or_default()
    }

    /// Why the body of the latest request was refused, if it was: what its read failed with.
    pub(crate) fn body_error(&self) -> Option<FramingError> {
        self.body_error.get()
    }

    /// To be called once for every request that is a CONNECT, or HTTP/1.1 with an `Upgrade` field,
    /// when it is answered with 101, or CONNECT with 2xx: what follows passes unchecked.
    pub(crate) fn upgrade_granted(&self) {
        self.decide(true);
    }

    /// To be called once for every request that is a CONNECT, or HTTP/1.1 with an `Upgrade` field,
    /// when it is answered in any other way. Until then nothing behind that request is read.
    pub(crate) fn upgrade_refused(&self) {
        self.decide(false);
    }

    fn decide(&self, granted: bool) {
        self.granted.set(Some(granted));
        let reader = self.reader.borrow_mut().take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// Whether the upgrade was granted; until that is decided, the reader is parked here.
    pub(super) fn decision(&self, context: &Context<'_>) -> Option<bool> {
        let granted = self.granted.take();
        if granted.is_none() {
            *self.reader.borrow_mut() = Some(context.waker().clone());
        }
        granted
    }

    /// Heads were passed, with these field names.
    pub(super) fn passed(&self, names: impl Iterator<Item = OriginalNames>) {
        self.names.borrow_mut().extend(names);
    }

    /// The head that begins with `head` is refused; gives the request that stands for it.
    pub(super) fn reject_head(&self, reason: FramingError, head: &[u8]) -> String {
        self.names.borrow_mut().push_back(OriginalNames::default());
        *self.rejection.borrow_mut() = Some(Box::new(Rejection {
            status: reason.status(),
            reason,
            asked: requested(head),
        }));
        format!(
            "GET {} HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n",
            *SENTINEL_PATH
        )
    }

    /// The body of the latest request is refused.
    pub(super) fn reject_body(&self, reason: FramingError) {
        self.body_error.set(Some(reason));
    }
}

/// The path of the request that stands for a head that was refused, the same in the whole process: 128 random bits.
static SENTINEL_PATH: LazyLock<String> = LazyLock::new(|| {
    let mut token = [0u8; 16];
    SystemRandom::new()
        .fill(&mut token)
        .expect("the system gives random bytes");
    format!("/{:032x}", u128::from_be_bytes(token))
});

/// What a head asks for by its first line, whatever is wrong with the rest of it.
fn requested(head: &[u8]) -> Option<(Method, Uri)> {
    let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next()?;
    let mut words = line.split(|byte| *byte == b' ');
    let method = Method::from_bytes(words.next()?).ok()?;
    let target = Uri::try_from(words.next()?).ok()?;
    words
        .next()?
        .starts_with(b"HTTP/1.")
        .then_some((method, target))
}
