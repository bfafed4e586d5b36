//! One HTTP/1.1 connection to an upstream, moved by its exchange.
//!
//! There is no task and no channel between an exchange and its connection: waiting for the head, or
//! for the next frame of the body, is what moves the bytes. Only a request that is still being sent
//! when its answer begins gets a task, since an agent that does not read yet must not stop its own
//! upload.

mod head;
mod link;
mod upload;

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body::Frame;
use tokio::task::spawn_local;

use self::link::Link;

use super::error::{Break, FailureCause};
use super::settings::Settings;
use super::transport::Transport;
use crate::http1::Rewind;
use crate::http1::{HeadLimits, HeadShapes};

pub(super) use self::upload::Upload;

/// A connection, for one exchange at a time.
pub(super) struct Http1 {
    /// Shared with the task that sends a request on.
    link: Rc<RefCell<Link>>,
}

/// A request without an answer.
pub(super) struct NotSent {
    pub(super) cause: FailureCause,
    /// The request, when not a byte of it was written.
    pub(super) unsent: Option<Box<Upload>>,
}

impl From<FailureCause> for NotSent {
    fn from(cause: FailureCause) -> Self {
        let unsent = None;
        Self { cause, unsent }
    }
}

/// A connection after `101 Switching Protocols`: what the upstream sends next, and where to send.
pub(crate) type Switched = Rewind<Transport>;

impl Http1 {
    /// Takes over a transport on which nothing has been said yet.
    pub(super) fn open(transport: Transport, settings: &Settings, shapes: &Rc<HeadShapes>) -> Self {
        let limits = HeadLimits {
            header_bytes: usize::try_from(settings.header_bytes).unwrap_or(usize::MAX),
            header_count: settings.header_count,
        };
        let link = Link::new(transport, limits, Rc::clone(shapes));
        Self {
            link: Rc::new(RefCell::new(link)),
        }
    }

    /// Sends a request and waits for the answer's head.
    pub(super) async fn send(&mut self, upload: Box<Upload>) -> Result<Response<()>, NotSent> {
        self.link.borrow_mut().begin(upload);
        poll_fn(|cx| self.link.borrow_mut().poll_head(cx)).await
    }

    /// The next frame of the answer's body.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Break>>> {
        self.link.borrow_mut().poll_frame(cx)
    }

    /// Whether all of the answer has been given.
    pub(super) fn is_over(&self) -> bool {
        self.link.borrow().is_over()
    }

    /// Bytes of the answer's body still to come, where that is known.
    pub(super) fn length(&self) -> Option<u64> {
        self.link.borrow().length()
    }

    /// Sees to it that the request is sent on, however slowly its answer is read.
    pub(super) fn send_on(&mut self) {
        let mut link = self.link.borrow_mut();
        if !link.sends_on() {
            return;
        }
        let shared = Rc::downgrade(&self.link);
        link.uploading = Some(spawn_local(poll_fn(move |cx| {
            let link = Weak::upgrade(&shared);
            link.map_or(Poll::Ready(()), |link| link.borrow_mut().poll_upload_on(cx))
        })));
    }

    /// Lets an idle connection notice that it was closed.
    pub(super) fn look(&mut self) {
        self.link.borrow_mut().look();
    }

    /// True when the next request can be written at once.
    pub(super) fn is_ready(&self) -> bool {
        self.link.borrow().is_ready()
    }

    /// True when the connection has ended, or cannot be used for another request.
    pub(super) fn is_closed(&self) -> bool {
        self.link.borrow().is_closed()
    }

    /// Waits for the connection to become ready; false when it ended instead.
    pub(super) async fn becomes_ready(&mut self) -> bool {
        if let Some(uploading) = self.link.borrow_mut().uploading.take() {
            uploading.abort();
        }
        poll_fn(|cx| self.link.borrow_mut().poll_ready(cx)).await
    }

    /// Lets go of what only an exchange needs.
    pub(super) fn rest(&mut self) {
        self.link.borrow_mut().rest();
    }

    /// The connection behind a 101; `None` when it is gone.
    pub(super) fn into_switched(self) -> Option<Switched> {
        self.link.borrow_mut().switch()
    }
}
