//! State shared by a connection's guard and its service.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::LazyLock;
use std::task::{Context, Waker};

use http::{Method, StatusCode, Uri};
use ring::rand::{SecureRandom, SystemRandom};

use crate::http1::FramingError;
use crate::http1::framing::OriginalNames;

/// A rejected request head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// The response's status: 400, or 408, 414 or 431 for an exceeded limit.
    pub(crate) status: StatusCode,
    /// Why.
    pub(crate) reason: FramingError,
    /// Its method and target; `None` if its first line is invalid.
    pub(crate) request: Option<(Method, Uri)>,
}

/// State shared by a connection's guard and its service.
#[derive(Debug, Default)]
pub(crate) struct RequestState {
    rejection: RefCell<Option<Box<Rejection>>>,
    body_error: Cell<Option<FramingError>>,
    granted: Cell<Option<bool>>,
    /// The field names of accepted heads that are not served yet.
    names: RefCell<VecDeque<OriginalNames>>,
    /// Waker of a read that waits for the response to an upgrade.
    reader: RefCell<Option<Waker>>,
}

impl RequestState {
    /// The rejection if the request for `path` is the substitute for a rejected head. The
    /// connection closes after its response.
    ///
    /// The substitute's path is random, so an agent cannot send it.
    pub(crate) fn take_rejection(&self, path: &str) -> Option<Rejection> {
        // Usually there is none, so this is a cheap check.
        let mut rejection = self.rejection.borrow_mut();
        let rejection = rejection.take_if(|_| path == *SENTINEL_PATH)?;
        Some(*rejection)
    }

    /// The next request's field names. Call it once per served request, in order; otherwise later
    /// requests get the wrong names.
    pub(crate) fn next_names(&self) -> OriginalNames {
        self.names.borrow_mut().pop_front().unwrap_or_default()
    }

    /// Why the body of the latest request was rejected, if it was; its read failed with this error.
    pub(crate) fn body_error(&self) -> Option<FramingError> {
        self.body_error.get()
    }

    /// Call it once for a request that is a CONNECT, or HTTP/1.1 with `Upgrade`, if the response is
    /// 101, or 2xx for CONNECT. The following bytes pass unchecked.
    pub(crate) fn upgrade_granted(&self) {
        self.decide(true);
    }

    /// Call it once for a request that is a CONNECT, or HTTP/1.1 with `Upgrade`, for any other
    /// response. Until then nothing after that request is read.
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

    /// Whether the upgrade was accepted; until it is decided, the reader waits here.
    pub(super) fn decision(&self, context: &Context<'_>) -> Option<bool> {
        let granted = self.granted.take();
        if granted.is_none() {
            *self.reader.borrow_mut() = Some(context.waker().clone());
        }
        granted
    }

    /// Records the field names of accepted heads.
    pub(super) fn passed(&self, names: impl Iterator<Item = OriginalNames>) {
        self.names.borrow_mut().extend(names);
    }

    /// Rejects the head that starts with `head`; returns its substitute request.
    pub(super) fn reject_head(&self, reason: FramingError, head: &[u8]) -> String {
        self.names.borrow_mut().push_back(OriginalNames::default());
        *self.rejection.borrow_mut() = Some(Box::new(Rejection {
            status: reason.status(),
            reason,
            request: requested(head),
        }));
        format!(
            "GET {} HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n",
            *SENTINEL_PATH
        )
    }

    /// Rejects the body of the latest request.
    pub(super) fn reject_body(&self, reason: FramingError) {
        self.body_error.set(Some(reason));
    }
}

/// The path of substitute requests in this process: 128 random bits.
static SENTINEL_PATH: LazyLock<String> = LazyLock::new(|| {
    let mut token = [0u8; 16];
    SystemRandom::new()
        .fill(&mut token)
        .expect("the system gives random bytes");
    format!("/{:032x}", u128::from_be_bytes(token))
});

/// Method and target in a head's first line, even if the rest is invalid.
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
