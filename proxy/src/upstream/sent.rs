//! A request's body that detects the request's end, where `response_timeout` starts.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

/// A request's body.
pub(crate) type Outgoing = Pin<Box<dyn Body<Data = Bytes, Error = BodyError>>>;

/// Why a request's body broke off.
pub(crate) type BodyError = Box<dyn Error + Send + Sync>;

/// The agent's body, for an upstream connection.
pub(super) struct SentBody {
    body: Outgoing,
    /// Dropped at the body's end, which notifies the receiver.
    ended: Option<oneshot::Sender<()>>,
}

impl SentBody {
    pub(super) fn new(body: Outgoing) -> Self {
        Self { body, ended: None }
    }

    /// Resolves (to an error) when the whole body was handed over.
    pub(super) fn watch_end(&mut self) -> oneshot::Receiver<()> {
        let (ended, watch) = oneshot::channel();
        self.ended = Some(ended).filter(|_| !self.body.is_end_stream());
        watch
    }
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if this.body.is_end_stream() || !matches!(&frame, Some(Ok(frame)) if frame.is_data()) {
            this.ended = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
