//! A body that is observed as it passes, unchanged and without delay.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::{AgentBody, boxed};
use crate::abort::Abort;

/// A part of an observed body.
#[derive(Clone, Copy)]
pub(crate) enum Passed<'a> {
    Data(&'a Bytes),
    Trailers(&'a HeaderMap),
    /// The body is complete; not sent if it breaks off.
    End,
}

struct Tapped<F> {
    body: AgentBody,
    /// `None` once the observer has finished, or the body has broken off.
    see: Option<F>,
}

/// Returns `body`, which calls `see` with what passes until `see` returns false.
pub(crate) fn tapped(
    body: AgentBody,
    see: impl FnMut(Passed<'_>) -> bool + Unpin + 'static,
) -> AgentBody {
    let see = Some(see);
    boxed(Tapped { body, see })
}

impl<F: FnMut(Passed<'_>) -> bool> Tapped<F> {
    fn show(&mut self, passed: Passed<'_>) {
        if let Some(see) = &mut self.see
            && !see(passed)
        {
            self.see = None;
        }
    }
}

impl<F: FnMut(Passed<'_>) -> bool + Unpin> Body for Tapped<F> {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.show(Passed::Data(data));
                }
                if let Some(trailers) = frame.trailers_ref() {
                    self.show(Passed::Trailers(trailers));
                }
                // hyper does not poll for the end of a body with a known length.
                if frame.is_trailers() || self.body.is_end_stream() {
                    self.show(Passed::End);
                }
            }
            Some(Err(_)) => self.see = None,
            None => self.show(Passed::End),
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
