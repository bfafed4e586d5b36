//! One HTTP/1.1 connection to an upstream, driven by its exchange.
//!
//! There is no task and no channel between them: polling for the head or for the next body frame
//! transfers the bytes. Only a request that is still being sent when its response starts gets a
//! task. Otherwise an agent that does not read yet would block its own upload.

mod head;
mod link;
mod upload;

use std::cell::{RefCell, RefMut};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

use http::Response;
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

    /// The state of its two directions.
    pub(super) fn link(&self) -> RefMut<'_, Link> {
        self.link.borrow_mut()
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

    /// Waits until the connection is ready; false if it ended instead.
    pub(super) async fn becomes_ready(&mut self) -> bool {
        if let Some(uploading) = self.link.borrow_mut().uploading.take() {
            uploading.abort();
        }
        poll_fn(|cx| self.link.borrow_mut().poll_ready(cx)).await
    }
}
