//! Bodies as async functions, which read one body and send the frames of another.
//!
//! Sending a frame waits until hyper has taken it, so nothing is read ahead of the agent.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// A body that a script sends.
pub(crate) struct Scripted<E> {
    /// `None` once it has ended.
    script: Option<Script<E>>,
    out: FrameSink,
    length: SizeHint,
}

type Script<E> = Pin<Box<dyn Future<Output = Result<(), E>>>>;

/// Receives a script's frames.
#[derive(Clone, Default)]
pub(crate) struct FrameSink(Rc<SentFrame>);

#[derive(Default)]
struct SentFrame {
    /// Not yet taken by hyper.
    frame: RefCell<Option<Frame<Bytes>>>,
    was_last: Cell<bool>,
}

impl FrameSink {
    /// Sends data. `is_last`: nothing follows; hyper does not poll for the end of a body with a
    /// known length.
    pub(crate) async fn data(&self, bytes: Bytes, is_last: bool) {
        self.send(Frame::data(bytes), is_last).await;
    }

    /// Sends trailers.
    pub(crate) async fn trailers(&self, trailers: HeaderMap) {
        self.send(Frame::trailers(trailers), true).await;
    }

    /// Sends a frame of `body` unchanged.
    pub(crate) async fn pass(&self, frame: Frame<Bytes>, body: &impl Body) {
        self.send(frame, body.is_end_stream()).await;
    }

    async fn send(&self, frame: Frame<Bytes>, is_last: bool) {
        self.0.was_last.set(is_last);
        self.0.frame.replace(Some(frame));
        poll_fn(|_| {
            if self.0.frame.borrow().is_none() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

impl<E> Scripted<E> {
    /// A body of this length that `script` sends.
    pub(crate) fn new<F>(length: SizeHint, script: impl FnOnce(FrameSink) -> F) -> Self
    where
        F: Future<Output = Result<(), E>> + 'static,
    {
        let out = FrameSink::default();
        Self {
            script: Some(Box::pin(script(out.clone()))),
            out,
            length,
        }
    }
}

impl<E> Body for Scripted<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let Some(script) = &mut self.script else {
            return Poll::Ready(None);
        };
        let polled = script.as_mut().poll(cx);
        if let Some(frame) = self.out.0.frame.take() {
            let sent = frame.data_ref().map_or(0, |data| data.len() as u64);
            let upper = self.length.upper();
            self.length = SizeHint::new();
            if let Some(left) = upper.map(|upper| upper.saturating_sub(sent)) {
                self.length = SizeHint::with_exact(left);
            }
            return Poll::Ready(Some(Ok(frame)));
        }
        polled.map(|ended| {
            self.script = None;
            ended.err().map(Err)
        })
    }

    fn is_end_stream(&self) -> bool {
        let sent = &self.out.0;
        self.script.is_none() || (sent.was_last.get() && sent.frame.borrow().is_none())
    }

    fn size_hint(&self) -> SizeHint {
        self.length
    }
}
