//! One HTTP/1.1 connection to an upstream, driven by its exchange.
//!
//! There is no task and no channel between them: polling for the head or for the next body frame
//! transfers the bytes. Only a request that is still being sent when its response starts gets a
//! task. Otherwise an agent that does not read yet would block its own upload.

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

use super::error::FailureCause;
use super::settings::Settings;
use super::transport::Transport;
use crate::http1::Rewind;
use crate::http1::{CasingCache, HeadLimits};

pub(super) use self::upload::Upload;

/// A connection, for one exchange at a time.
pub(super) struct Http1 {
    /// Shared with the task that sends the rest of a request.
    link: Rc<RefCell<Link>>,
}

/// A request without a response.
pub(super) struct NotSent {
    pub(super) cause: FailureCause,
    /// The request, if none of its bytes was written.
    pub(super) unsent: Option<Box<Upload>>,
}

impl From<FailureCause> for NotSent {
    fn from(cause: FailureCause) -> Self {
        let unsent = None;
        Self { cause, unsent }
    }
}

/// A connection after `101 Switching Protocols`, including bytes that the upstream already sent.
pub(crate) type Switched = Rewind<Transport>;

impl Http1 {
    /// Uses a transport on which nothing was sent yet.
    pub(super) fn open(
        transport: Transport,
        settings: &Settings,
        casings: &Rc<CasingCache>,
    ) -> Self {
        let limits = HeadLimits {
            header_bytes: usize::try_from(settings.header_bytes).unwrap_or(usize::MAX),
            header_count: settings.header_count,
        };
        let link = Link::new(transport, limits, Rc::clone(casings));
        Self {
            link: Rc::new(RefCell::new(link)),
        }
    }

    /// Sends a request and waits for the response's head.
    pub(super) async fn send(&mut self, upload: Box<Upload>) -> Result<Response<()>, NotSent> {
        self.link.borrow_mut().begin(upload);
        poll_fn(|cx| self.link.borrow_mut().poll_head(cx)).await
    }

    /// The next frame of the response's body.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, FailureCause>>> {
        self.link.borrow_mut().poll_frame(cx)
    }

    /// Whether the whole response was returned.
    pub(super) fn is_over(&self) -> bool {
        self.link.borrow().is_over()
    }

    /// Remaining bytes of the response's body, if known.
    pub(super) fn length(&self) -> Option<u64> {
        self.link.borrow().length()
    }

    /// Ensures that the request is sent on, even if its response is read slowly.
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

    /// Lets an idle connection detect that it was closed.
    pub(super) fn look(&mut self) {
        self.link.borrow_mut().look();
    }

    /// True if the next request can be written immediately.
    pub(super) fn is_ready(&self) -> bool {
        self.link.borrow().is_ready()
    }

    /// True if the connection has ended, or cannot be reused.
    pub(super) fn is_closed(&self) -> bool {
        self.link.borrow().is_closed()
    }

    /// Waits until the connection is ready; false if it ended instead.
    pub(super) async fn becomes_ready(&mut self) -> bool {
        if let Some(uploading) = self.link.borrow_mut().uploading.take() {
            uploading.abort();
        }
        poll_fn(|cx| self.link.borrow_mut().poll_ready(cx)).await
    }

    /// Releases memory that only an exchange needs.
    pub(super) fn rest(&mut self) {
        self.link.borrow_mut().rest();
    }

    /// The connection after a 101; `None` if it has ended.
    pub(super) fn into_switched(self) -> Option<Switched> {
        self.link.borrow_mut().switch()
    }
}
